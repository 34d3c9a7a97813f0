"""Quarantine looked at again, as functions: which rows of which events change, and which events are left alone."""

from collections.abc import Sequence

import pyarrow as pa

from silver.retry import COMPARED, PLACED, breaking, changed, moved
from tests.rows import at

TYPES = pa.schema(
    [
        ("broken_rules", pa.list_(pa.string())),
        *((name, pa.string()) for name in ("device_id", "metric")),
        *(("event_time", pa.timestamp("us", "UTC")), ("value", pa.float64())),
        *(("bronze_batch", pa.int64()), ("bronze_row", pa.int64()), ("part", pa.int32()), ("parts", pa.int32())),
    ]
)
BAD = ["value_is_in_range"]


def measured(*rows: tuple[int, int, int, Sequence[str]], value: float = 1.0) -> pa.Table:
    """Of events of batch 0: row, part, parts, broken rules; each part is another device."""
    cells = [(list(rules), f"d{part}", "m", at("00:00:00"), value, 0, row, part, parts) for row, part, parts, rules in rows]
    return pa.Table.from_pylist([dict(zip(TYPES.names, row, strict=True)) for row in cells], TYPES).select(COMPARED)


def changes(measurements: pa.Table, placed: pa.Table, quarantined: pa.Table) -> list[tuple[int, int, list[str]]]:
    rows = changed(measurements, placed.select(PLACED), quarantined).to_pylist()
    return sorted((row["bronze_row"], row["part"], row["broken_rules"]) for row in rows)


def test_events_change_whole_if_any_row_of_theirs_does_and_what_is_placed_stays_where_it_is() -> None:
    quarantined = measured((0, 0, 1, BAD), (1, 0, 1, BAD), (2, 1, 3, BAD), (2, 2, 3, BAD), (3, 0, 1, BAD))
    now = measured((0, 0, 1, []), (1, 0, 1, BAD), (2, 0, 3, []), (2, 1, 3, []), (2, 2, 3, BAD), (3, 0, 1, ["other"]))
    assert changes(now, measured((2, 0, 3, [])), quarantined) == [(0, 0, []), (2, 1, []), (2, 2, BAD), (3, 0, ["other"])]


def test_an_event_that_could_not_be_read_becomes_all_that_it_holds() -> None:
    unreadable = pa.Table.from_pylist([{"broken_rules": ["payload_is_readable"], "bronze_batch": 0, "bronze_row": 0, "part": 0}], TYPES)
    now = measured((0, 0, 2, []), (0, 1, 2, BAD))
    assert changes(now, measured(), unreadable) == [(0, 0, []), (0, 1, BAD)]
    assert changes(unreadable, measured(), unreadable) == []


def test_an_event_whose_placed_measurements_would_be_others_today_is_left_alone() -> None:
    """By `part` 1 silver holds what is part 0 today, so that part 0 would be there twice and part 1 never."""
    placed = measured((0, 1, 2, []), (1, 1, 2, []), (2, 0, 2, []))
    now = measured((0, 0, 1, []), (1, 0, 2, []), (1, 1, 2, BAD), (2, 0, 3, []), (2, 1, 3, []))
    assert sorted(tuple(row.values()) for row in moved(now, placed).to_pylist()) == [(0, 0), (0, 2)]
    quarantined = measured((0, 0, 2, BAD), (1, 0, 2, BAD), (2, 1, 2, BAD))
    assert changes(now, placed, quarantined) == [(1, 0, [])]


def test_no_number_is_the_same_again_and_another_value_is_not() -> None:
    quarantined = measured((0, 0, 1, BAD), value=float("nan"))
    assert changes(quarantined, measured(), quarantined) == []
    assert changes(measured((0, 0, 1, BAD), value=2.0), measured(), measured((0, 0, 1, BAD))) == [(0, 0, BAD)]


def test_a_rule_is_found_among_others_and_each_row_once() -> None:
    quarantined = measured((0, 0, 1, BAD), (1, 0, 1, ["other", *BAD]), (2, 0, 1, ["other"]))
    assert breaking(quarantined, *BAD)["bronze_row"].to_pylist() == [0, 1]
    assert len(breaking(quarantined, "none")) == 0
