"""Maintenance: small files become large ones, expired snapshots and what nobody can ask for any more are removed. It changes no answer.

It runs in the process that writes the lake, and while it commits to a table nobody else does: two writers of one table on a local disk
lose commits. Files go one maintenance after the last snapshot that pins them, so whoever asked it just before can read to the end.
Compaction moves rows without changing data, and Delta's streams pass over such commits; it needs no Spark.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from bronze.schema import EVENTS_PARTITION
from gold.schema import FLOW_KINDS
from orchestration import crash
from orchestration.alerts import notifications
from orchestration.alerts.notifications import DEAD_LETTERS, NOTIFICATIONS
from orchestration.alerts.records import ACKNOWLEDGEMENTS, SILENCES
from orchestration.connectors.sinks.dead_rows import DEAD_ROWS, dead_rows
from orchestration.connectors.sinks.sink_states import snapshots_of_sinks
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.storage import generations, references
from orchestration.storage.bindings import start_of
from orchestration.storage.commit import FULL_BYTES, compact
from orchestration.storage.delta import in_log, is_table, max_in_log, open_table
from orchestration.storage.generations import GENERATIONS
from orchestration.storage.lanes import EVENTS, lanes_of, versions_with_state
from orchestration.storage.log import Log, retained_since
from orchestration.storage.marts import needed_snapshots
from orchestration.storage.models import MODELS
from orchestration.storage.ops_tables import CLOCK, GAPS, LABELS, LEDGER, NOTES, OBJECTS, PROOFS, RUNS, TICKS
from orchestration.storage.retention import (
    Position,
    RetentionNeeds,
    positions,
    removable_files,
    removable_log,
    remove,
)
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS, all_snapshots, expired
from orchestration.storage.source_offsets import offsets_told_at

NOTES_RETAINED = timedelta(days=3 * 365)
"""How long notes of people are kept: they are small, and explain charts of earlier years."""


@dataclass(frozen=True)
class MaintainedTable:
    """Grain: one table in one maintenance. `files`: of its newest version before; `compacted`: of these, small ones whose rows went into
    large ones; `removed`: files that were removed from the disk, and `freed_bytes` theirs; `log_entries`: entries of its log that were
    removed.
    """

    at: datetime
    table: str
    files: int
    compacted: int
    removed: int
    freed_bytes: int
    log_entries: int


MAINTENANCE = Log("ops.maintenance", MaintainedTable, order="at", is_maintained=True)
LOGS = {
    log.table: log
    for log in (
        TICKS,
        CLOCK,
        GAPS,
        OBJECTS,
        MODELS,
        SNAPSHOTS,
        GENERATIONS,
        MAINTENANCE,
        NOTIFICATIONS,
        DEAD_LETTERS,
        DEAD_ROWS,
        RUNS,
        NOTES,
        LABELS,
        PROOFS,
        ACKNOWLEDGEMENTS,
        SILENCES,
    )
}
OF_NO_FLOW = (references.TABLE, LEDGER, *LOGS)
COLUMNS = MAINTENANCE.schema.names[1:]

OF_ONE_GROUP = "device_group, window_end"
"""How tables of groups are sorted: most queries are of one group."""
Hold = Callable[[str], AbstractContextManager[object]]
"""Given the name of a table: while it is held, nobody else appends to the table."""


@dataclass(frozen=True)
class MaintenanceTask:
    """The maintenance of one table. `small`: files that compaction merges, by their partition."""

    name: str
    location: Location
    files: int
    small: Mapping[str | None, int]
    removable: Sequence[Location]
    log: Sequence[Location]

    def as_row(self) -> dict[str, Any]:
        freed = sum(file.size() for file in self.removable)
        counts = self.files, sum(self.small.values()), len(self.removable), freed, len(self.log)
        return dict(zip(COLUMNS, (self.name, *counts), strict=True))


def maintenance_tasks(lake: Lake, pinned: Sequence[Snapshot], now: datetime) -> Iterator[MaintenanceTask]:
    """Table by table; each is looked at when it is asked for. `pinned`: all snapshots."""
    for name in (*lake.tables, *OF_NO_FLOW):
        path = lake.table_path(name)
        if is_table(path):
            needs = _needs(lake, name, pinned, now)
            log = in_log(open_table(path), "path", "size_bytes", f"partition.{EVENTS_PARTITION}").to_pydict()
            yield MaintenanceTask(name, path, len(log["path"]), _small(log), removable_files(path, needs, now), removable_log(path, needs))


def maintain(lake: Lake, now: datetime, hold: Hold) -> Iterator[dict[str, Any]]:
    """Yield what was done by table (COLUMNS); a caller may stop between two. Meanwhile only what `hold` holds, and logs, may be written."""
    done, snapshots = [], all_snapshots(lake.conf.lake)
    for task in maintenance_tasks(lake, snapshots, now):
        row = task.as_row()
        for partition in task.small:
            with LOGS[task.name].hold(lake.conf.lake) if task.name in LOGS else hold(task.name):
                compact(task.location, FULL_BYTES, partition, _order(task.name), partial(lake.by_tasks, "maintenance"))
            crash.point(crash.Point.COMPACTED)
        for file in (*task.removable, *task.log):
            remove(file)
            crash.point(crash.Point.FILE_REMOVED)
        done.append(MaintainedTable(now, **row))
        yield row
    if gone := expired_snapshots(lake, snapshots, now):
        SNAPSHOTS.delete(lake.conf.lake, "snapshot_id", [snapshot.snapshot_id for snapshot in gone])
    MAINTENANCE.append(lake.conf.lake, done)
    retire_records(lake.conf.lake, now)


def retire_records(lake: Location, now: datetime) -> None:
    """Remove what is old from the logs that only grow: no dead row, and not the last run of a job, from which its next time is counted."""
    notifications.retire(lake, now)
    NOTES.retire(lake, retained_since(now, NOTES_RETAINED))
    for log in (MAINTENANCE, PROOFS):
        log.retire(lake, retained_since(now))
    if DEAD_ROWS.reaches_back(lake, retained_since(now)):
        dead = {sink: dead_rows(lake, sink) for sink in {row.sink for row in DEAD_ROWS.rows(lake)}}
        DEAD_ROWS.retire(lake, retained_since(now), lambda row: row == dead[row.sink].get(row.row_key))
    if RUNS.reaches_back(lake, retained_since(now)):
        last = RUNS.last_of_each(lake, "job")
        RUNS.retire(lake, retained_since(now), lambda run: run == last[run.job])


def expired_snapshots(lake: Lake, taken: Sequence[Snapshot], now: datetime) -> list[Snapshot]:
    """List the snapshots that have expired by the conf; those that marts were built of, and those that sinks have, stay."""
    return expired(taken, _retain(lake), now, needed_snapshots(lake.conf.lake) | snapshots_of_sinks(lake.conf))


def next_at(lake: Lake, now: datetime) -> datetime | None:
    """When the lake is to be maintained; None for never. It begins to count with the first snapshot."""
    every = timedelta(seconds=lake.conf.maintenance.every_seconds)
    if not every:
        return None
    first_taken = (snapshot.at for snapshot in all_snapshots(lake.conf.lake)[:1])
    return (max_in_log(MAINTENANCE.path(lake.conf.lake), "at") or next(first_taken, now)) + every


def _order(name: str) -> str | None:
    """Return the sort order of a table of gold: the columns by which most queries ask."""
    kind = name.removeprefix("gold.").partition("@")[0]
    if kind in FLOW_KINDS:
        return ", ".join(("flow", *FLOW_KINDS[kind][1]))
    if kind == "alerts":
        return "alert, entity, changed_at"
    return OF_ONE_GROUP if name.startswith("gold.") else None


def _retain(lake: Lake) -> timedelta:
    return timedelta(seconds=lake.conf.maintenance.retain_seconds)


def _needs(lake: Lake, name: str, taken: Sequence[Snapshot], now: datetime) -> RetentionNeeds:
    """Snapshots of other generations pin tables of theirs; bronze is one of them all."""
    path, root = lake.table_path(name), lake.conf.lake
    places = {generation.generation: generation.table(root, name) for generation in generations.switches(root)}
    of_table = (snapshot for snapshot in taken if name in snapshot.versions and places.get(snapshot.generation, path) == path)
    pinned = {snapshot.versions[name] for snapshot in of_table}
    readers = positions(root, open_table(path))
    if name == EVENTS:
        lanes = lanes_of(lake)
        unbegun = (flow for flow in lanes.flows if not (lake.checkpoint(flow) / "offsets" / "0").exists())
        readers += (Position(start_of(lake, flow).version) for flow in unbegun)
        # A replay reads bronze, commit by commit, from the first event that is not behind a watermark, weeks old if nothing came.
        readers += map(Position, versions_with_state(lake, lanes).values())
    pinned |= {reader.version for reader in readers if reader.is_state}
    unread = [reader.version + reader.is_state for reader in readers]
    told_at = offsets_told_at(path) if name == EVENTS else -1
    return RetentionNeeds(sorted(pinned), min(unread, default=None), now - _retain(lake), None if told_at < 0 else told_at)


def _small(log: Mapping[str, list[Any]]) -> dict[str | None, int]:
    days = log.get(f"partition.{EVENTS_PARTITION}", [None] * len(log["path"]))
    small = Counter(day and str(day) for day, size in zip(days, log["size_bytes"], strict=True) if size < FULL_BYTES)
    return {partition: count for partition, count in small.items() if count > 1}
