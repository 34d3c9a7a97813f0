"""Readings in time for a flow whose sources are of several lanes: the same ones however batches are cut into steps."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from gold.flows.in_time import Brought, Final, LaneBound, Late, advance
from gold.flows.slices import THE_BEGINNING
from gold.instants import SECOND

LANES = {"": LaneBound(600), "b": LaneBound(3600), "old": LaneBound(60, last=3)}
PARTS = st.lists(st.tuples(st.sampled_from(sorted(LANES)), st.integers(0, 50_000), st.none() | st.integers(0, 50_000)), max_size=4)


def seconds(final: Final) -> int:
    return final.at // SECOND


def brought(batch: int, lane: str, newest: int, oldest: int | None = None) -> Brought:
    return Brought(batch, lane, newest * SECOND, None if oldest is None else oldest * SECOND)


def test_a_flow_waits_for_the_slowest_of_the_lanes_that_have_brought_it_a_reading() -> None:
    rows = [brought(0, "", 50_000, 49_000), brought(0, "b", 20_000, 19_000)]
    assert seconds(advance(Final(), rows, LANES)[0]) == 20_000 - 3600
    of_others = [brought(0, "", 50_000, 49_000), brought(0, "b", 20_000)]  # b brings only what the flow does not take
    assert seconds(advance(Final(), of_others, LANES)[0]) == 50_000 - 600


def test_what_a_lane_brings_first_when_the_flow_has_passed_it_is_left_out_and_no_more_than_that() -> None:
    rows = [
        brought(0, "", 50_000, 49_000),
        brought(1, "b", 20_000, 20_000),
        brought(2, "b", 25_000, 24_000),
        brought(3, "b", 54_000, 49_399),
        brought(3, "", 55_000, 54_000),
    ]
    final, late = advance(Final(), rows, LANES)
    assert late == [Late(1, 3, 49_400 * SECOND)]
    assert seconds(final) == 54_000 - 3600


def test_a_lane_without_sources_holds_a_flow_up_no_longer() -> None:
    rows = [brought(0, "", 50_000, 49_000), brought(0, "old", 100, 50), brought(3, "", 51_000, 50_500), brought(4, "", 52_000, 51_500)]
    assert [seconds(advance(Final(), rows[:count], LANES)[0]) for count in (2, 3, 4)] == [40, 40, 51_400]


def test_without_a_reading_nothing_is_final() -> None:
    assert advance(Final(), [brought(0, "", 100)], LANES) == (Final(THE_BEGINNING, {}), [])


@given(st.lists(PARTS, max_size=8), st.lists(st.integers(0, 8), max_size=3))
def test_which_readings_are_left_out_does_not_depend_on_how_batches_are_cut(batches: Sequence[Sequence[tuple]], cuts: list[int]) -> None:  # type: ignore[type-arg]
    rows = [
        brought(batch, lane, max(newest, oldest or 0), oldest)
        for batch, parts in enumerate(batches)
        for lane, (newest, oldest) in sorted({lane: (newest, oldest) for lane, newest, oldest in parts}.items())
    ]
    whole, late = advance(Final(), rows, LANES)
    final, of_cuts = Final(), list[Late]()
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), len(batches)], strict=True):
        final, more = advance(final, [row for row in rows if first <= row.bronze_batch < last], LANES)
        of_cuts += more
    assert final == whole
    assert {(batch, of.before) for of in late for batch in left_out(of, rows)} == {
        (batch, of.before) for of in of_cuts for batch in left_out(of, rows)
    }


def left_out(late: Late, rows: Sequence[Brought]) -> set[int]:
    """Batches of the range that have an older reading."""
    return {
        row.bronze_batch
        for row in rows
        if late.first <= row.bronze_batch <= late.last and row.oldest is not None and row.oldest < late.before
    }
