"""Payloads to measurements: silver and verify, which share no line that reads a payload, agree on every one; and each field is bounded."""

import json
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.audit.verify import json_payload as grammar
from orchestration.audit.verify import measurements as verify
from silver import json_rows, records
from silver.measurements import MEASUREMENTS, measurements
from silver.spec import Origin, PayloadFormat, Time
from tests.orchestration.audit.verify.hostile import payloads
from tests.orchestration.audit.verify.hostile_shapes import LONG, SHAPES
from tests.orchestration.audit.verify.test_measurements import OF_LONG, OF_WIDE, WIDE, cells, events_of

MOST_BYTES = 1_100
VALUE = st.recursive(
    st.sampled_from(
        ["1", "-2.50", "1e7", "-0", "-0.0", "1e400", '"x"', '"\\ud800"', '"\\\\ud83d\\ude00"', '"\\u001f/é"', "NaN", "+INF", "null", "true"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda values: f"[{','.join(values)}]")
        | st.lists(st.sampled_from(['"a"', '"b" ']).flatmap(lambda name: inner.map(lambda value: f"{name}:{value}")), max_size=3).map(
            lambda members: "{" + ",".join(members) + "}"
        )
    ),
    max_leaves=6,
)


def of_silver(events: pa.Table, shape: PayloadFormat) -> list[str]:
    """As verify's rows are."""
    rows = pa.concat_tables(measurements(events, shape, MOST_BYTES))
    assert rows.schema == MEASUREMENTS
    columns = {name: rows[name] for name in rows.column_names}
    columns["is_small"] = pa.compute.less_equal(columns.pop("payload_bytes"), MOST_BYTES)
    columns["event_time"] = columns["event_time"].cast(pa.int64())
    return cells(zip(*(columns[name].to_pylist() for name in verify.MEASUREMENTS.names), strict=True))


def of_verify(events: pa.Table, shape: PayloadFormat) -> list[str]:
    return cells(zip(*verify.measurements(events, shape, MOST_BYTES).to_pydict().values(), strict=True))


@pytest.mark.parametrize("source", SHAPES)
def test_hostile_payloads_are_read_as_verify_reads_them(source: str, seed: int | None) -> None:
    by_header: dict[str | None, list[bytes]] = {}
    for name, payload, header in payloads(seed or 11, 1_000):
        if name == source:
            by_header.setdefault(header, []).append(payload)
    for header, of in by_header.items():
        events = events_of(of, header)
        assert of_silver(events, SHAPES[source]) == of_verify(events, SHAPES[source])


@given(st.lists(OF_LONG, max_size=5), st.lists(OF_WIDE, max_size=5), st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r")]))
def test_generated_payloads_are_read_as_verify_reads_them(long: list[Any], wide: list[Any], separators: tuple[str, str]) -> None:
    for of, shape in ((long, LONG), (wide, WIDE)):
        events = events_of([json.dumps(members, separators=separators, ensure_ascii=False).encode() for members in of])
        assert of_silver(events, shape) == of_verify(events, shape)


@pytest.mark.parametrize("source", [name for name, shape in SHAPES.items() if shape.format == "json"])
def test_the_quick_reader_and_the_careful_one_agree(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = events_of([payload for name, payload, _ in payloads(7, 300) if name == source])
    quick = of_silver(events, SHAPES[source])
    monkeypatch.setattr(json_rows, "ALWAYS_WITHIN", -1)
    monkeypatch.setattr(json_rows, "MANY_DIGITS", re.compile(""))
    assert of_silver(events, SHAPES[source]) == quick


@given(VALUE, VALUE)
def test_what_is_no_text_is_named_by_its_json_in_both_readers(first: str, second: str) -> None:
    text = f'{{"a":{first},"b":{second},"a":{second}}}'
    (one, of_grammar), (other, of_json) = ((module.read_object(text), module.as_text) for module in (grammar, json_rows))
    assert [of_grammar(one["a"]), of_grammar(one["b"]), of_grammar(one)] == [of_json(other["a"]), of_json(other["b"]), of_json(other)]


def test_a_long_list_is_read_quickly_and_one_beyond_the_limits_with_care() -> None:
    shape = SHAPES["list"]
    one = '{"n":"temperature","v":1,"t":1767225601}'
    for count in (10, 900, 3_000):
        payload = f'{{"device":"oven","data":{{"list":[{",".join([one] * count)}]}}}}'.encode()
        rows = pa.concat_tables(measurements(events_of([payload]), shape, 1_000_000))
        assert rows["part"].to_pylist() == list(range(count))
        assert set(rows["device_id"].to_pylist()) == {"oven"}


def test_elements_of_an_event_with_a_long_name_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A payload of 1 MB, half of it the device's name, half of it empty elements, is 80 GB of rows."""
    monkeypatch.setattr(records, "MOST_BYTES", 1_000_000)
    payload = f'{{"device":"{"x" * 100_000}","data":{{"list":[{",".join(["{}"] * 500)}]}}}}'.encode()
    pieces = list(measurements(events_of([payload]), SHAPES["list"], 1_000_000))
    assert sum(map(len, pieces)) == 500
    assert max(piece.nbytes for piece in pieces) < 2_000_000


def test_an_event_without_a_list_or_with_an_empty_one_has_one_row() -> None:
    shape = PayloadFormat(
        "json", Origin(field="d"), Time("each.t", "epoch_s"), metric=Origin(field="each.m"), value=Origin("each.v"), each="l"
    )
    of = [b'{"d":"a"}', b'{"d":"b","l":[]}', b'{"d":"c","l":null}', b'{"d":"e","l":[null,{"m":"power"}]}', b"{"]
    rows = pa.concat_tables(measurements(events_of(of), shape, MOST_BYTES)).to_pydict()
    assert rows["event_at"] == [0, 1, 2, 3, 3, 4]
    assert rows["parts"] == [None, 0, None, 2, 2, None]
    assert rows["part"] == [0, 0, 0, 0, 1, 0]
    assert rows["is_readable"] == [True] * 5 + [False]


OF_TOPIC = PayloadFormat("json", Origin(topic=2), Time("ts"), zone=Origin(topic=1), metric=Origin(topic=3), value=Origin("value"))
TOPIC = st.lists(st.text("a é/\n", max_size=3), max_size=4).map("/".join)


def with_positions(positions: list[str]) -> pa.Table:
    """An event each."""
    events = events_of([b'{"value":1,"ts":"2026-01-01T00:00:01Z"}'] * len(positions))
    return events.set_column(2, "position", pa.array(positions, pa.string()))


@pytest.mark.parametrize(
    ("position", "levels"),
    [
        ("plant/oven/temperature/9f3a/17", ["plant", "oven", "temperature"]),
        ("plant/ oven /more/and/more/9f3a/17", ["plant", "oven", "more"]),
        ("readings/0/1200", ["readings", None, None]),
        ("/plant//9f3a/1", [None, "plant", None]),
        ("9f3a/1", [None, None, None]),
    ],
)
def test_a_text_is_a_level_of_the_topic_or_null_where_the_topic_has_none(position: str, levels: list[str | None]) -> None:
    (rows,) = measurements(with_positions([position]), OF_TOPIC, MOST_BYTES)
    assert [rows[name].to_pylist() for name in ("zone_text", "device_id", "metric")] == [[level] for level in levels]


@given(st.lists(TOPIC.map(lambda topic: f"{topic}/9f3a/1") | TOPIC))
def test_levels_of_topics_are_read_as_verify_reads_them(positions: list[str]) -> None:
    events = with_positions(positions)
    assert of_silver(events, OF_TOPIC) == of_verify(events, OF_TOPIC)
