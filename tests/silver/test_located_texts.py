"""Texts from where a source says: fields, the payload, key, headers, topic, file name; and parts of them."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bronze.events import ARRIVED
from silver.measurements import measurements
from silver.policy import Policy, SilverConfig
from silver.reasons import Reasons
from silver.spec import Locator, Origin, PayloadFormat, Time
from tests.silver.test_measurements import of_silver, of_verify

Header = tuple[str, bytes]


def messages(*rows: tuple[bytes, bytes | None, list[Header]], position: str = "meters/0/1") -> pa.Table:
    """Events of Kafka: payload, key, headers."""
    payloads, keys, headers = zip(*rows, strict=True)
    columns = {"payload": payloads, "key": keys, "headers": headers, "position": [position] * len(rows)}
    columns = {name: columns.get(name, [None] * len(rows)) for name in ARRIVED.names}
    return pa.table({name: pa.array(values, ARRIVED.field(name).type) for name, values in columns.items()})


def read(events: pa.Table, shape: PayloadFormat, *names: str) -> list[Any]:
    rows = pa.concat_tables(measurements(events, shape, 1_000))
    return [value for name in names for value in rows[name].to_pylist()]


METER = PayloadFormat("json", Origin(key=True), Time(header="ce_time", otherwise=Locator("ts")), metrics={"energy": "kwh"})


def test_a_device_is_in_the_key_and_a_time_in_a_header_or_else_in_a_field() -> None:
    events = messages(
        (b'{"kwh": 1, "ts": "2026-01-01T00:00:01Z"}', b"meter-12", []),
        (b'{"kwh": 2}', b" meter-13 ", [("ce_time", b"2026-01-01T00:00:09Z"), ("ce_time", b"2026-01-01T00:00:02Z")]),
        (b'{"kwh": 3}', b"\xff", [("ce_time", b"\xff")]),
        (b'{"kwh": 4}', None, []),
    )
    assert read(events, METER, "device_id") == ["meter-12", "meter-13", None, None]
    assert [at and at.second for at in read(events, METER, "event_time")] == [1, 2, None, None]


PART = PayloadFormat(
    "json",
    Origin(field="id", match=r"Channel\.(\w+)\."),
    Time("t", match=r"^\[(.*)\]$"),
    metric=Origin(field="id", match=r"(\w*)$"),
    value=Origin("v", match=r"^([\d.]+) \w+$"),
    unit=Origin("v", match=r" (\w)$"),
    words={"Oil": {"hot": 99.0}},
    not_measured=("off",),
)


def event(id: str, value: str) -> tuple[bytes, None, list[Header]]:
    return f'{{"id": "{id}", "v": "{value}", "t": "[2026-01-01T00:00:01Z]"}}'.encode(), None, []


def test_a_part_of_a_text_is_taken_and_one_that_does_not_match_is_none() -> None:
    events = messages(
        event("Channel.Press.Oil", "54.2 C"),
        event("Press.Oil", "54.2"),
        event("Channel.Press.", "54 bar"),
        event("Channel.Press.Oil", "hot"),
    )
    assert read(events, PART, "device_id") == ["Press", None, "Press", "Press"]
    assert read(events, PART, "metric") == ["Oil", "Oil", None, "Oil"]
    assert read(events, PART, "number") == [54.2, None, 54.0, 99.0]
    assert read(events, PART, "unit_text") == ["C", "", "", ""]
    assert read(messages(event("Channel.Press.Oil", "off")), PART, "is_measured") == [False]


@pytest.mark.parametrize(
    ("rule", "payload", "expected"),
    [
        ("device_is_present", b'{"id": "x", "v": 1}', r"id is 'x' and 'Channel\.(\w+)\.' is not found in it"),
        ("metric_is_present", b'{"v": 1}', "id is absent or null"),
        ("value_is_a_number", b'{"v": "54,2"}', r"v is '54,2' and '^([\d.]+) \w+$' is not found in it"),
        ("unit_is_known", b'{"v": "54,2"}', r"v is '54,2' and ' (\w)$' is not found in it and None is in None"),
        ("event_time_is_valid", b'{"t": "2026"}', r"t is '2026' and '^\[(.*)\]$' is not found in it"),
    ],
)
def test_a_text_that_does_not_match_is_told_with_its_pattern(rule: str, payload: bytes, expected: str) -> None:
    reasons = Reasons(SilverConfig({"plant": PART}, Policy(600, 300, 1_000), {}, ()), [])
    row = {"source": "plant", "payload": payload, "header": None, "position": "a/0/1", "part": 0, "broken_rules": [rule], "metric": None}
    assert reasons.of(row | {"device_id": None, "value": None})[rule] == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (None, "the key is absent, or was not kept in quarantine and the header ce_id is absent, or was not kept in quarantine"),
        (b"a\xff", "the key is 'a\ufffd' and the header ce_id is absent, or was not kept in quarantine"),
    ],
)
def test_a_key_that_is_absent_is_told(key: bytes | None, expected: str) -> None:
    shape = PayloadFormat("json", Origin(key=True, otherwise=Locator(header="ce_id")), Time("t"), metrics={"a": "a"})
    reasons = Reasons(SilverConfig({"plant": shape}, Policy(600, 300, 1_000), {}, ()), [])
    row = {"source": "plant", "payload": b'{"a": 1}', "header": None, "position": "a/0/1", "part": 0, "broken_rules": ["device_is_present"]}
    assert reasons.of(row | {"key": key, "metric": None, "device_id": None, "value": None})["device_is_present"] == expected


BYTES = st.none() | st.binary(max_size=4) | st.sampled_from([b"a.b", b" a ", b"2026-01-01T00:00:01Z", b"1.5"])
HEADERS = st.lists(st.tuples(st.sampled_from("hi"), st.binary(max_size=3)), max_size=2)
PAYLOAD = st.sampled_from([b'{"f": "a.b", "g": 1.5}', b'{"f": 1, "g": "x"}', b"{", b'{"g": null}', b"\xff"])
PATTERN = st.sampled_from([None, r"(\w)", r"(\w+)\.", "(z)?.", "^( *)"])
PLACE = st.sampled_from([{"field": "f"}, {"fields": ("f", "g")}, {"payload": True}, {"key": True}, {"header": "h"}, {"topic": 1}])
ORIGIN = st.builds(
    lambda place, match, other, other_match: Origin(**place, match=match, otherwise=other and Locator(**other, match=other_match)),
    *(PLACE, PATTERN, st.none() | PLACE, PATTERN),
)


@given(
    st.lists(st.tuples(PAYLOAD, BYTES, HEADERS), min_size=1, max_size=4),
    st.tuples(ORIGIN, ORIGIN, ORIGIN, ORIGIN, ORIGIN),
)
def test_texts_from_anywhere_are_read_as_verify_reads_them(
    rows: list[tuple[bytes, bytes | None, list[Header]]], origins: tuple[Origin, Origin, Origin, Origin, Origin]
) -> None:
    device, metric, value, unit, time = origins
    shape = PayloadFormat("json", device, Time(**vars(time)), metric=metric, value=value, unit=unit, zone=device, not_measured=("a",))
    events = messages(*rows, position="plant.x/0/1")
    assert of_silver(events, shape) == of_verify(events, shape)
