"""Columns of Arrow as texts of CSV and JSON, a column at a time: row by row in Python takes ten times as long (measured).

Instants are in ISO 8601, decimals have all their digits, bytes are text with backslash escapes, NaN is "NaN" and infinity "Infinity"
(rendering.plain).
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from orchestration.rendering import INFINITE, plain, to_json, values

NULL = "null"
ENCODER = msgspec.json.Encoder(decimal_format="number")
FIRST_DAY, END_DAY = -719_162, 2_932_897
"""Days since 1970 of the years 1 to 9999: Arrow writes their instants as ISO 8601 does, and others wrongly."""
A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}  # all nanoseconds are of the years 1677 to 2262


def json_rows(rows: pa.Table, columns: Sequence[str] = ()) -> list[bytes]:
    """An object a row, of some columns or all: the same bytes for the same cells."""
    names = columns or rows.column_names
    begins = [f"{',' if number else '{'}{_encoded(name)}:" for number, name in enumerate(names)]
    texts: list[bytes] = _joined(begins, rows.select(names), "}").cast(pa.binary()).to_pylist() if names and len(rows) else []
    return texts


def json_lists(rows: pa.Table) -> list[str]:
    """A list a row, of the values of all columns."""
    begins = [", " if number else "[" for number in range(rows.num_columns)]
    texts: list[str] = _joined(begins, rows, "]").to_pylist() if begins and len(rows) else ["[]"] * len(rows)
    return texts


def _joined(begins: Sequence[str], rows: pa.Table, end: str) -> pa.Array:
    """Join the JSON texts of each row, each column behind its `begins`."""
    parts = ((begin, json_texts(column.combine_chunks())) for begin, column in zip(begins, rows.columns, strict=True))
    return pc.binary_join_element_wise(*chain.from_iterable(parts), end, "")


def bracketed(lists: pa.ListArray, elements: pa.Array, brackets: str, absent: str | None, comma: str = ",") -> pa.Array:
    """Join the texts of the elements of each list by commas, between brackets; `absent` stands for a list that is null."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths.cast(pa.int32()))])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, elements), comma)
    return pc.if_else(pc.is_valid(lists), pc.binary_join_element_wise(brackets[0], joined, brackets[1], ""), pa.scalar(absent, pa.string()))


def plain_texts(column: pa.Array) -> pa.Array:
    """Texts as a CSV has them, without quotes; lists and structs are JSON. Null stays null."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_floating(kind):
        odd = pc.if_else(pc.is_nan(column), "NaN", pc.if_else(pc.greater(column, 0), "Infinity", "-Infinity"))
        return pc.if_else(pc.is_finite(column), column.cast(pa.string()), odd)
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind) or pa.types.is_decimal(kind):
        texts, is_odd = _by_arrow(column)
        is_odd = pc.fill_null(is_odd, False)  # mostly none
        return pc.replace_with_mask(texts, is_odd, _written(column.filter(is_odd), _bare)) if pc.any(is_odd).as_py() else texts
    if pa.types.is_list(kind) and pa.types.is_floating(kind.value_type):
        return bracketed(column, json_texts(column.flatten()), "[]", None, ", ")
    if pa.types.is_nested(kind):
        return _written(column, to_json)
    coded = column.dictionary_encode()  # mostly few kinds and states
    return _written(coded.dictionary, _bare).take(coded.indices)


def json_texts(column: pa.Array) -> pa.Array:
    """Texts as JSON has them, `null` for null."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        return pc.fill_null(plain_texts(column), NULL)
    if pa.types.is_floating(kind):
        texts = plain_texts(column)
        return pc.fill_null(pc.if_else(pc.is_finite(column), texts, _quoted(texts)), NULL)
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return pc.fill_null(_quoted(plain_texts(column)), NULL)
    if pa.types.is_list(kind):
        return bracketed(column, json_texts(column.flatten()), "[]", NULL)
    if pa.types.is_nested(kind):
        return _written(column, _encoded, NULL)
    coded = column.dictionary_encode()  # mostly few devices and metrics
    return pc.fill_null(_written(coded.dictionary, _encoded).take(coded.indices), NULL)


def _by_arrow(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Decimals, dates and instants as Arrow writes them, and which of them it writes in another way than `plain`. An instant has a fraction
    of six digits where it has one, of nine where it is that exact; Z where it is in a zone."""
    kind = column.type
    if not pa.types.is_timestamp(kind):
        texts = column.cast(pa.string())
        return texts, pc.match_substring(texts, "E") if pa.types.is_decimal(kind) else _is_outside(column.cast(pa.int32()), 1)
    counts = column.cast(pa.int64())
    is_exact = kind.unit == "ns"
    is_odd = pc.equal(pc.abs(counts), INFINITE) if is_exact else _is_outside(counts, A_DAY[kind.unit])
    instants = pc.if_else(is_odd, None, counts).cast(pa.timestamp(kind.unit)).cast(pa.timestamp("ns" if is_exact else "us"))
    texts = pc.utf8_replace_slice(instants.cast(pa.string()), 10, 11, "T")
    texts = pc.replace_substring_regex(texts, r"(\.000000)?000$", "") if is_exact else pc.replace_substring(texts, ".000000", "")
    return texts if kind.tz is None else pc.binary_join_element_wise(texts, "Z", ""), is_odd


def _is_outside(counts: pa.Array, a_day: int) -> pa.Array:
    return pc.or_(pc.less(counts, FIRST_DAY * a_day), pc.greater_equal(counts, END_DAY * a_day))


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _written(column: pa.Array, write: Callable[[Any], str], absent: str | None = None) -> pa.Array:
    cells = [plain(cell) for cell in values(pa.chunked_array([column]))]
    return pa.array([absent if cell is None else write(cell) for cell in cells], pa.string())


def _bare(cell: Any) -> str:
    return cell if isinstance(cell, str) else to_json(cell)


def _encoded(cell: object) -> str:
    return ENCODER.encode(cell).decode()
