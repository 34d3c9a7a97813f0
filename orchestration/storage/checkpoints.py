"""Reads what Spark writes into a checkpoint before batch N runs: its watermark, and up to where it reads each source."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.kept import content_of
from orchestration.utc import from_micros

NOTHING_YET = "-"
REPLAY = "run `tidemark replay` to build silver and gold anew from bronze, beside the old ones."
REPAIR = f"Restore the checkpoint, or {REPLAY}"
"""Way out of a damaged checkpoint of a flow."""


class DamagedCheckpointError(TidemarkError, ValueError):
    """A file that Spark wrote does not say what it must."""


@dataclass(frozen=True)
class Offsets:
    """`read`: by the name of the source; one that has nothing to read yet is not in it. Rows behind `watermark_ms` are late.

    `began_at`: when Spark planned the batch.
    """

    began_at: datetime
    watermark_ms: int
    read: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Batch:
    """The last micro-batch that a flow finished. `watermark_at` None: the flow has none, or has seen no event time yet.

    `last_batch_at`: when Spark began it, as Spark notes no end; of what Spark does not run, when it was committed.
    """

    last_batch: int | None = None
    last_batch_at: datetime | None = None
    watermark_at: datetime | None = None


def offsets(checkpoint: Location, batch: int) -> Offsets:
    """Read the offsets of one batch. Lines: the version of the format, what is true of the batch as a whole, then a source each.

    That is `source:offset`; a source without a name has its place for one, and in v1 all have. DamagedCheckpointError.
    """
    with _whole(checkpoint / "offsets" / str(batch)) as text:
        version, whole, *lines = text.splitlines()
        named = [line.partition(":")[::2] for line in lines] if version != "v1" else [(str(n), line) for n, line in enumerate(lines)]
        times, read = json.loads(whole), {name: json.loads(at) for name, at in named if at != NOTHING_YET}
        return Offsets(from_micros(1000 * int(times["batchTimestampMs"])), int(times["batchWatermarkMs"]), read)


@contextmanager
def _whole(file: Location) -> Iterator[str]:
    """The text of a file of a checkpoint; what fails while it is taken apart says where the damage is."""
    try:
        yield content_of(file).decode()
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        hint = "restore the checkpoint from a backup, or build silver and gold anew with `tidemark replay`."
        raise DamagedCheckpointError(f"{file} is damaged: {hint}") from error


def clear_drafts(checkpoint: Location) -> None:
    """Remove drafts of a query that was killed while it noted its first batch: Spark refuses to begin where anything lies."""
    if newest_batch(checkpoint / "offsets") < 0:
        for draft in checkpoint.glob("offsets/.*"):
            draft.delete()


def newest_batch(log: Location) -> int:
    """The greatest number in one of a checkpoint's logs; -1 in an empty one."""
    return max((int(file.name) for file in log.glob("*") if file.name.isdecimal()), default=-1)


def last_batch(checkpoint: Location) -> Batch:
    """The newest finished batch of a checkpoint, without when it began, which is in its offsets; DamagedCheckpointError."""
    newest = newest_batch(checkpoint / "commits")
    if newest < 0:
        return Batch()
    with _whole(checkpoint / "commits" / str(newest)) as text:
        watermark = json.loads(text.splitlines()[1]).get("nextBatchWatermarkMs") or 0
    return Batch(newest, watermark_at=from_micros(1000 * watermark) if watermark > 0 else None)


def read_up_to(checkpoint: Location, batch: int | None, table_id: str) -> tuple[int, int]:
    """Version and index of the source's file that the batch read last; (0, -1) before the first batch, None."""
    for offset in offsets(checkpoint, batch).read.values() if batch is not None else ():
        if offset.get("reservoirId") == table_id:
            return int(offset["reservoirVersion"]), int(offset["index"])
    return 0, -1
