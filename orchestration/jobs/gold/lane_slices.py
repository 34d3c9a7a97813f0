"""The end of a slice where silver has several lanes, and the readings that it leaves out: see gold/flows/in_time.py."""

from dataclasses import replace

from gold.flows.in_time import Brought, Final, LaneBound, Late, advance
from orchestration.engine.lake import Lake
from orchestration.storage.delta import answers
from orchestration.storage.lane_record import FLOW, Lanes
from orchestration.storage.positions import FlowPosition

BROUGHT = """
  select bronze_batch, lane, arrow_cast(max(event_time), 'Int64') as newest,
    arrow_cast(min(case when is_taken then event_time end), 'Int64') as oldest
  from (select bronze_batch, event_time, {lane} as lane, {taken} as is_taken from rows where bronze_batch > {start} and {end})
  group by bronze_batch, lane order by bronze_batch, lane
"""


def final_position(lake: Lake, lanes: Lanes, start: FlowPosition, up_to: int, taken: str) -> FlowPosition:
    """Return the position behind bronze batch `up_to`. `taken`: SQL of the readings that count."""
    final, _ = _advance(lake, lanes, start, taken, up_to)
    at = max(final.at, start.until)
    return FlowPosition(up_to, at, lake.conf.policy.lateness_seconds, final=replace(final, at=at))


def in_time(lake: Lake, lanes: Lanes, start: FlowPosition, taken: str) -> str:
    """SQL of readings that a slice from `start` does not leave out; of all batches that silver has: later ones bring nothing older."""
    _, late = _advance(lake, lanes, start, taken, None)
    return " and ".join(map(_not_late, late)) or "true"


def _not_late(late: Late) -> str:
    before = f"arrow_cast(event_time, 'Int64') < {late.before}"
    return f"not (bronze_batch between {late.first} and {late.last} and {before})"


def _advance(lake: Lake, lanes: Lanes, start: FlowPosition, taken: str, up_to: int | None) -> tuple[Final, list[Late]]:
    """From where the flow is; from the first batch where it began before there were lanes."""
    is_known = start.bronze_batch < 0 or bool(start.final.newest)
    begin, final = (start.bronze_batch, start.final) if is_known else (-1, Final())
    end = "true" if up_to is None else f"bronze_batch <= {up_to}"
    query = BROUGHT.format(lane=lanes.of_row(), taken=taken, start=begin, end=end)
    rows = answers(lake.table_path(FLOW), query)
    bounds = {lane.name: LaneBound(lane.bounds.lateness_seconds, lane.last) for lane in lanes.every}
    bounds[""] = LaneBound(lake.conf.policy.lateness_seconds, lanes.last_of_default)
    return advance(final, (Brought(**row) for row in rows), bounds)
