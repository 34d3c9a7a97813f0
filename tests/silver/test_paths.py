"""Paths through lists in lists, objects by key, and to one element: which rows an event has, and what each of them reads."""

from typing import Any

import pyarrow as pa
import pytest

from orchestration.jobs.preview import unread_fields
from silver.measurements import measurements
from silver.spec import Origin, PayloadFormat, Time
from tests.orchestration.audit.verify.test_measurements import events_of

PLANT = b"""{"site": "s", "gateways": [
    {"id": "g1", "readings": [{"m": "p", "v": [1, 2]}, {"m": "t", "v": [3]}]},
    {"id": "g2", "readings": []},
    {"id": "g3", "readings": [{"m": "p", "v": 4}]}
]}"""
KEYS = b'{"s": {"t1": {"v": 20}, "t2": 21, "t3": null}, "now": 1}'


def rows(payload: bytes, device: str, value: str, each: str | None = None) -> list[tuple[Any, ...]]:
    shape = PayloadFormat("json", Origin(device), Time("now", "epoch_s"), metric=Origin(constant="x"), value=Origin(value), each=each)
    read = pa.concat_tables(measurements(events_of([payload]), shape, 10_000))
    return list(zip(*(read[name].to_pylist() for name in ("device_id", "number", "part", "parts")), strict=True))


@pytest.mark.parametrize(
    ("device", "value", "each", "expected"),
    [
        ("gateways.*.id", "each.v[0]", "gateways.*.readings", [("g1", 1.0, 0, 3), ("g1", 3.0, 1, 3), ("g3", None, 2, 3)]),
        ("gateways.*.id", "gateways.*.readings.*.v[-1]", None, [("g1", 2.0, 0, 3), ("g1", 3.0, 1, 3), ("g3", None, 2, 3)]),
        ("site", "each.v[1]", "gateways[0].readings", [("s", 2.0, 0, 2), ("s", None, 1, 2)]),
        ("gateways[1].id", "gateways[2].readings[0].v", None, [("g2", 4.0, 0, 1)]),
        ("gateways[9].id", "gateways[9].readings[0].v", None, [(None, None, 0, 1)]),
    ],
)
def test_a_row_is_an_element_of_the_innermost_list_with_what_it_is_in(
    device: str, value: str, each: str | None, expected: list[tuple[Any, ...]]
) -> None:
    assert rows(PLANT, device, value, each) == expected


def test_a_member_of_an_object_has_its_key_and_a_value_that_is_no_object_is_beside_it() -> None:
    assert [row[:2] for row in rows(KEYS, "s.*.key", "s.*.v")] == [("t1", 20.0), ("t2", None), ("t3", None)]
    assert [row[:2] for row in rows(KEYS, "each.key", "each.value", "s.*")] == [("t1", None), ("t2", 21.0), ("t3", None)]


def test_a_field_that_is_called_as_an_element_is_read_as_that() -> None:
    assert rows(b'{"d": 1, "a[0]": 5, "a": [6]}', "d", "a[0]") == [("1", 5.0, 0, 1)]


def test_a_field_that_is_read_through_lists_is_not_told_as_unread() -> None:
    shape = PayloadFormat("json", Origin("g.*.id"), Time("t[0]"), metrics={"x": "g.*.v"})
    events = events_of([b'{"g": [{"id": 1, "v": 2, "w": 3}], "t": [4], "u": 5}'])
    assert dict(unread_fields(events, shape)) == {"g.w": 1, "u": 1}
