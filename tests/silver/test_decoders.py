"""Decoders: each makes the objects that the page and its format say, and whatever comes is read or has a reason."""

import gzip as packed
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from silver.decoders.chain import BUILT_IN, decoder_of, objects_of
from silver.decoders.message import Message
from silver.decoders.steps import step_of
from silver.measurements import measurements
from silver.records import UnreadableError
from silver.spec import Origin, PayloadFormat, Time
from tests.orchestration.audit.verify.test_measurements import events_of
from tests.silver.test_measurements import of_silver, of_verify

PAGE = (Path(__file__).parents[2] / "silver/README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| `(\{[^`]+)` \|$", PAGE, re.MULTILINE)
ARRIVED = 1_767_225_601_000_000


def objects(payload: bytes, *decode: Any, arrived: int | None = ARRIVED, **more: Any) -> list[Any]:
    shape = PayloadFormat("json", Origin(field="d"), Time("t"), decode=decode, **more)
    return objects_of(decoder_of(shape, frozenset()), Message(payload, position="plant/oven/0/1", arrived_micros=arrived))


def reason(payload: bytes, *decode: Any, **more: Any) -> str:
    with pytest.raises(UnreadableError) as error:
        objects(payload, *decode, **more)
    return str(error.value)


@pytest.mark.parametrize(("decode", "payload", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_each_decoder_on_the_page_makes_the_objects_beside_it(decode: str, payload: str, expected: str) -> None:
    content = bytes.fromhex(payload[2:]) if payload.startswith("0x") else payload.replace("\\n", "\n").encode()
    assert objects(content, yaml.safe_load(decode)) == objects(expected.encode(), "concatenated")


def test_the_page_shows_every_decoder() -> None:
    shown = {step_of(yaml.safe_load(decode)).name for decode, *_ in ROWS}
    assert shown | {"avro", "protobuf", "sparkplug_b"} == {*BUILT_IN}


RFC_8428 = [
    ('[{"n":"urn:dev:ow:10e2073a01080063","u":"Cel","v":23.1}]', [("urn:dev:ow:10e2073a01080063", "Cel", 23.1, 1767225601)]),
    (
        '[{"bn":"urn:dev:ow:10e2073a0108006:","bt":1.276020076001e+09,"bu":"A","bver":5,"n":"voltage","u":"V","v":120.1},'
        '{"n":"current","t":-5,"v":1.2},{"n":"current","t":-4,"v":1.3}]',
        [
            ("urn:dev:ow:10e2073a0108006:voltage", "V", 120.1, 1276020076.001),
            ("urn:dev:ow:10e2073a0108006:current", "A", 1.2, 1276020071.001),
            ("urn:dev:ow:10e2073a0108006:current", "A", 1.3, 1276020072.001),
        ],
    ),
    (
        '[{"bn":"urn:dev:ow:10e2073a01080063","bt":1.320067464e+09,"bu":"%RH","v":20},{"t":60,"v":20.3},{"u":"lon","v":24.30621}]',
        [
            ("urn:dev:ow:10e2073a01080063", "%RH", 20, 1320067464),
            ("urn:dev:ow:10e2073a01080063", "%RH", 20.3, 1320067524),
            ("urn:dev:ow:10e2073a01080063", "lon", 24.30621, 1320067464),
        ],
    ),
]
"""Packs of sections 5.1.1, 5.1.2 and 5.1.3."""


@pytest.mark.parametrize(("pack", "expected"), RFC_8428)
def test_packs_of_rfc_8428_are_resolved_as_it_says(pack: str, expected: list[tuple[Any, ...]]) -> None:
    assert [tuple(record[name] for name in ("n", "u", "v", "t")) for record in objects(pack.encode(), "senml")] == expected


def test_base_values_and_sums_are_added_with_the_digits_in_which_they_are_written() -> None:
    (record,) = objects(b'[{"bn":"a","bv":0.1,"v":0.2,"bs":1,"s":0.5}]', "senml")
    assert (record["v"], record["s"]) == (0.3, 1.5)


@pytest.mark.parametrize(
    ("pack", "expected"),
    [
        (b'[{"bver":11,"n":"a","v":1}]', "senml, record 1: its version is 11, and at most 10 is read"),
        (b'[{"n":"a","v":1},{"n":"b","x_":1}]', "senml, record 2: it has 'x_', which must be understood and is not"),
        (b'[{"v":1}]', "senml, record 1: it has no name"),
        (b'{"n":"a"}', "senml: a pack is a list"),
    ],
)
def test_a_pack_that_cannot_be_resolved_has_a_reason(pack: bytes, expected: str) -> None:
    assert reason(pack, "senml") == expected


INFLUX = [
    ("weather,location=us-midwest temperature=82 1465839830100400200", {"temperature": 82.0}),
    (r"weather,location\ place=us-midwest temp\=rature=82 1", {"temp=rature": 82.0}),
    (r'wea\,ther temperature="too\\\"hot\"" 1', {"temperature": 'too\\"hot"'}),
    (
        'm a=1i,b=2u,c=t,d=False,e=1e-3,f=.5,g="a b,c=d\n"',
        {"a": 1, "b": 2, "c": True, "d": False, "e": 0.001, "f": 0.5, "g": "a b,c=d\n"},
    ),
]


@pytest.mark.parametrize(("line", "fields"), INFLUX)
def test_lines_of_the_reference_of_influx_have_their_fields(line: str, fields: dict[str, Any]) -> None:
    (point,) = objects(line.encode(), "influx")
    assert point["fields"] == fields


def test_a_point_without_a_time_was_measured_when_it_arrived_and_comments_are_no_points() -> None:
    points = objects(b"# a comment\nm a=1\n\nm a=2 5\r\n", {"influx": {"precision": "s"}})
    assert [point["time"] for point in points] == [ARRIVED * 1_000, 5_000_000_000]


@pytest.mark.parametrize(
    ("payload", "decode", "expected"),
    [
        (b"m a=1\nm a=", ["influx"], "influx, line 2: it is no line protocol: measurement,tag=text field=value time"),
        (b'{"a": [1, 2], "b": [1]}', ["columns"], "columns: its lists differ in length: a 2, b 1"),
        (b'{"Body": "#"}', [{"base64": "Body"}], "base64: '#' is no base64"),
        (packed.compress(b"{}", mtime=0)[:-2], ["gzip"], "gzip: it ends in the middle"),
        (
            packed.compress(b" " * 2_000_000, mtime=0),
            ["gzip"],
            "gzip: unpacked it has more than 1,048,576 bytes, which is policy.max_payload_bytes",
        ),
        (b"[1]", ["array"], "it is a single value, not an object"),
        (b'[{"a": 1},', ["array"], "array, character 11: expecting value, found ''"),
        (b"{} x", ["concatenated"], "concatenated, document 2: expecting value"),
        (b"\xff", ["text"], "text, byte 1: 0xff is no UTF-8"),
        (b"[" * 501 + b"]" * 501, ["array"], "array: it is nested more deeply than 500"),
        (b"{}\n" * 100_001, ["lines"], "lines: a message has more than 100,000 objects"),
    ],
)
def test_what_cannot_be_decoded_has_a_place_and_a_reason(payload: bytes, decode: list[Any], expected: str) -> None:
    assert reason(payload, *decode) == expected


@pytest.mark.parametrize(
    ("payload", "decode"),
    [
        ({**{f"x{n}": n for n in range(2_000)}, **{f"t{n}": 1 for n in range(2_000)}}, {"by_key": {"match": "t.*"}}),
        ({**{f"x{n}": n for n in range(2_000)}, "a": [1] * 2_000}, "columns"),
        ({**{f"x{n}": n for n in range(2_000)}, "a": [1] * 2_000}, {"flatten": "a"}),
        ({**{f"x{n}": n for n in range(2_000)}, "a": [1] * 2_000}, {"array": "a"}),
    ],
)
def test_a_short_message_cannot_ask_for_any_memory(payload: dict[str, Any], decode: Any) -> None:
    assert reason(json.dumps(payload).encode(), decode).endswith("other fields, are too many")


def test_a_name_of_several_fields_leaves_out_what_is_absent_and_is_absent_if_all_are() -> None:
    step = {"join": {"into": "d", "fields": ["host", "tags.cpu", "on"], "separator": "/"}}
    assert [made.get("d") for made in objects(b'{"host":"a","tags":{"cpu":0},"on":true}', step)] == ["a/0/true"]
    assert [made.get("d") for made in objects(b'{"host":null,"tags":"x","on":["y"]}', step)] == [None]


def test_an_object_where_base64_may_stand_is_read_as_it_is() -> None:
    assert (
        objects(b'{"Body":{"v":1}}', {"base64": "Body"}) == objects(b'{"Body":"eyJ2IjogMX0="}', {"base64": "Body"}) == [{"Body": {"v": 1}}]
    )


OWN = """
def twice(payload, message, name="v"):
    return [{name: payload.decode(), "topic": message.topic}] * 2

def broken(payload):
    return [{"v": 1 / 0}]

def odd(payload):
    return [{"v": object()}]
"""


def test_a_function_of_the_users_gets_the_message_and_its_arguments() -> None:
    made = objects(b"5", {"own:twice": {"name": "x"}}, code={"own": OWN})
    assert made == [{"x": "5", "topic": "plant/oven"}] * 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [("broken", "own:broken, line 6: ZeroDivisionError: division by zero"), ("odd", "objects of type object")],
)
def test_what_a_function_of_the_users_raises_is_the_reason(name: str, expected: str) -> None:
    assert expected in reason(b"5", f"own:{name}", code={"own": OWN})


def test_a_null_has_no_value_and_neighbours_of_what_is_odd_are_read() -> None:
    shape = PayloadFormat("json", Origin(field="d"), Time("t"), decode=("array",), metrics={"a": "v.a", "b": "b"})
    rows = pa.concat_tables(measurements(events_of([b'[{"d":"x","v":3,"b":1},null,{"d":"y","v":{"a":2}}]']), shape, 1_000))
    found = sorted(zip(rows["part"].to_pylist(), rows["device_id"].to_pylist(), rows["number"].to_pylist(), strict=True), key=str)
    assert found == [(0, "x", None), (1, "x", 1.0), (2, None, None), (4, "y", 2.0)]
    assert rows["parts"].null_count == 4


BINARY = {
    "gzip": PayloadFormat("json", Origin(field="d"), Time("t"), decode=("gzip", "array"), metrics={"a": "a"}),
    "confluent": PayloadFormat("json", Origin(field="d"), Time("t"), decode=("confluent",), metrics={"a": "a"}),
    "base64": PayloadFormat("json", Origin(field="d"), Time("t"), decode=("base64", "sparkplug_b"), metrics={"a": "seq"}),
}


@given(st.lists(st.binary(max_size=60) | st.binary(max_size=60).map(packed.compress)), st.sampled_from(sorted(BINARY)))
def test_any_bytes_are_read_as_verify_reads_them(payloads: list[bytes], name: str) -> None:
    events = events_of([*payloads, packed.compress(b'[{"a":1,"d":"x"}]'), b'\0\0\0\0\7{"a":1}'])
    assert of_silver(events, BINARY[name]) == of_verify(events, BINARY[name])
