"""Encode the answer of a query as the body of an HTTP response: JSON, CSV, Parquet or an Arrow stream. In memory only."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import csv

from orchestration.rendering import plain, values
from orchestration.serving.sql.answer import Answer
from orchestration.serving.sql.output import write_parquet

ARROW, CSV, JSON = "application/vnd.apache.arrow.stream", "text/csv", "application/json"
PARQUET = "application/vnd.apache.parquet"


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
        csv.write_csv(_flat(answer.rows), sink)
        return Encoded(sink.getvalue(), CSV, headers)
    columns = [{"name": field.name, "type": str(field.type)} for field in answer.rows.schema]
    rows = [plain(row) for row in zip(*map(values, answer.rows.columns), strict=True)]
    body = {"snapshot": _snapshot(answer), "columns": columns, "rows": rows, "is_cut_off": answer.is_cut_off, "name": name}
    return Encoded(json.dumps(body, ensure_ascii=False).encode("utf-8", "backslashreplace"), JSON, headers)


def _flat(rows: pa.Table) -> pa.Table:
    """Turn lists, maps, structs and bytes into JSON texts, as CSV has none of these; `tidemark sql --format csv` prints the same."""
    for index, kind in enumerate(rows.schema.types):
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            texts = [None if value is None else json.dumps(plain(value), ensure_ascii=False) for value in values(rows.column(index))]
            rows = rows.set_column(index, rows.schema.field(index).name, pa.array(texts, pa.string()))
    return rows


def _snapshot(answer: Answer) -> Any:
    fields = ("snapshot_id", "at", "generation", "bronze_batch")
    return answer.snapshot and plain({name: getattr(answer.snapshot, name) for name in fields})
