"""Bodies without a collector: what an answer counts as unreadable is what silver finds so."""

import pyarrow as pa
import pytest

from orchestration.connectors.collector.bodies import payloads
from silver.measurements import measurements
from silver.spec import Origin, PayloadFormat, Time

DEVICE, TIME, METRIC = Origin(field="device"), Time("ts"), Origin(constant="temperature")
OBJECTS = PayloadFormat("json", DEVICE, TIME, metric=METRIC, value=Origin("v"))
ROWS = PayloadFormat("csv", DEVICE, TIME, metric=METRIC, value=Origin("v"), columns=("device", "ts", "v"), separator=";")
JSON_EVENTS = [b'{"v":1}', b"{}", b"[{}]", b"[]", b"1", b"null", b'"a"', b"NaN", b"odd", b"{", b"}", b'{"v":NaN}', b'{"v":-Infinity}']
JSON_EVENTS += [b'{"v":01}', b'{"v":1,}', b"{'v':1}", b'{"v":"\xff"}', b'{"v":"\\ud83d"}', b'{"v":1}{"v":2', b'{"v":' * 2_000, b"\x00"]
CSV_EVENTS = [b"a;b;c", b"a;b;c\r", b"a;b", b"a;b;c;d", b"", b'"a";"b";"c"', b'a;"b;b";c', b'a;"b;c', b"a;b;\xff", b"a,b,c", b";;"]


def counted(events: list[bytes], shape: PayloadFormat) -> int:
    """How many of them silver finds unreadable."""
    texts = pa.nulls(len(events), pa.string())
    table = pa.table({"payload": pa.array(events, pa.binary()), "header": texts, "position": texts})
    return sum(piece["is_readable"].to_pylist().count(False) for piece in measurements(table, shape, 1 << 20))


@pytest.mark.parametrize(
    ("event", "shape", "kind"),
    [(event, OBJECTS, "application/x-ndjson") for event in JSON_EVENTS] + [(event, ROWS, "text/csv") for event in CSV_EVENTS],
    ids=[repr(event[:20]) for event in (*JSON_EVENTS, *CSV_EVENTS)],
)
def test_what_is_counted_is_what_silver_finds_unreadable(event: bytes, shape: PayloadFormat, kind: str) -> None:
    good = b'{"v":1}' if shape is OBJECTS else b"a;b;c"
    events, unreadable = payloads(b"\n".join((good, event, good)), kind, shape)
    assert (events, unreadable) == ([good, event, good], counted([event], shape))


@pytest.mark.parametrize("events", [JSON_EVENTS[:7], [b"odd", b"null", *JSON_EVENTS[11:13]]], ids=["all are JSON", "some are not"])
def test_elements_of_an_array_are_counted_the_same_way(events: list[bytes]) -> None:
    assert payloads(b"[" + b", ".join(events) + b"]", "application/json", OBJECTS) == (events, counted(events, OBJECTS))


def test_a_body_for_decoders_is_one_event_whatever_its_type_says() -> None:
    packs = PayloadFormat("json", DEVICE, TIME, metric=METRIC, value=Origin("v"), decode=("senml",))
    for kind in ("application/json", "application/senml+json", "text/plain", ""):
        assert payloads(b'[{"n":"a"},\n{"n":"b"}]', kind, packs) == ([b'[{"n":"a"},\n{"n":"b"}]'], 0)
