"""What was done by the clock: rows of ops.runs, which `tidemark up` alone writes."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from orchestration.location import Location
from orchestration.storage.commit import append_rows, compact_many
from orchestration.storage.delta import INSTANT, is_table, path_of, table_of

TABLE = "ops.runs"
SCHEMA = pa.schema(
    [
        *(("job", pa.string()), ("due_at", INSTANT), ("started_at", INSTANT), ("seconds", pa.float64())),
        *(("outcome", pa.string()), ("snapshot_id", pa.int64()), ("reason", pa.string())),
    ]
)


@dataclass(frozen=True)
class RunOfJob:
    """Grain: one time that a job of `schedules` was due. `outcome`: declared, when `up` saw it first, and only counts from then; done; no,
    where its answer is no, as of a ledger that misses events; broke, with the reason; ended, with `up`.

    `snapshot_id`: the newest when it began; null where there was none.
    """

    job: str
    due_at: datetime
    started_at: datetime
    seconds: float
    outcome: str
    snapshot_id: int | None = None
    reason: str | None = None


def append_run(lake: Location, run: RunOfJob) -> None:
    path = path_of(lake, TABLE)
    append_rows(path, pa.Table.from_pylist([asdict(run)], SCHEMA))
    compact_many(path)


def last_due(lake: Location) -> dict[str, datetime]:
    """The last time that is dealt with, by job."""
    rows: list[dict[str, Any]] = table_of(path_of(lake, TABLE), ["job", "due_at"]).to_pylist() if is_table(path_of(lake, TABLE)) else []
    return {row["job"]: row["due_at"] for row in sorted(rows, key=lambda row: row["due_at"])}
