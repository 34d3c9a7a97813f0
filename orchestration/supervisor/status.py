"""How far each flow, source and sink is, from what the lake remembers: no Spark is started, and no source or sink is asked.

A checkpoint of Spark holds `offsets/N`, up to where batch N reads, and `commits/N`, written once batch N is done. A Delta source's offset
is a version and the index of the last file read of it; a negative index means that nothing of that version is read yet.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from orchestration.conf.model import Conf, Source
from orchestration.connectors.outages import current_outage
from orchestration.connectors.sinks.dead_rows import dead_rows
from orchestration.connectors.sinks.sink_states import read_state
from orchestration.connectors.sources.all import source_of
from orchestration.connectors.sources.spool import BYTE, SEGMENT
from orchestration.connectors.sources.spool_records import MARK_BYTES, waiting
from orchestration.errors import without_secrets
from orchestration.jobs.sinks import newest_table
from orchestration.location import Location
from orchestration.storage import positions
from orchestration.storage.checkpoints import Batch, DamagedCheckpointError, last_batch, offsets, read_up_to
from orchestration.storage.delta import added, commit, committed_at, is_table, max_in_log, open_table, version_of
from orchestration.storage.generations import Generation
from orchestration.storage.lake_layout import spool_folder
from orchestration.storage.lane_record import FLOW
from orchestration.storage.lanes import lanes_of
from orchestration.storage.snapshots import all_snapshots
from orchestration.storage.source_offsets import SourceOffset, offsets_told_at, rows_since, source_offsets
from orchestration.storage.tables import LakeStore, following
from orchestration.utc import from_micros, to_iso

LEDGER, EVENTS = "silver.ledger", "bronze.events"
FLOW_COLUMNS = ("flow", "table", "rows", "last_batch", "last_batch_at", "watermark_at", "lag_seconds", "behind")
WAITING = ("waiting_messages", "waiting_bytes", "lag_seconds")
SOURCE_COLUMNS = ("source", "kind", "state", "down_since", "offset", "last_received_at", "rows_last_hour", *WAITING, "reason")
SINK_COLUMNS = (
    *("sink", "table", "target", "snapshot", "sent_at", "snapshots_behind", "rows_behind", "lag_seconds", "dead_rows"),
    *("down_since", "reason"),
)
ENDS = "ends"
"""Folder of `<source>.json`: the ends of a source when a run last looked."""


@dataclass(frozen=True)
class Status:
    """How far all is at an instant: a row each, FLOW_COLUMNS, SOURCE_COLUMNS and SINK_COLUMNS."""

    at: datetime
    sources: list[dict[str, Any]]
    flows: list[dict[str, Any]]
    sinks: list[dict[str, Any]]


@dataclass(frozen=True)
class Arrears:
    """`behind`: rows of the source that the flow has not read; `lag_seconds`: how long the oldest of them waits, 0 where there are none."""

    lag_seconds: float | None = None
    behind: int | None = None


def read_status(conf: Conf, now: datetime) -> Status:
    return Status(now, source_status(conf, now), flow_status(conf, now), sink_status(conf, now))


def flow_status(conf: Conf, now: datetime) -> list[dict[str, Any]]:
    """Return one row a flow and table (FLOW_COLUMNS), as data passes them; instants in UTC, None where there is nothing to say yet.

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
    batch = Batch()
    with suppress(DamagedCheckpointError, OSError):
        batch = last_batch(checkpoint)
        if batch.last_batch is not None:
            batch = replace(batch, last_batch_at=offsets(checkpoint, batch.last_batch).began_at)
    return batch


def flows(conf: Conf, generation: Generation) -> Iterator[tuple[str, str | None, list[str]]]:
    """Name, source table and tables of each flow; told again as orchestration.flows takes a second to import; a test compares the two."""
    yield EVENTS, None, [EVENTS]
    yield from ((lane, EVENTS, [FLOW]) for lane in lanes_of(LakeStore(conf, generation)).flows)
    yield LEDGER, EVENTS, ["silver.quarantine", "silver.late", "silver.duplicates"]
    for stream in conf.streams:
        yield f"gold.{stream}", "silver.readings", [generation.gold(stream, kind) for kind in ("aggregates", "vectors")]
    if conf.incrementals:
        yield positions.FLOWS, None, following(conf, generation)
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
    return Batch(max(batches), committed_at(events, offsets_told_at(events))) if batches else Batch()


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
    names = lake.conf.incrementals
    started = [flow for name in names if (flow := positions.step_file(lake, name).read())]
    if len(started) < len(names):
        return Batch()
    at, watermark = max(flow.noted_at for flow in started), max(min(flow.after.until for flow in started), 0)
    return Batch(min(flow.after.bronze_batch for flow in started), from_micros(at) if at else None, from_micros(watermark))


def _last_written_at(table: Location) -> datetime:
    """When the newest commit that brought rows was made; compaction brings none."""
    version = version_of(table)
    newest = next((number for number in range(version, 0, -1) if any(add["dataChange"] for add in added(table, number))), version)
    return committed_at(table, newest)


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


def source_status(conf: Conf, now: datetime) -> list[dict[str, Any]]:
    """Return one row a source of conf (SOURCE_COLUMNS), in its order; instants in UTC, None where there is nothing to say.

    `state`: `paused`, `down` when it was asked last, `new` as long as bronze has read nothing of it, else `up`.
    """
    events = LakeStore(conf).table_path("bronze.events")
    offsets, rows = source_offsets(events), rows_since(events, now - timedelta(hours=1))
    cells = ((declared, offsets.get(name), rows.get(name, 0)) for name, declared in conf.sources.items())
    return [_unless_broken(partial(_of_source, conf, *of_source, now), SOURCE_COLUMNS, of_source[0].name, now) for of_source in cells]


def _unless_broken(row_of: Callable[[], dict[str, Any]], columns: Sequence[str], name: str, now: datetime) -> dict[str, Any]:
    """Return the row of a source or sink; where that breaks, one that says why it is down."""
    try:
        return row_of()
    except Exception as error:
        broken = {"state": "down", "rows_last_hour": 0, "dead_rows": 0, "down_since": to_iso(now), "reason": without_secrets(error)}
        return {column: broken.get(column) for column in columns} | {columns[0]: name}


def _of_source(conf: Conf, declared: Source, stored: SourceOffset | None, rows: int, now: datetime) -> dict[str, Any]:
    name = declared.name
    outage = current_outage(conf.lake, "source", name) or current_outage(conf.lake, "collected", name)
    waiting_bytes, lag_seconds = _waiting(conf, name, stored, now)
    waiting_messages = source_of(conf, name).waiting(stored.offset if stored else {}, _noted_ends(conf.lake, name))
    state = "paused" if declared.is_paused else "down" if outage else "up" if stored else "new"
    cells = (
        *(name, declared.transport.kind, state, outage and outage.since),
        *(stored and source_of(conf, name).describe(stored.offset), stored and stored.received_at, rows),
        *(waiting_messages, waiting_bytes, lag_seconds, outage and outage.reason),
    )
    return dict(zip(SOURCE_COLUMNS, cells, strict=True))


def _waiting(conf: Conf, name: str, stored: SourceOffset | None, now: datetime) -> tuple[int | None, float | None]:
    """Return the bytes of pushed events that bronze does not have, and for how many seconds the first of them has waited."""
    folder, offset = spool_folder(conf.lake, name), stored.offset if stored else {}
    if not folder.local.exists():
        return None, None
    waiting_bytes, since_us = waiting(folder.local, int(offset.get(SEGMENT, -1)), int(offset.get(BYTE, MARK_BYTES)))
    lag = 0.0 if since_us is None else (now - datetime.fromtimestamp(0, UTC)).total_seconds() - since_us / 1_000_000
    return waiting_bytes, round(max(lag, 0.0), 1)


def note_ends(lake: Location, source: str, ends: Mapping[str, int]) -> None:
    """Note the ends of a source in the place of those before; without a word where the disk is full, as nothing depends on it."""
    file = (lake / ENDS / f"{source}.json").local
    draft = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(ends))
        draft.replace(file)


def _noted_ends(lake: Location, source: str) -> Mapping[str, int]:
    """Return the ends by position, as the source names it; empty where none are noted."""
    try:
        ends: dict[str, int] = json.loads((lake / ENDS / f"{source}.json").local.read_text())
    except (OSError, ValueError):
        return {}
    return ends


def sink_status(conf: Conf, now: datetime) -> list[dict[str, Any]]:
    """Return one row a sink (SINK_COLUMNS); None where there is nothing to say yet.

    `rows_behind`: rows that the newest snapshot has and the target has not. `lag_seconds`: the age of the oldest snapshot that it lacks.
    """
    return [_unless_broken(partial(_of_sink, conf, name, now), SINK_COLUMNS, name, now) for name in conf.sinks]


def _of_sink(conf: Conf, name: str, now: datetime) -> dict[str, Any]:
    state = read_state(conf, name)
    sent, behind, rows, lag = state.sent, None, None, None
    pinned = newest_table(conf, name)
    if pinned is not None:
        missing = [snapshot for snapshot in all_snapshots(conf.lake) if sent is None or snapshot.snapshot_id > sent.snapshot_id]
        missing = [snapshot for snapshot in missing if snapshot.snapshot_id <= pinned.position.snapshot_id]
        behind, lag = len(missing), round(max((now - missing[0].at).total_seconds(), 0.0), 1) if missing else 0.0
        rows = 0 if sent == pinned.position else pinned.count(None if pinned.is_replaced_since(sent) else sent)
    settings, outage = conf.sinks[name], current_outage(conf.lake, "sink", name)
    far = sent and sent.snapshot_id, state.sent_at, behind, rows, lag
    cells = name, settings.table, settings.target, *far, len(dead_rows(conf.lake, name))
    return dict(zip(SINK_COLUMNS, (*cells, outage and outage.since, outage and outage.reason), strict=True))
