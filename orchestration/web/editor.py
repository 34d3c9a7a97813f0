"""The view of SQL: an editor over one snapshot, the answer of a query as a table and a chart, and saved queries."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from starlette.requests import Request

from orchestration.conf.model import Conf
from orchestration.errors import ConfError, TidemarkError
from orchestration.rendering import plain, to_json, values
from orchestration.serving.sql.answer import Question
from orchestration.serving.sql.completion import SnapshotTables, candidates, starting_with, word_before
from orchestration.serving.sql.encoding import ARROW, CSV, PARQUET, Encoded
from orchestration.serving.sql.output import replacing
from orchestration.web.queries import LIMITS, Queries, ViewRequest, table_of
from orchestration.web.security import FormError, is_foreign, text_of, whole

MOST_SHOWN, MOST_COLUMNS, MOST_DRAWN, MOST_LINES, MOST_BARS, MOST_WORDS, MOST_TABLES = 200, 100, 5_000, 8, 40, 40, 500
LONGEST_CELL = 1_000
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
FORMATS = {"csv": CSV, "parquet": PARQUET}
EXAMPLE = "select * from silver.readings order by event_time desc limit 20"


@dataclass(frozen=True)
class Editor:
    """`error`: why there is no answer. `is_unasked`: another site has opened the query, which is shown and not run.

    `count`, `columns_count`: of the whole answer, of which a part is shown.
    `columns`: name, type, whether it has numbers. `rows`: of each cell its text, and in full where that is rounded. `chart`: see _chart."""

    query: str
    snapshot: str
    saved: Mapping[str, str]
    error: str = ""
    columns: Sequence[tuple[str, str, bool]] = ()
    rows: Sequence[Sequence[tuple[str, str]]] = ()
    count: int = 0
    columns_count: int = 0
    is_cut_off: bool = False
    of_snapshot: Mapping[str, Any] | None = None
    chart: str = ""
    is_unasked: bool = False


def question_of(params: Mapping[str, str]) -> Question:
    """ConfError for a snapshot that is no number."""
    snapshot = params.get("snapshot", "").strip()
    number = whole(snapshot, -1)
    if snapshot and number < 0:
        raise ConfError(f"{snapshot[:20]} is no snapshot; leave it empty for the newest, or take a number of the view of runs.")
    return Question(params.get("query", ""), number if snapshot else None)


async def editor(conf: Conf, queries: Queries, request: Request) -> Editor:
    """`query`, `snapshot`; without a query there is an example, which is not asked."""
    params = request.query_params
    query, snapshot = params.get("query", ""), params.get("snapshot", "")
    saved = {file.stem: file.read_text(encoding="utf-8", errors="replace") for file in sorted(folder_of(conf).glob("*.sql"))}
    if not query.strip():
        return Editor(EXAMPLE, snapshot, saved)
    if is_foreign(request.headers):
        return Editor(query, snapshot, saved, is_unasked=True)
    try:
        answer = await queries.answer(request, question_of(params), ARROW)
    except TidemarkError as error:
        return Editor(query, snapshot, saved, str(error))
    return await asyncio.to_thread(_answered, query, snapshot, saved, answer)


def _answered(query: str, snapshot: str, saved: Mapping[str, str], answer: Encoded) -> Editor:
    every = table_of(answer)
    table = every.select(range(min(every.num_columns, MOST_COLUMNS)))
    columns = [(field.name, str(field.type), _is_number(field.type)) for field in table.schema]
    cells = [[_cell(value) for value in values(column)] for column in table.slice(0, MOST_SHOWN).columns]
    shown = [*zip(*cells, strict=True)]
    of_snapshot = json.loads(answer.headers.get("Tidemark-Snapshot", "null"))
    is_cut_off = answer.headers["Tidemark-Is-Cut-Off"] == "true"
    return Editor(query, snapshot, saved, "", columns, shown, len(table), every.num_columns, is_cut_off, of_snapshot, _chart(table))


def completions(tables: Callable[[], SnapshotTables], text: str, cursor: int) -> dict[str, Any]:
    """Words that may stand at this place of a text: the beginning that they replace, and the likeliest first."""
    before = text[:cursor]
    word = word_before(before)
    completions = starting_with(word, candidates(tables(), text, before))
    return {"word": word, "words": [text for text, _ in zip(completions, range(MOST_WORDS), strict=False)]}


def folder_of(conf: Conf) -> Path:
    """Return the folder of saved queries, beside the folder of conf: one file a query."""
    return conf.folder.parent / "queries"


def save_query(request: ViewRequest, form: dict[str, str]) -> None:
    """Save the query as a file of that `name`, and replace an older one. ConfError for a name that is no plain word."""
    name, query, conf = form.get("name", ""), form.get("query", ""), request.conf
    if not NAME.fullmatch(name):
        raise FormError("name", f"{name or 'nothing'} is no name for a query: take small letters, digits, - and _, at most 60.")
    folder_of(conf).mkdir(exist_ok=True)
    text_of(form, "query", LIMITS.query_bytes)
    with replacing(folder_of(conf) / f"{name}.sql") as file:
        file.write(query.replace("\r\n", "\n").rstrip().encode("utf-8") + b"\n")


def tables_or_columns(tables: SnapshotTables, name: str) -> list[str] | list[tuple[str, str]]:
    """List the columns of the table of that name, with their types; without a name the first MOST_TABLES tables."""
    table = tables.table(name) if name else None
    return tables.columns(table) if table else sorted(tables.views)[:MOST_TABLES]


def _cell(value: Any) -> tuple[str, str]:
    if isinstance(value, float) and f"{value:.6g}" != str(value):
        return f"{value:,.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}", str(value)
    text = value if isinstance(value, str) else to_json(plain(value)).strip('"')
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}... ({len(text):,} characters)", ""


def _chart(table: pa.Table) -> str:
    """JSON for the script, empty for no chart: numbers over the first column.

    An instant or a number: lines, one for each text of the text columns, if there are any. A text: bars of the first column of numbers.
    """
    names, first = table.column_names, table.schema.types[0]
    rows = table.filter(table.column(0).is_valid()).slice(0, MOST_DRAWN)
    numbers = [field.name for field in [*table.schema][1:] if _is_number(field.type)][:MOST_LINES]
    if len({*names}) < len(names) or len(rows) < 2 or not numbers:
        return ""
    if _is_text(first):
        rows = rows.slice(0, MOST_BARS)
        line = {"device": numbers[0], "kind": "window", "x": [*range(len(rows))], "y": _floats(rows.column(numbers[0]))}
        return json.dumps(plain({"is_time": False, "is_bars": True, "names": rows.column(0).to_pylist(), "lines": [line], "bands": []}))
    is_time = pa.types.is_timestamp(first)
    if not is_time and not _is_number(first):
        return ""
    lines = [
        {"device": " ".join(filter(None, (label, name if len(numbers) > 1 or not label else ""))), "kind": "window"}
        | {"x": _xs(part.column(0), is_time), "y": _floats(part.column(name))}
        for label, part in _split(rows.sort_by(names[0])).items()
        for name in numbers
    ][:MOST_LINES]
    is_local = is_time and first.tz is None  # as it is, in whatever zone the page shows instants
    return json.dumps(plain({"is_time": is_time, "is_local": is_local, "lines": lines, "bands": []}))


def _split(rows: pa.Table) -> dict[str, pa.Table]:
    """Split rows by what their columns of texts have, those with the most rows first; without such columns into one part."""
    texts = rows.select([field.name for field in [*rows.schema][1:] if _is_text(field.type)])
    labels = pa.array([", ".join(map(str, row.values())) for row in texts.to_pylist()] or [""] * len(rows), pa.string())
    return {label: rows.filter(pc.equal(labels, label)) for label, _ in Counter(labels.to_pylist()).most_common(MOST_LINES)}


def _xs(column: pa.ChunkedArray, is_time: bool) -> list[float]:
    if not is_time:
        return _floats(column)
    return [instant / 1e6 for instant in column.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64()).to_pylist()]


def _floats(column: pa.ChunkedArray) -> list[Any]:
    numbers = column.cast(pa.float64(), safe=False)
    values: list[Any] = pc.if_else(pc.is_finite(numbers), numbers, None).to_pylist()
    return values


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))
