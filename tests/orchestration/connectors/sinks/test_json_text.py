"""JSON of rows, made a column at a time, is the JSON of each row."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from orchestration.connectors.sinks.json_text import json_rows
from orchestration.rendering import plain, values

INSTANT = datetime(2026, 1, 5, 12, 0, 0, 120_000, UTC)
KINDS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["", 'say "hi"\n\\ \x00 é 🌊', "null"]),
    (pa.float64(), [float("nan"), float("inf"), float("-inf"), -0.0, 1.0, 0.1, 5e-324, 1.7976931348623157e308, 1e22]),
    (pa.float32(), [21.7, 3.0]),
    (pa.int64(), [0, -(2**63), 2**63 - 1]),
    (pa.bool_(), [True, False]),
    (pa.binary(), [b"", b"\xff\x00a"]),
    (pa.date32(), [date(2026, 1, 5)]),
    (pa.timestamp("us", "UTC"), [INSTANT, INSTANT.replace(microsecond=0), -(10**17)]),
    (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("12345678.25")]),
    (pa.list_(pa.float64()), [[], [1.0, None, float("nan")]]),
    (pa.list_(pa.string()), [[], ["a", None, '"']]),
    (pa.list_(pa.list_(pa.int32())), [[[1], None, []]]),
    (pa.struct([("a", pa.int64())]), [{"a": 1}]),
    (pa.map_(pa.string(), pa.string()), [[], [("a", "1"), ("b", None)]]),
]


def row_by_row(rows: pa.Table) -> list[Any]:
    columns = [[plain(cell) for cell in values(column)] for column in rows.columns]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


@given(st.data())
def test_every_cell_is_what_it_is_row_by_row(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    columns = [pa.array([data.draw(st.sampled_from([None, *cells])) for _ in range(count)], kind) for kind, cells in KINDS]
    rows = pa.table(columns, [f'"{number}' for number in range(len(KINDS))]).slice(data.draw(st.integers(0, count - 1)))
    assert [json.loads(text) for text in json_rows(rows)] == row_by_row(rows)


def test_columns_are_chosen_and_no_row_is_no_text() -> None:
    rows = pa.table({"a": [1, 2], "b": ["x", None]})
    assert json_rows(rows, ["b"]) == [b'{"b":"x"}', b'{"b":null}']
    assert json_rows(rows.schema.empty_table()) == []
