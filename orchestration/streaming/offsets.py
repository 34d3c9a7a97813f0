"""What Spark writes down in `offsets/N` of a checkpoint before batch N runs: its watermark, and up to where it reads each source."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOTHING_YET = "-"


@dataclass(frozen=True)
class Offsets:
    """`read`: by the name of the source; one that has nothing to read yet is not in it. Rows behind `watermark_ms` are late."""

    watermark_ms: int
    read: Mapping[str, Mapping[str, Any]]


def offsets(checkpoint: Path, batch: int) -> Offsets:
    """Of one batch. Lines: the version of the format, what is true of the batch as a whole, then a source each.

    That is `source:offset`; a source without a name has its place for one, and in v1 all have.
    """
    version, whole, *lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    named = [line.partition(":")[::2] for line in lines] if version != "v1" else [(str(n), line) for n, line in enumerate(lines)]
    return Offsets(int(json.loads(whole)["batchWatermarkMs"]), {name: json.loads(at) for name, at in named if at != NOTHING_YET})


def knows_sources_by_name(checkpoint: Path) -> bool:
    """False where an earlier version of Tidemark began it: then it knows them by their places."""
    batches = [int(file.name) for file in (checkpoint / "offsets").glob("*") if file.name.isdecimal()]
    return not batches or (checkpoint / "offsets" / str(max(batches))).read_text().startswith("v2")
