"""What the log of a Delta table says of single versions, read as files: it is there as long as maintenance leaves it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestration.location import Location

LOG = "_delta_log"
"""The folder of the log, in the folder of its table."""


def commit(table: Location, version: int) -> tuple[list[int], datetime]:
    """Rows of each file that a version adds, in the log's order, and when it was committed.

    A version whose file is gone was cleaned up long after every flow passed it; one that only rearranges rows adds none.
    """
    file = log_of(table, version)
    if not file.exists():
        return [], datetime.fromtimestamp(0, UTC)
    counts = [json.loads(add.get("stats") or "{}").get("numRecords", 0) if add["dataChange"] else 0 for add in added(table, version)]
    return counts, datetime.fromtimestamp(file.local.stat().st_mtime, UTC)


def added(table: Location, version: int) -> list[dict[str, Any]]:
    """What the log says of the files that a version adds, in its order; nothing where the log is gone."""
    file = log_of(table, version)
    # As bytes: text would be cut at U+2028 and its like too, which may stand in a value of the statistics.
    lines = file.local.read_bytes().splitlines() if file.exists() else []
    return [action["add"] for line in lines if "add" in (action := json.loads(line))]


def log_of(table: Location, version: int) -> Location:
    """The file of the log that tells of a version."""
    return table / LOG / f"{version:020d}.json"


def is_draft(file: Path) -> bool:
    """Whether delta-rs is still writing the file, which then gets its name: `<name>#1`. A kill leaves it for ever."""
    return "#" in file.name
