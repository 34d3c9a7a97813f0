"""A person releases versions of a table that a gate holds back; every release is kept in quality.releases."""

import getpass
import socket
from datetime import datetime

from orchestration.engine.lake import Lake
from orchestration.errors import ConfError
from orchestration.quality import quality_tables
from orchestration.storage.gate_state import RELEASES, Release, closed_gates


def release_version(lake: Lake, table: str, version: int, reason: str, at: datetime) -> str:
    """Release the versions of a table up to this one; returns what was released, in words. `at`: UTC.

    ConfError if the version is not held back, or without a reason.
    """
    if not reason.strip():
        raise ConfError("--reason is empty; say why what failed may be in gold: it is kept for ever.")
    with quality_tables.lock(lake.conf.lake):
        held = next((state for state in closed_gates(lake.conf, lake.table_path) if state.table == table), None)
        if held is None or held.failure is None:
            raise ConfError(f"no version of {table} is held back; `tidemark status` tells which are.")
        first, last = held.version + 1, held.failure.version
        if not first <= version <= last:
            which = f"version {last}" if first == last else f"versions {first} to {last}"
            raise ConfError(f"version {version} of {table} is not held back; {which} can be released.")
        by, failed = f"{getpass.getuser()}@{socket.gethostname()}", held.failure.found
        RELEASES.append(lake.conf.lake, [Release(table, held.table_id, version, held.version, reason.strip(), by, at, failed)])
    return f"{table} up to version {version}; failed: {'; '.join(held.failure.found)}"
