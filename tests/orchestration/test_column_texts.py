"""Texts of rows, made a column at a time, are those of each row."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from orchestration.column_texts import json_lists, json_rows, plain_texts
from orchestration.rendering import plain, to_json, values

INSTANT = datetime(2026, 1, 5, 12, 0, 0, 120_000, UTC)
EDGES = [edge + micros for edge in (-62_135_596_800_000_000, 253_402_300_800_000_000) for micros in (-1, 0, 1)]
"""About the begin of the year 1, and of the year 10,000, which Python does not have."""
KINDS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["", 'say "hi"\n\\ \x00 é 🌊', "null"]),
    (pa.float64(), [float("nan"), float("inf"), float("-inf"), -0.0, 1.0, 0.1, 5e-324, 1.7976931348623157e308, 1e22]),
    (pa.float32(), [21.7, 3.0]),
    (pa.int64(), [0, -(2**63), 2**63 - 1]),
    (pa.bool_(), [True, False]),
    (pa.binary(), [b"", b"\xff\x00a"]),
    (pa.date32(), [date(2026, 1, 5)]),
    (pa.date32(), [-719_163, -719_162, 2_932_896, 2_932_897, 12_000_000, 2**31 - 1]),
    (pa.timestamp("us", "UTC"), [INSTANT, INSTANT.replace(microsecond=0), -(10**17), *EDGES, 2**60, 2**63 - 1, 1 - 2**63]),
    (pa.timestamp("us", "Europe/Berlin"), [INSTANT, *EDGES]),
    (pa.timestamp("ns"), [0, 1_000, 10**9, 10**9 + 123, 123_456_789, -1, 2**63 - 1, 1 - 2**63]),
    (pa.timestamp("ms", "UTC"), [250, -1, 2**62, 2**63 - 1]),
    (pa.timestamp("s"), [-1, 0, 253_402_300_800, 2**63 - 1]),
    (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("12345678.25")]),
    (pa.decimal128(38, 12), [Decimal("0.000000000001"), Decimal("0E-12"), Decimal("-5.25")]),
    (pa.dictionary(pa.int8(), pa.string()), ["warm", "cold"]),
    (pa.list_(pa.float64()), [[], [1.5, None, float("nan")]]),
    (pa.list_(pa.string()), [[], ["a", None, '"']]),
    (pa.list_(pa.list_(pa.int32())), [[[1], None, []]]),
    (pa.struct([("a", pa.int64())]), [{"a": 1}]),
    (pa.map_(pa.string(), pa.string()), [[], [("a", "1"), ("b", None)]]),
]


def row_by_row(rows: pa.Table) -> list[Any]:
    columns = [[plain(cell) for cell in values(column)] for column in rows.columns]
    return [json.loads(to_json(dict(zip(rows.column_names, row, strict=True)))) for row in zip(*columns, strict=True)]


@given(st.data())
def test_every_cell_is_what_it_is_row_by_row(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    columns = [pa.array([data.draw(st.sampled_from([None, *cells])) for _ in range(count)], kind) for kind, cells in KINDS]
    rows = pa.table(columns, [f'"{number}' for number in range(len(KINDS))]).slice(data.draw(st.integers(0, count - 1)))
    assert [json.loads(text) for text in json_rows(rows)] == row_by_row(rows)
    assert [json.loads(text) for text in json_lists(rows)] == [[*row.values()] for row in row_by_row(rows)]
    for column in rows.columns:
        cells = [plain(cell) for cell in values(column)]
        texts = plain_texts(column.combine_chunks()).to_pylist()
        bare = [cell if cell is None or isinstance(cell, str) else to_json(cell) for cell in cells]
        same = float if pa.types.is_floating(column.type) else json.loads if pa.types.is_nested(column.type) else str
        assert [text and repr(same(text)) for text in texts] == [text and repr(same(text)) for text in bare]


def test_columns_are_chosen_and_no_row_is_no_text() -> None:
    rows = pa.table({"a": [1, 2], "b": ["x", None]})
    assert json_rows(rows, ["b"]) == [b'{"b":"x"}', b'{"b":null}']
    assert json_rows(rows.schema.empty_table()) == []
