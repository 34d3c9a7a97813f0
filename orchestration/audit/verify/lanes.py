"""Readings that a flow has passed when they come, where sources are of several lanes."""

from orchestration.storage.lane_record import Lanes

# What a flow has passed before each bronze batch. It waits for the slowest of the lanes that have brought it a reading by then, and never
# goes back; a lane that has lost its last source is waited for no longer.
PASSED = """
  create or replace temp table passed as
  with placed as (select bronze_batch, event_time, {lane} as lane, {of_flow} as is_taken from accepted {in_time}),
  bounds(lane, lateness, last) as (values {bounds}),
  joined as (select lane, min(bronze_batch) as since from placed where is_taken group by lane),
  every as (select distinct bronze_batch from placed),
  newest as (
    select e.bronze_batch, j.lane,
      max(date_trunc('millisecond', n.newest)) over (partition by j.lane order by e.bronze_batch) - to_seconds(b.lateness) as final
    from every e join joined j on e.bronze_batch >= j.since
    join bounds b on b.lane = j.lane and (b.last is null or e.bronze_batch <= b.last)
    left join (select bronze_batch, lane, max(event_time) as newest from placed group by all) n
      on n.bronze_batch = e.bronze_batch and n.lane = j.lane
  ),
  least as (select e.bronze_batch, min(final) as final from every e left join newest using (bronze_batch) group by e.bronze_batch)
  select bronze_batch,
    max(final) over (order by bronze_batch rows between unbounded preceding and 1 preceding) as passed_by
  from least
"""


def passed(lanes: Lanes, lateness_seconds: int, of_flow: str, in_time: str = "") -> str:
    """SQL that makes `passed`. `lateness_seconds`: of the default lane, whose name is empty. `of_flow`, `in_time`: readings that it takes,
    and those of silver, in SQL."""
    cases = "".join(
        f" when source = '{member.source}' and bronze_batch between {member.first} and {2**62 if member.last is None else member.last}"
        f" then '{lane.name}'"
        for lane in lanes.every
        for member in lane.members
    )
    ends = [("", lateness_seconds, lanes.last_of_default)] + [(lane.name, lane.bounds.lateness_seconds, lane.last) for lane in lanes.every]
    bounds = ", ".join(f"('{name}', {seconds}, {'null' if last is None else last}::bigint)" for name, seconds, last in ends)
    return PASSED.format(lane=f"case{cases} else '' end", bounds=bounds, of_flow=of_flow, in_time=in_time)
