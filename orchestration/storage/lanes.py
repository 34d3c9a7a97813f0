"""Lanes of silver: sources with equal bounds share a query, with a watermark of its own; so what one lane brings makes no other late."""

from dataclasses import replace

from gold.instants import SECOND
from orchestration.storage.bindings import THE_BEGINNING, Start, begin
from orchestration.storage.checkpoints import newest_batch
from orchestration.storage.delta import answers, instant, literal, version_of
from orchestration.storage.kept import delete_all
from orchestration.storage.lane_record import FLOW, Lane, Lanes, changed, record_of
from orchestration.storage.positions import newest_read
from orchestration.storage.retention import first_version, is_whole
from orchestration.storage.source_offsets import next_bronze_batch, source_offsets
from orchestration.storage.tables import LakeStore
from silver.policy import Bounds

EVENTS, LATE = "bronze.events", "silver.late"


def lanes_of(lake: LakeStore) -> Lanes:
    """Return the lanes under today's conf."""
    recorded, default = _recorded(lake), _default(lake)
    if not recorded.every and {*lake.conf.bounds.values()} <= {default}:
        return recorded
    lanes = changed(recorded, lake.conf.bounds, default, next_bronze_batch(source_offsets(lake.table_path(EVENTS))))
    return replace(lanes, every=[replace(lane, is_over=lane.is_over or _is_over(lake, lane)) for lane in lanes.every])


def begin_lanes(lake: LakeStore) -> None:
    """Write the lanes down; begin new ones so that each knows the keys it must remember, and remove the checkpoints of those that are over.

    A new one begins as far back as its sources' newest readings are not late, and drops what is written already.
    """
    lanes, recorded = lanes_of(lake), _recorded(lake)
    if lanes == recorded:
        return
    for lane in lanes.every[len(recorded.every) :]:
        begin(lake, lane.flow, (lake.tables[FLOW],), _start(lake, lane))
    record_of(lake.checkpoint(FLOW)).write(lanes)
    for lane in lanes.every:
        if lane.is_over:
            delete_all(lake.checkpoint(lane.flow))


def begin_anew(lake: LakeStore, up_to: int) -> None:
    """Begin the queries of a generation of which a batch job has written the bronze batches up to one."""
    lanes = changed(Lanes(), lake.conf.bounds, _default(lake), 0)
    if lanes.every:
        record_of(lake.checkpoint(FLOW)).write(lanes)
    versions = versions_with_state(lake, lanes)
    following = first_version(lake.table_path(EVENTS), lambda most: most["bronze_batch"] >= up_to)
    for name in lanes.flows:
        begin(lake, name, (lake.tables[FLOW],), Start(versions.get(name, following), up_to))


def versions_with_state(lake: LakeStore, lanes: Lanes) -> dict[str, int]:
    """Return, by query, the version of bronze that holds the first event whose key it must remember; none for one that has seen none."""
    others = [source for lane in lanes.present for source in lane.sources]
    of_default = f"source not in {literal(others)}" if others else "true"
    versions = {FLOW: _version_with_state(lake, lake.conf.policy.lateness_seconds, of_default)}
    versions |= {lane.flow: _version_with_state(lake, lane.bounds.lateness_seconds, _of(lane)) for lane in lanes.present}
    return {name: version for name, version in versions.items() if version is not None}


def _of(lane: Lane) -> str:
    return f"source in {literal(lane.sources)}" if lane.sources else "false"


def _version_with_state(lake: LakeStore, lateness_seconds: int, where: str) -> int | None:
    """None where nothing has come. Late rows count where there are no others: a source may have been late as a whole."""
    times = (_answer(lake, name, "arrow_cast(max(event_time), 'Int64')", where) for name in (FLOW, LATE))
    newest = next((at for at in times if at is not None), None)
    if newest is None:
        return None
    of_state = f"{where} and event_time >= {instant(newest - lateness_seconds * SECOND)}"
    batches = (_answer(lake, name, "min(bronze_batch)", of_state) for name in (FLOW, LATE))
    first = min(batch for batch in batches if batch is not None)
    return first_version(lake.table_path(EVENTS), lambda most: most["bronze_batch"] >= first)


def _answer(lake: LakeStore, name: str, what: str, where: str) -> int | None:
    rows = answers(lake.table_path(name), f"select {what} as answer from rows where {where}")
    return None if not rows or rows[0]["answer"] is None else int(rows[0]["answer"])


def _start(lake: LakeStore, lane: Lane) -> Start:
    """Without state where nothing of its sources has come, or where bronze is not there commit by commit any more."""
    if lane.first == 0:
        return THE_BEGINNING
    bronze = lake.table_path(EVENTS)
    version = _version_with_state(lake, lane.bounds.lateness_seconds, _of(lane))
    return Start(version if version is not None and is_whole(bronze, version) else version_of(bronze), lane.first - 1)


def _is_over(lake: LakeStore, lane: Lane) -> bool:
    """Whether no source is left, and silver has passed the last batch of those that were."""
    if lane.last is None:
        return False
    done = newest_batch(lake.checkpoint(FLOW) / "commits")
    passed = newest_read(lake, FLOW, done, EVENTS) if done >= 0 else None
    return passed is not None and passed >= lane.last


def _default(lake: LakeStore) -> Bounds:
    return Bounds(lake.conf.policy.lateness_seconds, lake.conf.policy.max_future_seconds)


def _recorded(lake: LakeStore) -> Lanes:
    return record_of(lake.checkpoint(FLOW)).read() or Lanes()
