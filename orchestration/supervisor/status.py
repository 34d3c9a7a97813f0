"""How far each flow is, read from the Delta logs and the checkpoints: without Spark, without reading a row, and beside a running pipeline.

A checkpoint of Spark holds `offsets/N`, up to where batch N reads, and `commits/N`, written once batch N is done. A Delta source's offset
is a version and the index of the last file read of it; a negative index means that nothing of that version is read yet.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from orchestration.conf.model import Conf
from orchestration.location import Location
from orchestration.storage import positions
from orchestration.storage.checkpoints import Batch, DamagedCheckpointError, last_batch, read_up_to
from orchestration.storage.delta import added, commit, is_table, max_in_log, open_table, version_of
from orchestration.storage.generations import Generation
from orchestration.storage.source_offsets import offsets_told_at, source_offsets
from orchestration.storage.tables import LakeStore
from orchestration.utc import from_micros

LEDGER, EVENTS = "silver.ledger", "bronze.events"
COLUMNS = ("flow", "table", "rows", "last_batch", "last_batch_at", "watermark_at", "lag_seconds", "behind")


@dataclass(frozen=True)
class Arrears:
    """`behind`: rows of the source that the flow has not read; `lag_seconds`: how long the oldest of them waits, 0 where there are none."""

    lag_seconds: float | None = None
    behind: int | None = None


def status(conf: Conf, now: datetime) -> list[dict[str, Any]]:
    """One row a flow and table, in the order in which data passes them; instants in UTC, None where there is nothing to say yet.

    Bronze has no arrears here: what waits for it are files, not rows.
    """
    lines, lake = [], LakeStore(conf)
    for flow, source, tables in flows(conf, lake.generation):
        if flow == LEDGER:
            batch, arrears = of_ledger(lake, now)
        elif flow == positions.FLOWS:
            batch, arrears = _of_flows(lake), Arrears()
        elif flow == EVENTS:
            batch, arrears = of_bronze(lake.table_path(EVENTS)), Arrears()
        else:
            checkpoint = lake.checkpoint(flow)
            batch = _last_batch(checkpoint)
            arrears = arrears_of(checkpoint, batch, lake.table_path(source), now) if source else Arrears()
        lines += [{"flow": flow, "table": name, "rows": rows(lake.table_path(name))} | asdict(batch) | asdict(arrears) for name in tables]
    return lines


def _last_batch(checkpoint: Location) -> Batch:
    """None of one that is damaged, as a run says: who looks at the others goes on."""
    with suppress(DamagedCheckpointError):
        return last_batch(checkpoint)
    return Batch()


def flows(conf: Conf, generation: Generation) -> Iterator[tuple[str, str | None, list[str]]]:
    """Name, source table and tables of each flow; told again as orchestration.flows takes a second to import; a test compares the two."""
    yield EVENTS, None, [EVENTS]
    yield "silver.readings", EVENTS, ["silver.readings"]
    yield LEDGER, EVENTS, ["silver.quarantine", "silver.late", "silver.duplicates"]
    for stream in conf.streams:
        yield f"gold.{stream}", "silver.readings", [generation.gold(stream, kind) for kind in ("aggregates", "vectors")]
    if conf.followers:
        yield positions.FLOWS, None, conf.tables_of_followers
    yield "gold.amendments", None, [*dict.fromkeys(generation.gold(stream, "late") for stream in conf.streams)]


def rows(table: Location) -> int:
    """Rows of a table as its log counts them; 0 where there is no table."""
    return open_table(table).count() if is_table(table) else 0


def arrears_of(checkpoint: Location, batch: Batch, source: Location, now: datetime) -> Arrears:
    """Count the rows of the source after the last finished batch."""
    if not is_table(source):
        return Arrears()
    table = open_table(source)
    try:
        version, index = read_up_to(checkpoint, batch.last_batch, str(table.metadata().id))
    except (DamagedCheckpointError, OSError):  # as a run says; until it is restored nothing counts as read
        return Arrears(behind=table.count())
    waiting = []
    for number in range(version, table.version() + 1):
        counts, committed_at = commit(source, number)
        unread = sum(counts[index + 1 :] if number == version and index >= 0 else counts)
        if unread:
            waiting.append((committed_at, unread))
    lag = (now - waiting[0][0]).total_seconds() if waiting else 0.0
    # Of a table that was compacted, commits that a flow has not begun with may be gone from the log.
    behind = table.count() if batch.last_batch is None else sum(unread for _, unread in waiting)
    return Arrears(round(max(lag, 0.0), 1), behind)


def of_bronze(events: Location) -> Batch:
    """The newest bronze batch, perhaps one without rows, and when it was written."""
    batches = [source.bronze_batch for source in source_offsets(events).values()]
    return Batch(max(batches), commit(events, offsets_told_at(events))[1]) if batches else Batch()


def of_ledger(lake: LakeStore, now: datetime) -> tuple[Batch, Arrears]:
    """The newest bronze batch that the ledger has passed, when, and what bronze holds after it."""
    passed, events = lake.table_path("ops.ledger"), lake.table_path(EVENTS)
    if not is_table(passed):
        return Batch(), Arrears()
    newest = max_in_log(passed, "bronze_batch")
    batch = Batch() if newest is None else Batch(newest, _last_written_at(passed))
    return batch, arrears_after(-1 if newest is None else newest, events, now)


def _of_flows(lake: LakeStore) -> Batch:
    """The bronze batch that all flows and alerts have passed, and the instant before which all that they read is counted."""
    names = lake.conf.followers
    started = [flow for name in names if (flow := positions.step_file(lake, name).read())]
    if len(started) < len(names):
        return Batch()
    at = max(positions.step_file(lake, name).location.local.stat().st_mtime for name in names)
    watermark = from_micros(max(min(flow.after.until for flow in started), 0))
    return Batch(min(flow.after.bronze_batch for flow in started), datetime.fromtimestamp(at, UTC), watermark)


def _last_written_at(table: Location) -> datetime:
    """When the newest commit that brought rows was made; compaction brings none."""
    version = version_of(table)
    newest = next((number for number in range(version, 0, -1) if any(add["dataChange"] for add in added(table, number))), version)
    return commit(table, newest)[1]


def arrears_after(bronze_batch: int, events: Location, now: datetime) -> Arrears:
    """Count the rows of later batches in bronze. Batches increase from version to version, so only the newest versions are read."""
    if not is_table(events):
        return Arrears()
    oldest, unread = now, 0
    for number in range(version_of(events), -1, -1):
        batches = [json.loads(add["stats"])["maxValues"]["bronze_batch"] for add in added(events, number) if add["dataChange"]]
        if batches and max(batches) <= bronze_batch:
            break
        counts, committed_at = commit(events, number)
        if sum(counts):
            oldest, unread = committed_at, unread + sum(counts)
    return Arrears(round(max((now - oldest).total_seconds(), 0.0), 1), unread)
