"""The fast engine: answers by DuckDB without a JVM, in a second from cold, what it is known to answer as Spark does.

What a query says never reaches DuckDB: it is read as Spark's SQL (parser), given a meaning and types (queries, expressions), and written
anew with nothing of it but numbers and quoted strings. DuckDB is the engine of quality and verify too. Like Spark in ANSI mode it ends
with an error where a number overflows, takes all NaN for one that is greater than any number, and can be interrupted.
"""

import re
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import duckdb
import pyarrow as pa
from sqlglot import exp

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Answer, Limits, Question
from orchestration.serving.sql.fast.errors import ASK_SPARK, TOO_LARGE, SqlError, refusal
from orchestration.serving.sql.fast.expressions import LARGEST
from orchestration.serving.sql.fast.functions import Value
from orchestration.serving.sql.fast.parser import parsed
from orchestration.serving.sql.fast.queries import Maker
from orchestration.serving.sql.fast.relations import Names, Relation
from orchestration.serving.sql.fast.tables import Tables
from orchestration.serving.sql.fast.types import arrow
from orchestration.serving.sql.refusal import RefusedError
from orchestration.storage.marts import snapshot_for
from orchestration.storage.views import views

MEMORY = 1024 * 1024 * 1024
"""Bytes for all that a query keeps while it runs; nothing is written to disk."""
BY_PYTHON = {"upper": str.upper, "lower": str.lower, "reverse": lambda text: text[::-1]}
"""What DuckDB does otherwise but for ASCII: it maps one character to one, and leaves accents behind their letters."""
INSTANTS = "create macro naive(t) as make_timestamp(epoch_us(t)); create macro aware(t) as make_timestamptz(epoch_us(t))"
"""To an instant without its zone, which is UTC, and back."""
NEWER = re.compile("[\u019b\u0264\ua7d3\ua7d5]")
"""Letters that have a capital one since Unicode 16, which Java knows and Python does not yet."""
UNGROUPED = re.compile(r'column "?(c[0-9]+)"? must appear in the GROUP BY')
WHY = (
    (r"cannot contain aggregates|cannot be nested|cannot contain window", "a count, sum or window stands where rows are not yet grouped"),
    (r"Division by zero", "it divides by zero"),
    (r"(no index -?\d+ in an array of \d+)", r"there is \1"),
    (r"quantile of infinite values", "a quantile lies between infinite values"),
    (r"newer than Unicode", "a letter is newer than what is known here of small and capital ones"),
    (r"Failure in decode", "a binary value is no text in UTF-8"),
    (r"More than one row returned by a subquery", "a query for one value finds several"),
    (r"(?i)out of range|overflow|can't be cast|could not cast|could not convert", "a number is too large for its type"),
    (r"Out of Memory", f"it needs more than {MEMORY // 1024**3} GB of memory"),
)
"""What DuckDB says, and what it means."""


class FastEngine:
    """Answers one question after the other, in this process."""

    def __init__(self, conf: Conf, limits: Limits) -> None:
        """Starts nothing."""
        self._conf, self._limits = conf, limits
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._ended_by = ""

    def ask(self, question: Question) -> Answer:
        """RefusedError for what it cannot answer as Spark would; TidemarkError for what breaks or does not end in time."""
        self._ended_by = ""
        snapshot = snapshot_for(self._conf.lake, question.query, question.snapshot_id, question.at)
        tables = Tables(views(self._conf, snapshot))
        relation, used = translated(question.query, tables, self._limits)
        with self._opened(tables, relation.sql) as connection:
            self._connection = connection
            timer = threading.Timer(self._limits.seconds, self._end, [f"did not end within {self._limits.seconds:g} s"])
            timer.start()
            try:
                if self._ended_by:
                    raise duckdb.InterruptException
                rows, is_cut_off = self._cut(self._batches(connection, relation.sql), relation.columns)
            except duckdb.Error as error:
                raise self._worded(error, question.query, used) from error
            finally:
                timer.cancel()
                self._connection = None
        return Answer(rows, snapshot, is_cut_off)

    def cancel(self) -> None:
        """End the question that is being answered; from another thread."""
        self._end("was cancelled")

    def _end(self, how: str) -> None:
        self._ended_by = how
        if self._connection is not None:
            self._connection.interrupt()

    def _opened(self, tables: Tables, sql: str) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(config={"memory_limit": f"{MEMORY}B", "temp_directory": "", "threads": self._conf.engine.cores})
        connection.execute(f"set TimeZone = 'UTC'; set enable_progress_bar = false; set python_enable_replacements = false; {INSTANTS}")
        for name, function in BY_PYTHON.items():
            if f"{name}_of(" in sql:
                known = partial(_by_python, function)
                connection.create_function(f"{name}_by_python", known, ["VARCHAR"], "VARCHAR")
                both = f"case when strlen(s) = length(s) then {name}(s) else {name}_by_python(s) end"
                connection.execute(f"create macro {name}_of(s) as {both}")
        tables.show(connection)
        return connection

    def _batches(self, connection: duckdb.DuckDBPyConnection, sql: str) -> list[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = []
        size = 0
        for batch in connection.sql(sql).to_arrow_reader(100_000):
            batches.append(batch)
            size += batch.nbytes
            if size > self._limits.result_bytes:
                break
        return batches

    def _cut(self, batches: Sequence[pa.RecordBatch], columns: Sequence[Value]) -> tuple[pa.Table, bool]:
        """As Spark would give it, with at most as many rows and bytes as there may be."""
        schema = pa.schema([pa.field(str(place), arrow(column.type)) for place, column in enumerate(columns)])
        found = pa.Table.from_batches(batches) if batches else None
        made = [_as(found.column(place), field.type) for place, field in enumerate(schema)] if found is not None else []
        rows = pa.Table.from_arrays(made, schema=schema) if made else schema.empty_table()
        kept = rows.slice(0, self._limits.rows)
        if kept.nbytes > self._limits.result_bytes:
            kept = kept.slice(0, int(kept.num_rows * self._limits.result_bytes / kept.nbytes))
        return kept.rename_columns([str(column.name) for column in columns]), kept.num_rows < rows.num_rows

    def _worded(self, error: duckdb.Error, query: str, used: Mapping[str, exp.Expr]) -> TidemarkError:
        text = str(error)
        if match := UNGROUPED.search(text):
            node = used.get(match[1])
            name = ".".join(part.name or "*" for part in node.parts) if isinstance(node, exp.Column) else "*"
            ungrouped = SqlError(f"{name} is neither in GROUP BY nor in an aggregate", node)
            return refusal(str(ungrouped), query, ungrouped.at)
        if self._ended_by:
            return TidemarkError(f"the query {self._ended_by}.")
        for pattern, meaning in WHY:
            if match := re.search(pattern, text):
                return RefusedError(f"the query ends with an error: {match.expand(meaning)}; if Spark should answer it, {ASK_SPARK}.")
        return TidemarkError(f"the fast engine cannot answer this query ({text.splitlines()[0][:200]}); {ASK_SPARK}.")


def translated(query: str, tables: Tables, limits: Limits) -> tuple[Relation, Mapping[str, exp.Expr]]:
    """In DuckDB's SQL, with one row more than the limit at most; and where in the query its columns are meant.

    RefusedError, with the place and the hint, where it has no such meaning.
    """
    if len(query.encode("utf-8", "replace")) > limits.query_bytes:
        raise refusal(f"the query is longer than {limits.query_bytes:,} bytes: split it", query)
    names = Names(limits.plan_nodes)
    try:
        tree = parsed(query)
        limit = tree.args.get("limit")
        if limit is None or not limit.expression.is_int or int(limit.expression.name) > limits.rows:
            tree.set("limit", exp.Limit(expression=exp.Literal.number(limits.rows + 1)))
        relation = Maker(query, tables.columns, names).query(tree)
        if len(relation.sql) > LARGEST:
            raise SqlError(TOO_LARGE)
    except SqlError as error:
        raise refusal(str(error), query, error.at) from None
    except RecursionError:
        raise refusal("the query is nested too deeply: split it", query) from None
    return relation, names.used


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The values of DuckDB's types in those of Spark."""
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column))])
    return column if column.type.equals(kind) else column.cast(kind)


def _by_python(function: Callable[[str], str], text: str) -> str:
    if NEWER.search(text) or any(unicodedata.category(letter) == "Cn" for letter in text):
        raise ValueError(f"newer than Unicode {unicodedata.unidata_version}")
    return function(text)
