"""Records of schema ops that several rooms use: ledger, ticks, clock, gaps, objects, jobs, notes, labels, proofs. Instants in UTC."""

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from orchestration.location import Location
from orchestration.storage.log import Log

LEDGER_FLOW = "silver.ledger"
"""The job that writes the ledger."""
LEDGER = "ops.ledger"
MEASUREMENTS = ("readings", "quarantined", "without_measurements", "late", "duplicates")
"""Outcomes of a measurement; `without_measurements`: events of healthy devices that measure nothing."""
CONFLICTS = "conflicts"
"""Duplicates whose value differs from the kept one."""
COUNTED = ("events", *MEASUREMENTS, CONFLICTS)
LEDGER_SCHEMA = pa.schema([("bronze_batch", pa.int64()), ("source", pa.string()), *((name, pa.int64()) for name in COUNTED)])
"""Grain: one bronze batch of one source, and what a retry changed of it; sums hold. `events` counts messages, the others measurements."""


@dataclass(frozen=True)
class Tick:
    """Grain: one tick of one stream. `event_time` is the instant up to which the stream hears that time has passed, plus its lateness."""

    stream: str
    event_time: datetime
    ticked_at: datetime


@dataclass(frozen=True)
class ClockTick:
    """Grain: one instant at which time alone changed an alert, behind a bronze batch. So a replay finds the same changes."""

    bronze_batch: int
    ticked_at: datetime


@dataclass(frozen=True)
class Gap:
    """Grain: messages of a partition that were gone before they were read; `bronze_batch` goes on behind. `last_offset` None: unknown."""

    source: str
    topic: str
    partition: int
    first_offset: int
    last_offset: int | None
    bronze_batch: int
    found_at: datetime


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


@dataclass(frozen=True)
class Note:
    """Grain: one note by a person. It is about the time from `begins_at` to `ends_at`."""

    begins_at: datetime
    ends_at: datetime
    text: str
    author: str
    noted_at: datetime


@dataclass(frozen=True)
class Label:
    """Grain: one judgement by a person on a time of one entity of a group. Of two on the same time the later one holds.

    `is_fault`: whether there was a fault; `kind`: which one, in words of the person.
    """

    device_group: str
    entity: str
    begins_at: datetime
    ends_at: datetime
    is_fault: bool
    kind: str
    author: str
    noted_at: datetime


@dataclass(frozen=True)
class Proof:
    """Grain: one `tidemark verify` that compared every table, or all that was new or changed since an earlier one.

    `at`: when it began. `bronze_batch`: the last of the prefix. `evaluator`: the digest of its code; `conf`: that of the conf of gold.
    `confs`: with which confs bronze was read up to there. `versions` by table; `closed_until` by stream, flow and alert. `events`: how many
    were computed again; `rows`: how many were compared.
    """

    at: datetime
    generation: int
    bronze_batch: int
    evaluator: str
    conf: str
    confs: str
    versions: dict[str, int]
    closed_until: dict[str, datetime]
    events: int
    rows: int
    differences: int


@dataclass(frozen=True)
class ClaimedObject:
    """Grain: one version of an object that a source has claimed, and once more with its `fate` where it could not be read. `number`: counts
    the claims of the source; bronze keeps the last one that was read. `noted_at`: when the row was written.
    """

    source: str
    number: int
    key: str
    version: str
    modified_at: datetime
    size_bytes: int
    noted_at: datetime
    fate: str | None = None


TICKS = Log("ops.ticks", Tick, order="ticked_at", is_maintained=True)
CLOCK = Log("ops.clock", ClockTick, order="ticked_at", is_maintained=True)
GAPS = Log("ops.gaps", Gap, order="found_at", is_maintained=True)
OBJECTS = Log("ops.objects", ClaimedObject, order="noted_at", is_maintained=True)
RUNS = Log("ops.runs", RunOfJob, order="started_at")
NOTES = Log("ops.notes", Note, order="noted_at")
LABELS = Log("ops.labels", Label, order="noted_at")
PROOFS = Log("ops.proofs", Proof, order="at")


def labels(lake: Location, group: str) -> list[Label]:
    """Return the labels of a group that hold, in order of time."""
    last = {(label.entity, label.begins_at, label.ends_at): label for label in LABELS.rows(lake, [("device_group", "=", group)])}
    return sorted(last.values(), key=lambda label: label.begins_at)
