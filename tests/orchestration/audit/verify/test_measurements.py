"""Payloads to measurements: orjson and the careful reader agree on every payload, and a column of odd values on each of them."""

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.audit.verify import records
from orchestration.audit.verify.json_payload import read_object
from orchestration.audit.verify.measurements import MEASUREMENTS, measurements
from silver.spec import Origin, PayloadFormat, Time
from tests.orchestration.audit.verify.hostile import payloads
from tests.orchestration.audit.verify.hostile_shapes import LONG, SHAPES

MOST_BYTES = 1_100
WIDE = PayloadFormat(
    "json", Origin(file_name=r"^(\w+)\."), Time("meta.at", "epoch_ms"), metrics={"temperature": "v.t", "humidity": "v.h", "power": "p"}
)
TEXT = st.text(st.characters(max_codepoint=0x17F), max_size=4)
NUMBER = st.integers() | st.floats(allow_nan=False) | st.sampled_from([0, -0.0, 1, 21.5, -3])
LEAF = st.none() | st.booleans() | NUMBER | TEXT | st.sampled_from(["21.5", "true", "", " ", "2026-01-01T00:00:01Z"])
OF_LONG = st.fixed_dictionaries(
    {"device": st.sampled_from(["oven", " room "]) | LEAF, "metric": st.just("temperature") | LEAF, "value": NUMBER | LEAF},
    optional={
        "ts": st.just("2026-01-01T00:00:01Z") | LEAF,
        "unit": LEAF,
        "zone": LEAF,
        "more": LEAF | st.dictionaries(TEXT, LEAF, max_size=2),
    },
)
OF_WIDE = st.fixed_dictionaries(
    {"meta": st.fixed_dictionaries({"at": st.integers(0, 2**41) | LEAF}) | LEAF},
    optional={"v": st.dictionaries(st.sampled_from(["t", "h", "x"]), NUMBER | LEAF) | LEAF, "p": NUMBER | LEAF, "list": st.lists(LEAF)},
)


def events_of(of: list[bytes], header: str | None = None) -> pa.Table:
    positions = [None if n == 1 else f"{'oven' if n % 3 else 'room'}.json:{n}" for n in range(len(of))]
    return pa.table(
        {
            "payload": pa.array(of, pa.binary()),
            "header": pa.array([header] * len(of), pa.string()),
            "position": pa.array(positions, pa.string()),
        }
    )


def cells(rows: Iterable[Any]) -> list[str]:
    """As text: NaN equals itself then, and 0 is not -0."""
    return sorted(map(repr, rows))


def rows_of(events: pa.Table, shape: PayloadFormat) -> list[str]:
    rows = measurements(events, shape, MOST_BYTES)
    assert rows.schema == MEASUREMENTS
    return cells(zip(*rows.to_pydict().values(), strict=True))


def with_care(events: pa.Table, shape: PayloadFormat) -> list[str]:
    """The rows when orjson reads none of the payloads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "LONGEST", -1)
        return rows_of(events, shape)


@pytest.mark.parametrize("source", [name for name, shape in SHAPES.items() if shape.format == "json"])
def test_hostile_payloads_are_read_alike_by_orjson_and_with_care(source: str) -> None:
    events = events_of([payload for name, payload, _ in payloads(7, 300) if name == source])
    assert rows_of(events, SHAPES[source]) == with_care(events, SHAPES[source])


@pytest.mark.parametrize("source", SHAPES)
def test_payloads_beside_a_payload_change_nothing_in_its_rows(source: str) -> None:
    """Columns are converted whole, and with more care where one value of them is odd."""
    of = [(payload, header) for name, payload, header in payloads(8, 20) if name == source][::4]
    events = pa.concat_tables([events_of([payload], header) for payload, header in of])
    alone = [cells for n in range(len(of)) for cells in rows_of(events.slice(n, 1), SHAPES[source])]
    assert sorted(_without_place(row) for row in rows_of(events, SHAPES[source])) == sorted(map(_without_place, alone))


def _without_place(row: str) -> str:
    return row.partition(", ")[2]


@given(st.lists(OF_LONG, max_size=5), st.lists(OF_WIDE, max_size=5), st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r")]))
def test_generated_payloads_are_read_alike(long: list[Any], wide: list[Any], separators: tuple[str, str]) -> None:
    for payloads_of, shape in ((long, LONG), (wide, WIDE)):
        events = events_of([json.dumps(members, separators=separators, ensure_ascii=False).encode() for members in payloads_of])
        assert rows_of(events, shape) == with_care(events, shape)


def test_only_what_orjson_refuses_is_read_with_care(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [b'{"device":"d","metric":"power","value":%d.5,"ts":"2026-01-01T00:00:01Z","more":1}' % n for n in range(10)]
    odd = [b"[]", b"{}{}", b'{"value":NaN}', b'{"value":1e400}', b'{"zone":{}}', b'{"device":"\\ud800"}', b"x" + plain[0]]
    long = b'{"more":"' + b"x" * records.LONGEST + b'"}'
    read: list[str] = []

    def careful(text: str) -> dict[str, Any]:
        read.append(text)
        return read_object(text)

    monkeypatch.setattr(records, "read_object", careful)
    assert len(rows_of(events_of([*odd, *plain, long]), LONG)) == len(odd) + len(plain) + 1
    assert read == [payload.decode() for payload in (*odd, long)]


@pytest.mark.parametrize(
    ("payload", "device", "numbers"),
    [
        (b'{"d":{"id":"x"},"v":{"t":1,"h":2}}', "x", [1.0, 2.0]),
        (b'{"d":null,"v":null,"other":[]}', None, [None]),
        (b'{"d":5,"v":{"t":1}}', None, [1.0]),
        (b'{"d":5,"d":{"id":"x"},"v":{"h":1}}', "x", [1.0]),
        (b'{"d":{"id":"x"},"v":7}', "x", [None, None]),
        (b'{"v":{"t":1},"v":{"t":2},"x":1,"x":1}', None, [2.0]),
    ],
)
def test_an_object_that_is_none_spoils_its_own_fields_only(payload: bytes, device: str | None, numbers: list[float | None]) -> None:
    for most in (records.LONGEST, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(records, "LONGEST", most)
            rows = measurements(events_of([payload]), SHAPES["nested"], MOST_BYTES)
        assert rows["is_readable"].to_pylist() == [True] * len(numbers)
        assert (set(rows["device_id"].to_pylist()), rows["number"].to_pylist()) == ({device}, numbers)
        assert rows["is_measured"].to_pylist() == [payload != b'{"d":null,"v":null,"other":[]}'] * len(numbers)
