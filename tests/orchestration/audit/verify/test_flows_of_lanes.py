"""`verify` leaves out of a flow what a run leaves out, where sources are of several lanes; the two share no line."""

from datetime import UTC, datetime, timedelta

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from gold.flows.in_time import Brought, Final, LaneBound, advance
from gold.instants import SECOND
from orchestration.audit.verify.lanes import passed
from orchestration.storage.lane_record import Lane, Lanes, Member
from silver.policy import Bounds

LATENESS = 600
LANES = Lanes([Lane("b", Bounds(3600, 300), 2, [Member("b", 2)]), Lane("old", Bounds(60, 300), 0, [Member("o", 0, 3)])])
BOUNDS = {"": LaneBound(LATENESS), "b": LaneBound(3600), "old": LaneBound(60, 3)}
ROWS = st.lists(st.tuples(st.integers(0, 7), st.sampled_from("abo"), st.integers(0, 20_000), st.booleans()), min_size=1, max_size=30)
"""Bronze batch, source, seconds, and whether the flow takes it."""
Row = tuple[int, str, int, bool]


@given(ROWS)
def test_verify_and_a_run_leave_out_the_same_readings(rows: list[Row]) -> None:
    assert left_out_by_verify(rows) == left_out_by_a_run(rows)


def left_out_by_verify(rows: list[Row]) -> set[int]:
    with duckdb.connect() as store:
        store.execute(
            "create table accepted (bronze_row bigint, bronze_batch bigint, source varchar, event_time timestamp, is_of_flow bool)"
        )
        at_utc = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=at) for _, _, at, _ in rows)
        times = [instant.replace(tzinfo=None) for instant in at_utc]
        cells = [(number, batch, source, times[number], taken) for number, (batch, source, _, taken) in enumerate(rows)]
        store.executemany("insert into accepted values (?, ?, ?, ?, ?)", cells)
        store.execute(passed(LANES, LATENESS, "is_of_flow"))
        behind = "select bronze_row from accepted join passed using (bronze_batch) where is_of_flow and event_time < passed_by"
        return {number for (number,) in store.execute(behind).fetchall()}


def left_out_by_a_run(rows: list[Row]) -> set[int]:
    by_part: dict[tuple[int, str], list[tuple[int, bool]]] = {}
    for batch, source, at, taken in rows:
        lane = "b" if source == "b" and batch >= 2 else "old" if source == "o" and batch <= 3 else ""
        by_part.setdefault((batch, lane), []).append((at, taken))
    brought = [
        Brought(batch, lane, max(at for at, _ in part) * SECOND, min((at * SECOND for at, taken in part if taken), default=None))
        for (batch, lane), part in sorted(by_part.items())
    ]
    _, late = advance(Final(), brought, BOUNDS)
    return {
        number
        for number, (batch, _, at, taken) in enumerate(rows)
        if taken and any(row.first <= batch <= row.last and at * SECOND < row.before for row in late)
    }
