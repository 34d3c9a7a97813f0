"""Avro, Protobuf and Sparkplug B: what is written is read, exactly; and silver and verify, which share no line, agree on every payload."""

import json
import math
import struct
from base64 import b64encode
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silver.avro_values import avro_reader
from silver.decoders.message import Message
from silver.decoders.sparkplug_b import Payload, sparkplug_b
from silver.measurements import measurements
from silver.protobuf_values import protobuf_reader
from silver.spec import DECLARED
from tests.binary_formats import BATCH, READING, avro, declared, framed, hostile, message_class, nested, shapes, varint
from tests.orchestration.audit.verify.test_measurements import events_of
from tests.silver.test_measurements import of_silver, of_verify

INT64, TEXT = st.integers(-(2**63), 2**63 - 1), st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
READINGS = st.fixed_dictionaries(
    {
        "device": st.none() | TEXT,
        "metric": st.sampled_from(["temperature", "humidity", "power"]),
        "value": st.tuples(st.just("double"), st.floats())
        | st.tuples(st.just("long"), INT64)
        | st.tuples(st.just("boolean"), st.booleans())
        | st.tuples(st.just("string"), TEXT)
        | st.tuples(st.just("null"), st.none()),
        "ts": INT64,
    }
)
OF_PROTO3 = st.fixed_dictionaries(
    {"device": TEXT, "metric": st.integers(-(2**31), 2**31 - 1), "value": st.floats()},
    optional={
        "share": st.floats(width=32),
        "raw": st.binary(max_size=9),
        "counts": st.lists(INT64, max_size=3),
        "by_name": st.dictionaries(TEXT, st.floats(), max_size=3),
        "is_on": st.booleans(),
        "small": st.integers(-(2**31), 2**31 - 1),
        "large": st.integers(0, 2**64 - 1),
        "kinds": st.lists(st.sampled_from([0, 1, 2, 77]), max_size=3),
    },
)
AT = datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC)
READ = {"device": "oven", "metric": "temperature", "value": 21.5, "ts": 1767225601000}
IN_A_BATCH = {
    "gateway": {"id": "2026-01-01T00:00:01Z"},
    "other": {"id": "oven"},
    "list": [READ, {**READ, "value": None}, {**READ, "device": None, "value": "x"}],
    "by_name": {"a": 1.5, "b": 2.5},
    "raw": b"abc",
    "price": Decimal("12.345"),
    "cost": Decimal("-1.25"),
    "more": [b"x"],
}


def good(name: str) -> list[bytes]:
    """Payloads of a shape."""
    old, plant = message_class("old", "Reading"), message_class("plant", "Reading")
    inner = plant(device="in", value=1)
    new = plant(device="oven", metric=1, value=21.5, kinds=[1, 7, 2], by_name={"a": 1, "": 2}, share=0.1, raw=b"\xff", counts=[-1, 5])
    new.ts.FromDatetime(AT)
    odd_numbers = plant(other=plant(value=math.nan, by_name={"i": math.inf, "n": -math.inf, "e": 1e300}, share=0.1))
    more = plant(device="oven", metric=9, other=inner, by_switch={True: inner, False: new}, small=-1, large=2**64 - 1)
    first = old(device="oven", metric=2, value=1.5, ts=1767225601000, kinds=[1, 2], by_name={"a": 1, "b": 2}, text="x", tags=["a", "b"])
    second = old(device="oven", inner=first, other=first, names={-1: "x", 2: "y"}, level=0)
    second.extra.x, second.extra.y[:] = -3, [1, 2]
    second.extra.again.CopyFrom(first)
    olds, news = [one.SerializeToString() for one in (first, second)], [one.SerializeToString() for one in (new, more, odd_numbers)]
    # What no writer writes and every reader has to take: unpacked, of the wrong type, unknown, in pieces.
    odd = [
        b"\x28\x01\x28\x09\x2a\x02\x01\x09",
        b"\x0d\x00\x00\x00\x00",
        b"\xa3\x06\x08\x01\xa4\x06",
        b"\x5a\x02\x08\x01\x5a\x03\x1a\x01x",
        b"\x1b\x1c",
    ]
    batches = [avro(BATCH, IN_A_BATCH), avro(BATCH, {**IN_A_BATCH, "list": [], "other": None, "more": "power"})]
    by_shape = {
        "avro": [avro(READING, READ), avro(READING, {**READ, "device": None, "value": True})],
        "avro list": batches,
        "avro wide": batches,
        "avro of a registry": [framed(7, avro(READING, READ)), framed(258, batches[0]), framed(8, b""), framed(9, b"")],
        "proto3 list": [message_class("plant", "Batch")(gateway="g", list=[new, more, inner]).SerializeToString()],
        "protobuf of a registry": [
            framed(7, news[0], 0),
            framed(258, olds[1], 0),
            framed(258, b"\x0a" + varint(len(olds[0])) + olds[0], 1, 0),
        ],
        "sparkplug": [sparkplug()],
    }
    return by_shape.get(name) or [*(olds if name.startswith("proto2") else news), *odd]


def sparkplug() -> bytes:
    """A payload with a metric of every kind."""
    payload: Any = Payload()
    payload.timestamp, payload.seq, payload.uuid = 1767225601000, 3, "degC"
    values: list[tuple[str, Any, int | None]] = [
        *(("int_value", 2**32 - 5, 3), ("int_value", 2**32 - 5, None), ("long_value", 2**64 - 5, 4), ("long_value", 5, 8)),
        *(("float_value", 1.5, 9), ("double_value", 2.5, 10), ("boolean_value", True, 11), ("string_value", "x", 12)),
        *(("bytes_value", b"x", 17), ("int_value", 255, 1), ("int_value", 65535, 6), ("long_value", 2**63, None)),
    ]
    for n, (kind, value, datatype) in enumerate(values):
        metric = payload.metrics.add(name=f"m{n}", timestamp=1767225602000)
        setattr(metric, kind, value)
        if datatype is not None:
            metric.datatype = datatype
    payload.metrics.add(alias=5, double_value=1.5)
    payload.metrics.add(name="nothing", is_null=True, double_value=1.5)
    content: bytes = payload.SerializeToString()
    return content


@pytest.mark.parametrize("name", shapes())
def test_payloads_are_read_as_verify_reads_them_and_hostile_ones_too(name: str, seed: int | None) -> None:
    of = good(name)
    events = events_of([*of, *hostile(of, seed or 5, 4_000), b""])
    found = of_silver(events, shapes()[name])
    assert found == of_verify(events, shapes()[name])
    assert any(", True, " in row for row in found)


ALL = frozenset(message_class("plant", "Reading").DESCRIPTOR.fields_by_name)


def same(values: dict[str, Any]) -> list[str]:
    """NaN is NaN, 1 is not 1.0, and there is no order of names."""
    return sorted(f"{name}={same(value) if isinstance(value, dict) else repr(value)}" for name, value in values.items())


def values_of(name: str, payload: bytes) -> Any:
    """What silver's reader makes of a payload of a schema file."""
    shape = shapes()[name]
    texts = shape.schemas[DECLARED]
    return avro_reader(texts)(payload, 0) if shape.format == "avro" else protobuf_reader(texts, shape.message or "", ALL)(payload)


@given(READINGS)
def test_what_fastavro_writes_is_read_as_it_was(reading: dict[str, Any]) -> None:
    found = values_of("avro", avro(READING, reading))
    assert same(found) == same({**reading, "value": reading["value"][1]})


def test_each_type_of_avro_is_what_the_page_says() -> None:
    assert values_of("avro list", avro(BATCH, IN_A_BATCH)) == {
        **IN_A_BATCH,
        "raw": "YWJj",
        "price": 12.345,
        "cost": -1.25,
        "more": ["eA=="],
    }


@pytest.mark.parametrize(
    ("single", "double"), [(21.7, 21.7), (0.1, 0.1), (-273.15, -273.15), (3.4028235e38, 3.4028235e38), (-math.inf, -math.inf)]
)
def test_a_float_of_32_bits_has_the_digits_that_its_sender_wrote(single: float, double: float) -> None:
    content = struct.pack("<f", single)
    assert avro_reader(('"float"',))(content, 0) == double
    assert values_of("proto3", message_class("plant", "Reading")(share=single).SerializeToString())["share"] == double
    payload: Any = Payload()
    payload.metrics.add(name="t", datatype=9, float_value=single)
    assert sparkplug_b(payload.SerializeToString(), Message(b""), shapes()["sparkplug"])[0]["metrics"][0]["value"] == double


def test_a_decimal_is_the_nearest_double_and_one_beyond_all_doubles_is_infinite() -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 400}
    read = avro_reader((json.dumps(schema),))
    assert read(b"\x02\x01", 0) == 1.0
    assert read(varint(2 * 200) + b"\x7f" * 200, 0) == math.inf


@given(OF_PROTO3)
def test_what_google_writes_is_read_as_it_was(fields: dict[str, Any]) -> None:
    found = values_of("proto3", message_class("plant", "Reading")(**fields).SerializeToString())
    names = {0: "none", 1: "temperature", 2: "power"}
    absent = {"ts": None, "share": None, "is_on": None, "other": None, "number": None, "text": None}
    default = {"kinds": [], "by_name": {}, "raw": b"", "counts": [], "by_switch": {}, "small": 0, "large": 0}
    expected: dict[str, Any] = {**absent, **default, **fields}
    expected |= {"metric": names.get(fields["metric"], fields["metric"]), "raw": b64encode(expected["raw"]).decode()}
    if "share" in fields:
        expected["share"] = pa.array([fields["share"]], pa.float32()).cast(pa.string()).cast(pa.float64())[0].as_py()
    expected["kinds"] = [names.get(kind, kind) for kind in expected["kinds"]]
    assert same(found) == same(expected)


@pytest.mark.parametrize(
    ("seconds", "nanos", "text"),
    [
        (1767225601, 500_000_000, "2026-01-01T00:00:01.500000000Z"),
        (-62_135_596_800, 0, "0001-01-01T00:00:00.000000000Z"),
        (253_402_300_800, 0, None),
        (0, -1, None),
    ],
)
def test_a_timestamp_of_protobuf_is_a_text_in_the_years_1_to_9999(seconds: int, nanos: int, text: str | None) -> None:
    message = message_class("plant", "Reading")()
    message.ts.seconds, message.ts.nanos = seconds, nanos
    assert values_of("proto3", message.SerializeToString())["ts"] == text


def readings(name: str, payloads: list[bytes]) -> list[tuple[Any, ...]]:
    rows = pa.concat_tables(measurements(events_of(payloads), shapes()[name], 1_000_000)).to_pylist()
    return [(row["device_id"], row["metric"], row["number"], row["event_time"]) for row in rows]


def test_each_metric_of_sparkplug_is_a_measurement_and_one_with_an_alias_alone_has_no_name() -> None:
    at, values = datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC), [-5.0, None, -5.0, 5.0, 1.5, 2.5, 1.0, None, None, -1.0, 65535.0, None]
    assert readings("sparkplug", [sparkplug()]) == [
        *(("oven", f"m{n}", value, at) for n, value in enumerate(values)),
        ("oven", None, 1.5, AT),
        ("oven", "nothing", None, AT),
    ]


def test_a_registry_tells_the_schema_of_each_payload_and_a_single_object_names_its_own() -> None:
    expected = ("oven", "temperature", 21.5, AT)
    assert readings("avro of a registry", [framed(7, avro(READING, READ))]) == [expected]
    (fingerprint,) = declared(READING).keys() - {DECLARED}
    assert readings("avro", [b"\xc3\x01" + bytes.fromhex(fingerprint) + avro(READING, READ)]) == [expected]
    assert fastavro.schema.fingerprint(fastavro.schema.to_parsing_canonical_form(READING), "CRC-64-AVRO") == fingerprint
    nested_message = b"\x0a" + varint(len(old := good("proto2")[0])) + old
    assert readings("protobuf of a registry", [framed(258, nested_message, 1, 0), framed(7, good("proto3")[0], 0)])[1] == expected


BOMBS = {
    "avro": [b"\x02" + varint(2 * 2**40) + b"x", b"\x02" + b"\xff" * 9 + b"\x01", b"\x80" * 1_000_000, b""],
    "avro list": [b"\0\0" + varint(2 * 2**60), b"\0\0" + varint(2 * 2**30) + b"\0" * 1_000],
    "proto3": [nested(11, 101), nested(11, 5_000), b"\x0b" * 500_000, b"\x0a" + varint(2**31 - 1) + b"x", b"\x22" + b"\xff" * 100],
    "proto2": [nested(7, 101), b"\x43" * 500_000, b"\x43\x1b" * 200_000],
    "sparkplug": [b"\x12" * 500_000, b"\x0b" * 500_000],
}


@pytest.mark.parametrize("name", BOMBS)
def test_lengths_counts_and_depths_that_are_not_there_are_unreadable(name: str) -> None:
    rows = pa.concat_tables(measurements(events_of(BOMBS[name]), shapes()[name], 2_000_000))
    assert rows["is_readable"].to_pylist() == [not payload for payload in BOMBS[name]]
    assert not any(rows["is_measured"].to_pylist())


def test_a_message_within_the_limit_of_depth_is_read() -> None:
    rows = pa.concat_tables(measurements(events_of([nested(11, 100, b"\x0a\x01x")]), shapes()["proto3"], 1_000_000))
    assert rows["is_readable"].to_pylist() == [True]


def test_a_payload_longer_than_the_limit_is_not_read_and_all_are_utf8() -> None:
    rows = pa.concat_tables(measurements(events_of([avro(READING, READ), b"\xff"]), shapes()["avro"], 10))
    assert (rows["is_readable"].to_pylist(), rows["is_utf8"].to_pylist()) == ([False, False], [True, True])
