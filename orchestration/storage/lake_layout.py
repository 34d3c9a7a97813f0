"""Folders of a lake that several rooms use: claims (`intake`), spools, state of fast alerts, copies for workers.

A folder that one room uses is named in that room; tables: tables.py.
"""

import re
from collections.abc import Iterator

from orchestration.location import Location

CLAIMS, SPOOL, FAST_ALERTS, MAPPED = "intake", "spool", "fast_alerts", "mapped"
"""MAPPED: copies of small tables, which workers of Spark map into memory; each process that runs flows makes them anew."""
OF_HOST = re.compile(rf"({CLAIMS}|{SPOOL}|{FAST_ALERTS}|history|ends|outages)/")
"""Paths of files that a lake in a store has on the host that runs it, and another host cannot do without."""
CORRECTIONS = "silver.device_corrections"
"""The table of registry.py that each generation has of its own."""
DEAD_ROWS = "ops.dead_rows"
"""Rows that sinks lack. It is sealed: no other table says which."""

OTHER_FOLDERS = {"_delta_log", CLAIMS, "offsets", "commits", "sources", "state"}
OTHER_FILES = {
    "Delta": r"[.]parquet$",
    "Spark": r"^checkpoints/.*/metadata$|[.]crc$|^spark[.]log",
    "dbt": r"^dbt/(?!pending_build)",
    "connectors/collector/spool.py": rf"^{SPOOL}/[^/]+/\d+[.]spool$",
    "connectors/outages.py": r"[.]answers$",
    "storage/lease.py": r"[.]lock$",
    "storage/seals.py": r"[.]seal$",
    "storage/state_file.py": r"[.](arrow|draft)$",
    "supervisor/history.py": r"^history/.*[.]jsonl$",
    "supervisor/service_state.py and service": r"^up/(heartbeat|reserve|conf/|journal[.]log)",
    "supervisor/status.py": r"^ends/",
}
"""Which module writes files that are no state files: those below OTHER_FOLDERS, and those whose path in the lake has the pattern."""
_OTHERS = re.compile("|".join(OTHER_FILES.values()))


def state_files(lake: Location) -> Iterator[Location]:
    """Yield all files of a lake but OTHER_FILES: each is a state file, or of nobody here."""
    for file, _, _ in sorted(lake.entries()):
        path = file.below(lake)
        if OTHER_FOLDERS.isdisjoint(path.split("/")[:-1]) and not _OTHERS.search(path):
            yield file


def claims_folder(lake: Location, source: str) -> Location:
    """Return the folder of links to files of a source (connectors/sources/files.py)."""
    return (lake / CLAIMS / source).on_host


def spool_folder(lake: Location, source: str) -> Location:
    """Return the folder in which `tidemark collect` keeps what it acknowledged of a source until bronze has it."""
    return (lake / SPOOL / source).on_host


def fast_alerts_folder(lake: Location) -> Location:
    """Return the folder in which `tidemark alerts watch` keeps its state."""
    return (lake / FAST_ALERTS).on_host
