"""Payloads that are read at once, by templates, give the measurements that they give when they are read one by one."""

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.verify import at_once
from orchestration.verify.measurements import MEASUREMENTS, measurements
from orchestration.verify.one_by_one import rows_of
from orchestration.verify.templates import template_of
from silver.spec import Origin, PayloadFormat, Time
from tests.verify.hostile import payloads
from tests.verify.hostile_shapes import LONG, SHAPES

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


@pytest.fixture
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "ENOUGH", 1)
    monkeypatch.setattr(at_once, "MOST_TEMPLATES", 100_000)


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


def same_both_ways(events: pa.Table, shape: PayloadFormat) -> bool:
    found = measurements(events, shape, MOST_BYTES)
    assert found.schema == MEASUREMENTS
    expected = pa.Table.from_pylist(
        [dict(zip(MEASUREMENTS.names, row, strict=True)) for row in rows_of(events, shape, MOST_BYTES)], MEASUREMENTS
    )
    return cells(zip(*found.to_pydict().values(), strict=True)) == cells(zip(*expected.to_pydict().values(), strict=True))


@pytest.mark.usefixtures("_few_are_enough")
@pytest.mark.parametrize("source", [name for name, shape in SHAPES.items() if shape.format == "json"])
def test_hostile_payloads_are_read_alike(source: str) -> None:
    of = [payload for name, payload, _ in payloads(7, 300) if name == source]
    assert same_both_ways(events_of(of), SHAPES[source])


@given(st.lists(OF_LONG, max_size=5), st.lists(OF_WIDE, max_size=5), st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:\r")]))
def test_made_payloads_are_read_alike(long: list[Any], wide: list[Any], separators: tuple[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(at_once, "ENOUGH", 1)
        for members, shape in ((long, LONG), (wide, WIDE)):
            of = [json.dumps(each, separators=separators, ensure_ascii=False).encode() for each in members]
            assert same_both_ways(events_of(of), shape)


def test_payloads_of_one_make_are_read_at_once_and_the_others_left() -> None:
    plain = [
        json.dumps({"device": f"d{n}", "metric": "power", "value": n / 2, "ts": "2026-01-01T00:00:01Z"}).encode() for n in range(1_000)
    ]
    odd = [b"", b"{}", b"[]", b'{"device":"\\u0061"}', b'{"device":"d","metric":"power","value":1e3}', b"\xff" + plain[0], plain[0] + b"x"]
    found, others = at_once.at_once(events_of([*odd, *plain]), LONG, MOST_BYTES)

    assert [len(columns["number"]) for columns in found] == [1_000]
    assert others.to_pylist() == list(range(len(odd)))
    assert same_both_ways(events_of([*odd, *plain]), LONG)


@pytest.mark.parametrize(
    "payload", [b'{"a":1,"a":2}', b'{"a":[1]}', b'{"a":{"b":1}}', b'{"a":1.5}', b'{"c":1}', b'{"\xc3\xa9":1}', b"[]", b"1", b"{", b""]
)
def test_of_what_takes_more_reading_there_is_no_template(payload: bytes) -> None:
    assert template_of(payload, {("a",), ("c", "d")}, {("a",)}) is None
