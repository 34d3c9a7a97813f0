"""Folders of a lake beside its tables: what came and bronze may not have yet, and scratch."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestration.location import Location

CLAIMS, SPOOL, SCRATCH, FAST_ALERTS, MAPPED = "intake", "spool", ".scratch-", "fast_alerts", "mapped"
FORGOTTEN_SECONDS = 86_400


def claims_folder(lake: Location, source: str) -> Location:
    """Return the folder of links to files of a source (connectors/sources/claims.py)."""
    return lake / CLAIMS / source


def spool_folder(lake: Location, source: str) -> Location:
    """Return the folder in which `tidemark collect` keeps what it acknowledged of a source until bronze has it."""
    return lake / SPOOL / source


def fast_alerts_folder(lake: Location) -> Location:
    """Return the folder in which `tidemark alerts watch` keeps its state."""
    return lake / FAST_ALERTS


def mapped_folder(lake: Location) -> Location:
    """Return the folder of copies of small tables, which workers of Spark map into memory; each process that runs flows makes them anew."""
    return lake / MAPPED


@contextmanager
def scratch_folder(lake: Location) -> Iterator[Path]:
    """Make a folder for what tasks of Spark write and this process reads: the machines of a cluster see no folder but the lake.

    It is empty, and gone behind it; those of processes that were killed go after a day.
    """
    for folder in lake.local.glob(f"{SCRATCH}*"):
        if time.time() - folder.stat().st_mtime > FORGOTTEN_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
    with TemporaryDirectory(prefix=SCRATCH, dir=lake.local) as own:
        yield Path(own)
