"""The DuckDB engine: a query in DuckDB's own dialect over one snapshot, in this process, in half a second from cold.

Each query has a database of its own in memory, with a view of each table that it names and nothing else: DuckDB opens no file but those of
the tables at their versions, loads no extension, writes nothing, and takes no other setting. What a query may name beside: duckdb_guard.
Only queries of one view of the page, which nobody else has written, share a database (Question.beside).
"""

import re
import resource
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from expectations.wording import nearest
from orchestration.errors import TidemarkError, error_in_trace
from orchestration.serving.sql.answer import Answer, Limits, Question, RefusedError
from orchestration.serving.sql.duckdb_guard import checked
from orchestration.storage.delta import PLAIN, each_table_opened_once, literal, open_table
from orchestration.storage.duckdb_view import quoted, readable, select_from_table, sized_files
from orchestration.storage.live_views import LiveView, duckdb_views
from orchestration.storage.marts import snapshot_for
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import Plant, View

ROWS_AT_ONCE = 10_000
SHARED_SECONDS = 5.0
"""So long at most: the registry, which no snapshot pins, goes on."""
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "temp_directory": "",
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_persistent_secrets": False,
}
SHOWS = re.compile(r"\bshow\b|^\s*describe\s*;?\s*$", re.IGNORECASE)
"""Queries that may list tables that they do not name."""
NO_TABLE = re.compile(r'Table with name "?(.+?)"? does not exist( because schema .* does not exist\.|!)(\nDid you mean .*)?')
PATH = re.compile(r"(?<![\w.])/[^\s\"'(),;]+/[^\s\"'(),;]+")
ADVICE = re.compile(r'(, or|\. Use) "?SET [^.]*')
"""On settings, which no query can change."""
AS_TEXT = {"uhugeint", "bignum", "bit", "geometry", "interval", "time", "time_ns", "time with time zone", "union", "variant"}
"""Types that Arrow or Parquet has not: Arrow would show other values, such as -1 for the greatest uhugeint, and 00:00 for 24:00."""
NESTED = {"array", "list", "map", "struct"}
FAILURES = (duckdb.IOException, duckdb.InternalException, duckdb.FatalException)
"""DuckDB's errors that are not for the query to mend."""


@dataclass
class _Database:
    """`of_view`: what questions have in common that share it. `files`: below its views, once these are made."""

    connection: duckdb.DuckDBPyConnection
    snapshot: Snapshot | None
    meant: Sequence[View]
    of_view: tuple[str, int | None]
    since: float
    files: list[str] | None = None


class DuckDbEngine:
    """Answers one query after the other."""

    def __init__(self, plant: Plant, limits: Limits) -> None:
        self._plant, self._limits = plant, limits
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._ended_by = ""
        self._ready: duckdb.DuckDBPyConnection | None = None
        self._kept: _Database | None = None

    def prepare(self) -> None:
        """Open the database of the next question, which takes 15 ms; before it comes."""
        # Half of what the process may take: DuckDB does not count all that functions of texts and lists take.
        self._ready = self._ready or duckdb.connect(config={**SETTINGS, "memory_limit": f"{self._limits.memory_bytes // 2}B"})

    @each_table_opened_once()
    def ask(self, question: Question) -> Answer:
        """RefusedError for a query that is wrong or needs too much; TidemarkError where the tables cannot be read."""
        self._ended_by = ""
        if len(question.query.encode("utf-8", "replace")) > self._limits.query_bytes:
            raise RefusedError(f"the query is longer than {self._limits.query_bytes:,} bytes: split it.")
        database = self._database(question)
        self._connection = database.connection
        timer = threading.Timer(self._limits.seconds, self._end, [f"took longer than {self._limits.seconds:g} s and was cancelled"])
        timer.start()
        try:
            with bounded_memory(self._limits.memory_bytes):
                rows, is_cut_off = self._answered(database, question.query)
            self._kept = database if question.is_of_view else None
        except (duckdb.Error, OSError, MemoryError) as error:  # OSError: an error of DuckDB's that came by way of Arrow
            raise self._worded(error, question.query, database.snapshot) from error
        finally:
            timer.cancel()
            self._connection = None
            if self._kept is None:
                database.connection.close()
        return Answer(rows, database.snapshot, is_cut_off)

    def cancel(self) -> None:
        """End the query that is being answered; from another thread."""
        self._end("was cancelled")

    def _end(self, how: str) -> None:
        self._ended_by = how
        if self._connection is not None:
            self._connection.interrupt()

    def _database(self, question: Question) -> "_Database":
        """That of the question before, where it may be shared."""
        kept, self._kept, of_view = self._kept, None, (question.beside, question.snapshot_id)
        if kept is not None:
            if question.is_of_view and kept.of_view == of_view and time.monotonic() - kept.since < SHARED_SECONDS:
                return kept
            kept.connection.close()
        snapshot = snapshot_for(self._plant.lake, question.query, question.snapshot_id, question.at)
        text = None if SHOWS.search(question.query) else f"{question.query} {question.beside}"
        meant = [*duckdb_views(self._plant, snapshot, text).values()]
        self.prepare()
        connection, self._ready = self._ready, None
        assert connection is not None
        return _Database(connection, snapshot, meant, of_view, time.monotonic())

    def _answered(self, database: "_Database", query: str) -> tuple[pa.Table, bool]:
        connection, statement = database.connection, checked(database.connection, query)
        if database.files is None:
            database.files = create_views(connection, database.meant)
            lock(connection, ["main", *dict.fromkeys(view.name.split(".", 1)[0] for view in database.meant)], database.files)
        files = database.files
        refuse_files(query, files)
        if self._ended_by:
            raise duckdb.InterruptException
        batches, size = list[pa.RecordBatch](), 0
        try:
            reader = _without_odd_types(connection.sql(statement)).to_arrow_reader(ROWS_AT_ONCE)
        except (duckdb.BinderException, duckdb.CatalogException):
            with suppress(duckdb.TransactionException):  # where the first part of a PIVOT has failed
                connection.execute(query)  # raises the same error, with its place
            raise
        for batch in reader:
            batches.append(batch)
            size += batch.nbytes
            if size > self._limits.result_bytes or sum(map(len, batches)) > self._limits.rows:
                break
        answered = pa.Table.from_batches(batches, reader.schema)
        if answered.column_names == ["explain_key", "explain_value"]:
            answered = _without_files(answered, files)
        kept = answered.slice(0, self._limits.rows)
        if kept.nbytes > self._limits.result_bytes:
            kept = kept.slice(0, int(kept.num_rows * self._limits.result_bytes / kept.nbytes))
            if not kept.num_rows:
                most = f"{self._limits.result_bytes:,} bytes"
                raise RefusedError(f"a row is larger than {most}, the most of an answer: select fewer columns, or a part of long values.")
        return _readable(kept), kept.num_rows < answered.num_rows

    def _worded(self, error: Exception, query: str, snapshot: Snapshot | None) -> TidemarkError:
        text = re.sub(r"^[\w ]+ Error: ", "", str(error).strip()).replace("\n\n", "\n")
        text = ADVICE.sub("", text)
        if self._ended_by:
            return RefusedError(f"the query {self._ended_by}.")
        if isinstance(error, MemoryError) or "Out of Memory" in str(error):
            return RefusedError("the query needs more memory than a query may use: read less at once.")
        if "read-only mode" in text:
            return RefusedError("a query only reads.")
        if match := NO_TABLE.search(text):
            text = text.replace(match[0], f"there is no table {match[1]}{hint(match[1], duckdb_views(self._plant, snapshot))}", 1)
        raised = error_in_trace(text)  # by a file system of ours
        text = raised or text
        shown = PATH.sub(lambda path: path[0] if path[0] in query else "(a file)", text.replace(str(self._plant.lake), "(the lake)"))
        if raised or isinstance(error, FAILURES):
            return TidemarkError(f"DuckDB cannot answer this query: {shown.splitlines()[0]}")
        return RefusedError(shown)


def create_views(connection: duckdb.DuckDBPyConnection, meant: Sequence[View]) -> list[str]:
    """Make these views. Returns the files below them."""
    connection.execute("set TimeZone = 'UTC'; set enable_progress_bar = false")
    tables = {part: open_table(part.location, part.version) for part in {replace(part, where="") for view in meant for part in view.parts}}
    opened = list[str]()
    for view in meant:
        database, name = view.name.split(".", 1)
        kind, rows = "view", list[str]()
        for number, part in enumerate(view.parts):
            table = tables[replace(part, where="")]
            if table.protocol().min_reader_version == PLAIN:
                files = readable(connection, sized_files(part.location, table))
                rows.append(f"rows_{number} as not materialized ({select_from_table(table, files)})")
                opened += files
            else:  # their files hold rows that are deleted, or columns by other names
                kind = "table"
                rows.append(f"rows_{number} as materialized (from arriving_{number})")
                connection.register(f"arriving_{number}", pa.RecordBatchReader.from_stream(table.scan()))
        # Nothing has a name but the view: below it are rows that came after the snapshot.
        names = [f"rows_{number}" for number in range(len(rows))]
        if isinstance(view, LiveView) and view.is_linked:
            windows, newest = (
                connection.sql(f"with {', '.join(rows)} {sql}").to_arrow_table() for sql in (view.windows(names), view.newest(names))
            )
            kind, rows = "table", ["linked as materialized (from arriving_linked)"]
            connection.register("arriving_linked", view.completed(windows, newest))
            made = "from arriving_linked"
        else:
            made = f"with {', '.join(rows)} {view.select(names)}"
        connection.execute(f"create schema if not exists {quoted(database)}; create {kind} {quoted(database)}.{quoted(name)} as {made}")
        for number in range(len(rows)):
            connection.unregister(f"arriving_{number}")
    return opened


def refuse_files(query: str, files: Sequence[str]) -> None:
    """RefusedError for a query that names one of the files below its views, by a name in quotes too: DuckDB may read them, and they hold
    rows that came after the snapshot."""
    if "parquet" in query.lower() and any(file.rpartition("/")[2].partition(".")[0] in query for file in files):
        raise RefusedError("a query reads the tables of the lake, not their files.")


def lock(connection: duckdb.DuckDBPyConnection, path: Sequence[str], files: Sequence[str]) -> None:
    """Let nothing but views of these files be read, and nothing be changed. `path`: schemas that a name without one is looked up in."""
    allowed = ", ".join(map(literal, files))
    connection.execute(f"set search_path = {literal(','.join(path))}; set allowed_paths = [{allowed}]")
    connection.execute("set enable_external_access = false; set lock_configuration = true; begin transaction read only")


def hint(name: str, names: Iterable[str]) -> str:
    """The name of the table that is nearest, by itself or behind its database."""
    wholes = {key: table for table in names for key in (table.lower(), table.split(".", 1)[1].lower())}
    meant = nearest(name.lower(), wholes)
    return f"; did you mean {wholes[meant]}?" if meant else "; SHOW ALL TABLES lists them"


def _without_files(explained: pa.Table, files: Iterable[str]) -> pa.Table:
    """Plans with a name of the same width in place of each file."""
    names = {*files}
    # The boxes of a plan are cut into lines at spaces, and so is a path that holds one.
    names |= {part for file in names for at, letter in enumerate(file) if letter == " " for part in (file[:at], file[at + 1 :])}
    texts = explained.column(1).to_pylist()
    for name in sorted(names, key=len, reverse=True):
        texts = [text.replace(name, "(a file)".ljust(len(name))[: len(name)]) for text in texts]
    return explained.set_column(1, explained.column_names[1], pa.array(texts))


def _without_odd_types(rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Columns of AS_TEXT as DuckDB writes their values."""
    odd = [_is_odd(kind) for kind in rows.types]
    columns = [f"#{n}{'::varchar' * is_odd} as {quoted(name)}" for n, (name, is_odd) in enumerate(zip(rows.columns, odd, strict=True), 1)]
    return rows.project(", ".join(columns)) if any(odd) else rows


def _is_odd(kind: DuckDBPyType) -> bool:
    return kind.id in AS_TEXT or (kind.id in NESTED and any(_is_odd(part) for _, part in kind.children if isinstance(part, DuckDBPyType)))


def _readable(rows: pa.Table) -> pa.Table:
    """Sums of whole numbers, which DuckDB gives as decimals of 38 digits, as whole numbers where they fit."""
    for index, field in enumerate(rows.schema):
        if field.type == pa.decimal128(38, 0):
            with suppress(pa.ArrowInvalid):
                rows = rows.set_column(index, field.name, rows.column(index).cast(pa.int64()))
    return rows


@contextmanager
def bounded_memory(more: int) -> Iterator[None]:
    """An allocation of so many bytes more than now fails in this context, and ends the query. Where /proc tells what is taken now."""
    sizes = Path("/proc/self/statm")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    if sizes.exists():
        now = int(sizes.read_text().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (now + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
