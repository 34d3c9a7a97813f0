"""The fast engine: answers by DataFusion without a JVM, in a second from cold, what it is known to answer as Spark does.

What a query says never reaches DataFusion: it is read as Spark's SQL (queries), given a meaning and types (select), and written
anew with nothing of it but numbers and quoted strings. So there is nothing to attack in the one by text of the other.
"""

import json
import queue
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext, SQLOptions
from deltalake import DeltaTable

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.query.fast.relations import table_named
from orchestration.query.fast.telling import ASK_SPARK
from orchestration.query.fast.translation import Translation, translated
from orchestration.query.fast.types import arrow, from_delta
from orchestration.serving.sql.answer import Answer, Limits, Question
from orchestration.serving.sql.refusal import RefusedError
from orchestration.storage.marts import snapshot_for
from orchestration.storage.views import View, views

MEMORY = 1024 * 1024 * 1024
"""Bytes for all that a query keeps while it runs; nothing is written to disk."""
SETTINGS = {
    # Else DataFusion refuses to count over a union of columns that differ in nothing but their comments.
    "datafusion.execution.skip_physical_aggregate_schema_check": "true",
    "datafusion.sql_parser.recursion_limit": "1000",
    "datafusion.execution.time_zone": "UTC",
}
Outcome: TypeAlias = "queue.SimpleQueue[list[pa.RecordBatch] | Exception]"
READ_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
WHY = (
    (r"Divide by zero", "it divides by zero"),
    (r"Cannot cast string '(no index -?\d+ in an array of \d+)'", r"there is \1"),
    (r"Cannot cast string '(?:NaN|-?inf)' to value of Decimal", "a number is not finite where it is rounded"),
    (r"(?:out of range|Overflow|overflow|Can't cast value|too large to store)", "a number is too large for its type"),
    (r"Scalar subquery returned more than one row", "a query for one value finds several"),
    (r"[Rr]esources exhausted", f"it needs more than {MEMORY // 1024**3} GB of memory"),
    (r"non UTF-8|invalid utf-8", "a binary value is no text in UTF-8"),
)
"""What DataFusion says, and what it means."""


class FastEngine:
    """Answers one question after the other, in this process.

    `is_busy`: a question did not end in time or was cancelled, and DataFusion may still be at work on it: see process.
    """

    def __init__(self, conf: Conf, limits: Limits) -> None:
        """Starts nothing."""
        self._conf, self._limits = conf, limits
        self._outcome: Outcome = queue.SimpleQueue()
        self.is_busy = False

    def ask(self, question: Question) -> Answer:
        """RefusedError for what it cannot answer as Spark would; TidemarkError for what breaks or does not end in time."""
        snapshot = snapshot_for(self._conf.lake, question.query, question.snapshot_id, question.at)
        tables = Tables(views(self._conf, snapshot))
        translation = translated(question.query, tables.columns, self._limits)
        rows, is_cut_off = self._cut(self._batches(translation, tables), translation)
        return Answer(rows, snapshot, is_cut_off)

    def cancel(self) -> None:
        """End the question that is being answered; from another thread."""
        self._outcome.put(TidemarkError("the query was cancelled."))

    def _batches(self, translation: Translation, tables: "Tables") -> list[pa.RecordBatch]:
        """Of a query that a thread of its own asks: DataFusion can be left alone, but not be stopped (see process)."""
        outcome: Outcome = queue.SimpleQueue()
        self._outcome = outcome
        threading.Thread(target=self._work, args=(translation, tables, outcome), daemon=True).start()
        try:
            found = outcome.get(timeout=self._limits.seconds)
        except queue.Empty:
            found = TidemarkError(f"the query did not end within {self._limits.seconds:g} s.")
        if isinstance(found, TidemarkError):
            self.is_busy = True
            raise found
        if isinstance(found, Exception):
            raise _told(found) from found
        return found

    def _work(self, translation: Translation, tables: "Tables", outcome: "Outcome") -> None:
        try:
            context = SessionContext(
                SessionConfig(SETTINGS).with_information_schema(False).with_target_partitions(self._conf.engine.cores),
                RuntimeEnvBuilder().with_disk_manager_disabled().with_greedy_memory_pool(MEMORY),
            )
            for name, table in tables.opened.values():
                context.register_table(name, table)
            batches: list[pa.RecordBatch] = []
            size = 0
            for batch in context.sql_with_options(translation.sql, READ_ONLY).execute_stream():
                batches.append(batch.to_pyarrow())
                size += batches[-1].nbytes
                if size > self._limits.result_bytes or outcome is not self._outcome:
                    break
            outcome.put(batches)
        except Exception as error:  # DataFusion has no error of its own in Python
            outcome.put(error)

    def _cut(self, batches: Sequence[pa.RecordBatch], translation: Translation) -> tuple[pa.Table, bool]:
        """As Spark would give it, with at most as many rows and bytes as there may be."""
        kinds = [arrow(kind) for _, kind in translation.columns]
        schema = pa.schema([pa.field(str(place), kind) for place, kind in enumerate(kinds)])
        found = pa.Table.from_batches(batches) if batches else None
        columns = [_as(found.column(place), kind) for place, kind in enumerate(kinds)] if found is not None else []
        rows = pa.Table.from_arrays(columns, schema=schema) if columns else schema.empty_table()
        kept = rows.slice(0, self._limits.rows)
        if kept.nbytes > self._limits.result_bytes:
            kept = kept.slice(0, int(kept.num_rows * self._limits.result_bytes / kept.nbytes))
        return kept.rename_columns([name for name, _ in translation.columns]), kept.num_rows < rows.num_rows


class Tables:
    """Tables of one snapshot by their SQL names, opened when a query first means them."""

    def __init__(self, known: dict[str, View]) -> None:
        """`known`: see views.views."""
        self._known = known
        self.opened: dict[tuple[Path, int | None], tuple[str, DeltaTable]] = {}
        """Each with its name for DataFusion."""

    def columns(self, parts: tuple[str, ...], at: int) -> tuple[str, list[tuple[str, str]]]:
        """See translation.Tables."""
        view = self._known[table_named(parts, self._known, at)]
        key = view.path, view.version
        if key not in self.opened:
            self.opened[key] = f"t{len(self.opened) + 1}", DeltaTable(view.path, version=view.version)
        name, table = self.opened[key]
        fields = json.loads(table.schema().to_json())["fields"]
        return view.select(name), [(field["name"], from_delta(field["type"])) for field in fields]


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The values of DataFusion's types (views of strings, say) in those of Spark."""
    return column if column.type.equals(kind) else column.cast(kind)


def _told(error: Exception) -> TidemarkError:
    text = str(error)
    for pattern, meaning in WHY:
        if found := re.search(pattern, text):
            return RefusedError(f"the query ends with an error: {found.expand(meaning)}; if Spark should answer it, {ASK_SPARK}.")
    return TidemarkError(f"the fast engine cannot answer this query ({text.splitlines()[0][:200]}); {ASK_SPARK}.")
