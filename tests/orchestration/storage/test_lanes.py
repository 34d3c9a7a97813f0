"""Lanes: which source is of which query, by bronze batch."""

import duckdb
import pytest

from orchestration.storage.lane_record import Lane, Lanes, Member, changed
from silver.policy import Bounds

POLICY, SLOW, AHEAD = Bounds(600, 300), Bounds(21_600, 300), Bounds(600, 172_800)


def taken(lanes: Lanes, batches: int) -> dict[tuple[str, int], list[str]]:
    """By source and bronze batch the queries that write its events: what a lane reads only for its state is before its first batch."""
    takes = {"silver.readings": (0, lanes.of_default() or "true")} | {lane.flow: (lane.first, lane.sql()) for lane in lanes.every}
    events = ", ".join(f"('{source}', {batch})" for source in ("a", "b", "prices", "gone") for batch in range(batches))
    found: dict[tuple[str, int], list[str]] = {}
    for name, (first, condition) in takes.items():
        sql = f"select * from (values {events}) as t(source, bronze_batch) where ({condition}) and bronze_batch >= {first}"
        for source, batch in duckdb.execute(sql).fetchall():
            found.setdefault((source, batch), []).append(name)
    return found


def test_sources_with_the_bounds_of_the_policy_share_the_one_query_of_today() -> None:
    lanes = changed(Lanes(), {"a": POLICY, "b": POLICY}, POLICY, 0)
    assert (lanes, lanes.flows, lanes.of_default()) == (Lanes(), ["silver.readings"], None)


def test_sources_with_equal_bounds_are_a_lane_that_has_the_name_of_the_first() -> None:
    lanes = changed(Lanes(), {"a": POLICY, "b": SLOW, "c": SLOW, "prices": AHEAD}, POLICY, 0)
    assert lanes.flows == ["silver.readings", "silver.readings@b", "silver.readings@prices"]
    assert [lane.sources for lane in lanes.every] == [["b", "c"], ["prices"]]
    assert [lanes.of_source(name) for name in ("a", "c", "unheard_of")] == ["silver.readings", "silver.readings@b", "silver.readings"]


def test_every_event_is_of_one_lane_however_often_conf_has_changed_since_it_came() -> None:
    confs = [
        (0, {"a": POLICY, "b": POLICY, "prices": AHEAD}),
        (2, {"a": POLICY, "b": SLOW, "prices": AHEAD}),
        (4, {"a": SLOW, "b": SLOW, "prices": AHEAD}),
        (5, {"a": POLICY, "b": POLICY, "prices": AHEAD}),
        (7, {"a": POLICY, "b": SLOW}),  # what is left of prices, which are gone from conf, is of the default lane
    ]
    lanes = Lanes()
    for first, bounds in confs:
        lanes = changed(lanes, bounds, POLICY, first)
    found = taken(lanes, 9)
    assert len(found) == 4 * 9
    assert all(len(queries) == 1 for queries in found.values()), found
    ways = {source: [found[source, batch][0].partition("@")[2] for batch in range(9)] for source in ("a", "b", "prices", "gone")}
    assert ways == {
        "a": ["", "", "", "", "b", "", "", "", ""],
        "b": ["", "", "b", "b", "b", "", "", "b_7", "b_7"],
        "prices": ["prices"] * 7 + [""] * 2,
        "gone": [""] * 9,
    }


def test_a_lane_reads_what_its_first_sources_brought_before_it_began_for_its_state() -> None:
    lane = Lane("b", SLOW, 3, [Member("b", 3), Member("a", 5)])
    rows = duckdb.execute(
        f"select source, bronze_batch from (values ('a', 1), ('b', 1), ('a', 5), ('b', 4)) as t(source, bronze_batch) where {lane.sql()}"
    )
    assert sorted(rows.fetchall()) == [("a", 5), ("b", 1), ("b", 4)]


@pytest.mark.parametrize("bounds", [SLOW, AHEAD])
def test_a_conf_that_says_the_same_changes_nothing(bounds: Bounds) -> None:
    lanes = changed(Lanes(), {"a": POLICY, "b": bounds}, POLICY, 3)
    assert changed(lanes, {"a": POLICY, "b": bounds}, POLICY, 9) == lanes
