"""What Spark writes down in a checkpoint before batch N runs: its watermark, up to where it reads each source, and which files are new."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orchestration.location import Location

NOTHING_YET, NO_FILES = "-", {"logOffset": -1}


@dataclass(frozen=True)
class Offsets:
    """`read`: by the name of the source; one that has nothing to read yet is not in it. Rows behind `watermark_ms` are late.

    `begun_ms`: when the batch began, since 1970; the same when it is repeated.
    """

    watermark_ms: int
    begun_ms: int
    read: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class NewFile:
    """`uri`: as Spark names it; `modified_ms`: its time, since 1970."""

    source: str
    uri: str
    modified_ms: int


@dataclass(frozen=True)
class Batch:
    """The last micro-batch that a flow finished. `watermark_at` None: the flow has none, or has seen no event time yet."""

    last_batch: int | None = None
    last_batch_at: datetime | None = None
    watermark_at: datetime | None = None


def offsets(checkpoint: Location, batch: int) -> Offsets:
    """Of one batch. Lines: the version of the format, what is true of the batch as a whole, then a source each.

    That is `source:offset`; a source without a name has its place for one, and in v1 all have.
    """
    version, whole, *lines = (checkpoint / "offsets" / str(batch)).local.read_text().splitlines()
    named = [line.partition(":")[::2] for line in lines] if version != "v1" else [(str(n), line) for n, line in enumerate(lines)]
    of_batch, read = json.loads(whole), {name: json.loads(at) for name, at in named if at != NOTHING_YET}
    return Offsets(int(of_batch["batchWatermarkMs"]), int(of_batch["batchTimestampMs"]), read)


def files(checkpoint: Location, batch: int) -> list[NewFile]:
    """Of one batch of a query that reads files by named sources."""
    before = offsets(checkpoint, batch - 1).read if batch else {}
    new = []
    for source, at in offsets(checkpoint, batch).read.items():
        log = checkpoint / "sources" / source
        for number in range(before.get(source, NO_FILES)["logOffset"] + 1, at["logOffset"] + 1):
            new += [NewFile(source, file["path"], file["timestamp"]) for file in _logged(log, number) if file["batchId"] == number]
    return new


def _logged(log: Location, number: int) -> Iterator[dict[str, Any]]:
    """Every tenth entry of a log of files holds all those before it too."""
    entry = log / str(number)
    _, *lines = (entry if entry.exists() else log / f"{number}.compact").local.read_bytes().splitlines()
    return map(json.loads, lines)


def knows_sources_by_name(checkpoint: Location) -> bool:
    """False where an earlier version of Tidemark began it: then it knows them by their places."""
    newest = newest_batch(checkpoint / "offsets")
    return newest < 0 or (checkpoint / "offsets" / str(newest)).local.read_text().startswith("v2")


def newest_batch(log: Location) -> int:
    """The greatest number in one of a checkpoint's logs; -1 in an empty one."""
    return max((int(file.name) for file in log.glob("*") if file.name.isdecimal()), default=-1)


def last_batch(checkpoint: Location) -> Batch:
    """The newest finished batch of a checkpoint."""
    newest = newest_batch(checkpoint / "commits")
    if newest < 0:
        return Batch()
    file = (checkpoint / "commits" / str(newest)).local
    at = datetime.fromtimestamp(int(file.stat().st_mtime), UTC)
    watermark = json.loads(file.read_text().splitlines()[1]).get("nextBatchWatermarkMs") or 0
    return Batch(newest, at, datetime.fromtimestamp(watermark / 1000, UTC) if watermark > 0 else None)


def read_up_to(checkpoint: Location, batch: int | None, table_id: str) -> tuple[int, int]:
    """Version and index of the source's file that the batch read last; (0, -1) before the first batch, None."""
    for offset in offsets(checkpoint, batch).read.values() if batch is not None else ():
        if offset.get("reservoirId") == table_id:
            return int(offset["reservoirVersion"]), int(offset["index"])
    return 0, -1
