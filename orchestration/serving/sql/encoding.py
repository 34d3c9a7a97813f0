"""Encode the answer of a query as the body of an HTTP response: JSON, CSV, Parquet or an Arrow stream. In memory only."""

import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from orchestration.column_texts import json_lists, plain_texts
from orchestration.rendering import plain, to_json
from orchestration.serving.sql.answer import Answer
from orchestration.serving.sql.output import write_parquet

ARROW, CSV, JSON = "application/vnd.apache.arrow.stream", "text/csv", "application/json"
PARQUET = "application/vnd.apache.parquet"
GUARDED_CSV = f"{CSV}; guard=formulas"
"""CSV in which a quote stands before texts that a spreadsheet would run as formulas."""
FORMULA = "\\A([=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20])"
NUMBERS = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_floating, pa.types.is_decimal)
AS_THEY_ARE = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_string)


@dataclass(frozen=True)
class Encoded:
    """The body of a response, and its headers."""

    body: bytes
    media_type: str
    headers: Mapping[str, str]


def encoded(answer: Answer, accept: str, name: str) -> Encoded:
    """Encode an answer as the Accept header asks; in JSON if it names no known format."""
    headers = {"Tidemark-Question": name, "Tidemark-Is-Cut-Off": str(answer.is_cut_off).lower()}
    if answer.snapshot:
        headers["Tidemark-Snapshot"] = json.dumps(_snapshot(answer))
    sink = io.BytesIO()
    if ARROW in accept:
        with pa.ipc.new_stream(sink, answer.rows.schema) as stream:
            stream.write_table(answer.rows)
        return Encoded(sink.getvalue(), ARROW, headers)
    if PARQUET in accept:
        write_parquet(answer, sink)
        return Encoded(sink.getvalue(), PARQUET, headers)
    if CSV in accept:
        csv.write_csv(_flat(answer.rows, is_guarded=accept == GUARDED_CSV), sink)
        return Encoded(sink.getvalue(), CSV, headers)
    columns = [{"name": field.name, "type": str(field.type)} for field in answer.rows.schema]
    facts = to_json({"snapshot": _snapshot(answer), "columns": columns, "is_cut_off": answer.is_cut_off, "name": name})
    rows = ", ".join(json_lists(answer.rows))
    return Encoded(f'{facts[:-1]}, "rows": [{rows}]}}'.encode("utf-8", "backslashreplace"), JSON, headers)


def _flat(rows: pa.Table, is_guarded: bool) -> pa.Table:
    """Turn all but plain numbers, booleans and texts into texts; lists are JSON."""
    columns = []
    for column in rows.columns:
        is_text = not _is_one_of(column.type, NUMBERS)
        is_plain = pc.all(pc.is_finite(column)).as_py() is not False if pa.types.is_floating(column.type) else False
        texts = column if is_plain or _is_one_of(column.type, AS_THEY_ARE) else plain_texts(column.combine_chunks())
        columns.append(pc.replace_substring_regex(texts, FORMULA, r"'\1") if is_guarded and is_text else texts)
    names = [re.sub(FORMULA, r"'\1", name) if is_guarded else name for name in rows.column_names]
    return pa.table(columns, names)


def _is_one_of(kind: pa.DataType, kinds: Sequence[Callable[[pa.DataType], bool]]) -> bool:
    return any(is_kind(kind) for is_kind in kinds)


def _snapshot(answer: Answer) -> Any:
    fields = ("snapshot_id", "at", "generation", "bronze_batch")
    return answer.snapshot and plain({name: getattr(answer.snapshot, name) for name in fields})
