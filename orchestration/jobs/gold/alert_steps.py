"""Steps by which alerts are judged: bronze batches and ticks of the clock behind them, and who is to send since when.

The wall clock of a step is when its batch began, or the instant of the tick; never before that of the step before.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa

from gold.alerts.spec import Alert
from orchestration.engine.lake import Lake
from orchestration.jobs.ranges import Range
from orchestration.location import Location
from orchestration.storage import registry
from orchestration.storage.delta import ask, open_table, path_of
from orchestration.storage.ops_tables import CLOCK, TICKS
from orchestration.storage.positions import FlowPosition
from orchestration.utc import to_micros


class Step(NamedTuple):
    """A bronze batch, or a tick behind one. `event_time`: of a tick that closes windows. Instants in microseconds since 1970."""

    batch: int
    is_tick: bool
    wall: int
    event_time: int | None = None


class Membership(NamedTuple):
    """A device is to send from an instant on, or not any more."""

    at: int
    device: str
    is_member: bool


def steps_between(lake: Lake, start: FlowPosition, end: FlowPosition, stream: str | None = None, ticks: Iterable[int] = ()) -> list[Step]:
    """Return the steps behind `start` up to `end`. `stream`: with the ticks that close windows of that one. `ticks`: others at the end."""
    batches = _began(lake.conf.lake, start.bronze_batch, end.bronze_batch)
    steps = [Step(batch, False, began) for batch, began in batches]
    ticked = CLOCK.rows(lake.conf.lake, [("bronze_batch", ">=", start.bronze_batch)])
    steps += [Step(tick.bronze_batch, True, to_micros(tick.ticked_at)) for tick in ticked]
    for tick in TICKS.rows(lake.conf.lake, [("stream", "=", stream)]) if stream else ():
        at = to_micros(tick.ticked_at)
        steps.append(
            Step(max((batch for batch, began in batches if began <= at), default=start.bronze_batch), True, at, to_micros(tick.event_time))
        )
    steps += [Step(end.bronze_batch, True, at) for at in ticks]
    behind, wall = list[Step](), start.until
    for step in sorted(steps, key=lambda step: step[:3]):
        is_new = step.batch > start.bronze_batch or (step.batch == start.bronze_batch and step.is_tick and step.wall > start.until)
        is_reached = step.batch < end.bronze_batch or (step.batch == end.bronze_batch and (not step.is_tick or step.wall <= end.until))
        if is_new and is_reached:
            wall = max(wall, step.wall)
            behind.append(step._replace(wall=wall))
    return behind


def memberships(lake: Lake, alert: Alert) -> list[Membership]:
    """Return when devices that an alert looks at join and leave, by the registry; none where it looks at groups, sources or vectors."""
    signal = alert.signal
    if not signal.is_of_devices:
        return []
    members, changes = set[str](), list[Membership]()
    versions = sorted(registry.versions(lake.conf.lake), key=lambda row: (row["registered_at"], row["moved_at"] or registry.ALWAYS))
    for version in {(row["registered_at"], row["device_id"]): row for row in versions}.values():  # the last one says where it is now
        device = version["device_id"]
        is_member = version["is_known"] and (signal.group is None or signal.group in (version["groups"] or ()))
        if is_member != (device in members):
            (members.add if is_member else members.discard)(device)
            changes.append(Membership(to_micros(version["registered_at"]), device, is_member))
    return changes


@lru_cache(16)
def _began(lake: Location, after: int, up_to: int) -> list[tuple[int, int]]:
    """Return bronze batches and when each began: once for all alerts that are at the same position."""
    query = f"select bronze_batch, max(ingested_at) as began from rows where {Range(after, up_to).sql()} group by bronze_batch"
    rows = ask(query, {"rows": open_table(path_of(lake, "bronze.events"))}).read_all()
    return sorted(zip(rows["bronze_batch"].to_pylist(), rows["began"].cast(pa.int64()).to_pylist(), strict=True))
