"""Databases of one connection: one of the catalog, and one of the tables that a query names, each over one snapshot.

They are DuckDB's, in memory, as the DuckDB engine makes them: with views of these tables alone, and locked.
"""

import functools
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from orchestration.errors import TidemarkError
from orchestration.serving.postgres import catalog
from orchestration.serving.postgres.activity import Activity
from orchestration.serving.postgres.dialect import as_duckdb, is_of_catalog, significant
from orchestration.serving.postgres.errors import worded
from orchestration.serving.postgres.wire import PostgresError
from orchestration.serving.sql.duckdb_engine import NO_TABLE, SETTINGS, create_views, hint, lock, refuse_files
from orchestration.serving.sql.duckdb_guard import checked, is_hidden
from orchestration.storage.delta import each_table_opened_once, literal
from orchestration.storage.duckdb_view import quoted
from orchestration.storage.live_views import duckdb_views
from orchestration.storage.marts import MEANS_MARTS, snapshot_for
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import Plant, View

FUNCTIONS = (Path(__file__).parent / "functions.sql").read_text()
AS_POSTGRES = (
    "set integer_division = true; set default_null_order = 'postgres'; set enable_progress_bar = false; "
    "set preserve_identifier_case = false"
)
OF_SESSION = re.compile(r"version|current_(schemas?|database|catalog|user|role)|session_user|user|quote_ident|txid_current", re.IGNORECASE)
"""Words by which a query without a table asks for what its session is."""
UNBOUND = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
ARRAY = re.compile(r"'\{[^']*\}'")
"""The text of an array, which DuckDB would find to be no list only when it runs."""


@dataclass(frozen=True)
class _OfLake:
    """A database of views, by name. `basis`: what else it depends on; `is_fixed`: whether all of them stay as they are."""

    connection: duckdb.DuckDBPyConnection
    basis: tuple[object, ...]
    views: Mapping[str, View]
    files: Sequence[str]

    @property
    def is_fixed(self) -> bool:
        return all(part.version is not None for view in self.views.values() for part in view.parts)


@dataclass
class Databases:
    """`settings`: of the session, by lower name; it changes them. `activity`: of all connections, for pg_stat_activity."""

    plant: Plant
    settings: Mapping[str, str]
    activity: Activity
    pinned: Snapshot | None = None
    """That of the open transaction."""
    notice: str = ""
    """About the last query, for its client; empty where there is nothing to say."""
    running: duckdb.DuckDBPyConnection | None = field(default=None)
    _of_lake: _OfLake | None = None
    _catalog: duckdb.DuckDBPyConnection | None = None
    _of_catalog: tuple[object, ...] = ()

    def query(self, text: str, in_transaction: bool) -> duckdb.DuckDBPyRelation:
        """Bind a query, before it runs. PostgresError, with the place in the text."""
        self.notice, listed = "", significant(text)
        try:
            if is_of_catalog(listed):
                return self._ask_catalog(text)
            return self._ask_lake(text, in_transaction, any(OF_SESSION.fullmatch(word.name) for word in listed))
        except Exception as error:
            self.restart()
            raise self._hinted(worded(error, text)) from error

    def interrupt(self) -> None:
        """End the query that runs; from another thread."""
        if running := self.running:
            running.interrupt()

    def leave(self) -> None:
        """Let a query that still runs keep its database: the next query gets another."""
        self._of_lake = self._catalog = self.running = None

    def restart(self) -> None:
        """Begin a transaction of DuckDB after an error, which ended the one before."""
        if running := self.running:
            for statement in ("rollback", "begin transaction read only"):
                with suppress(duckdb.Error):
                    running.execute(statement)

    def _ask_catalog(self, text: str) -> duckdb.DuckDBPyRelation:
        translated = as_duckdb(text)
        self.running = connection = self.catalog()
        if "pg_stat_activity" in text.lower():
            catalog.show_activity(connection, self.activity.rows())
        return self._bound(checked(connection, translated, _is_hidden_in_catalog), translated)

    def _ask_lake(self, text: str, in_transaction: bool, is_of_session: bool) -> duckdb.DuckDBPyRelation:
        snapshot, views = self._meant(text)
        if not views and is_of_session:
            return self._ask_catalog(text)
        if in_transaction:
            self.pinned = self.pinned or snapshot
        try:
            return self._read(as_duckdb(text) if ARRAY.search(text) else text, snapshot, views)
        except UNBOUND as error:
            # A mart without its schema, or words of PostgreSQL that DuckDB does not know.
            self.restart()
            table = NO_TABLE.search(str(error))
            if table and "." not in table[1] and "marts" in re.findall(r"\w+", self.settings["search_path"]):
                with suppress(TidemarkError, *UNBOUND):
                    return self._read(text, *self._meant(f"{text} marts.{table[1]}"))
            with suppress(PostgresError, TidemarkError, duckdb.Error):
                if (translated := as_duckdb(text)) != text:
                    return self._read(translated, snapshot, views)
            raise

    def _meant(self, text: str) -> tuple[Snapshot | None, Mapping[str, View]]:
        """Choose the snapshot of a query, and the views that it can mean. Marts are those that were built last; a notice says of what."""
        number = self.settings.get("tidemark.snapshot")
        if not MEANS_MARTS.search(text) or number:
            snapshot = self.pinned or snapshot_for(self.plant.lake, text, int(number) if number else None)
            return snapshot, duckdb_views(self.plant, snapshot, text)
        of_marts, newest = snapshot_for(self.plant.lake, text), self.pinned or snapshot_for(self.plant.lake, "")
        if of_marts and newest and of_marts.snapshot_id != newest.snapshot_id:
            self.notice = f"marts are of snapshot {of_marts.snapshot_id}, built before snapshot {newest.snapshot_id}"
        views = duckdb_views(self.plant, of_marts, text)
        if self.pinned is None:
            return of_marts, views
        marts = {name: view for name, view in views.items() if name.startswith("marts.")}
        return self.pinned, duckdb_views(self.plant, self.pinned, text) | marts

    def _read(self, text: str, snapshot: Snapshot | None, views: Mapping[str, View]) -> duckdb.DuckDBPyRelation:
        database = self._database(snapshot, views)
        self.running = database.connection
        statement = checked(database.connection, text)
        refuse_files(text, database.files)
        return self._bound(statement, text)

    def _database(self, snapshot: Snapshot | None, views: Mapping[str, View]) -> _OfLake:
        """Return the one of the query before where it has these views, else another one, with those of both."""
        made = self._of_lake
        basis = (snapshot and snapshot.snapshot_id, self.settings["timezone"], self.settings["search_path"])
        if made and made.basis == basis and (made.is_fixed or self.pinned):
            if made.views.items() >= views.items():
                return made
            views = {**made.views, **views}
        elif made and self.pinned:  # a transaction asks what the one before it asked
            views = {name: view for name, view in duckdb_views(self.plant, snapshot).items() if name in made.views} | dict(views)
        self._of_lake = self._opened(views, basis)
        return self._of_lake

    def _bound(self, statement: duckdb.Statement, text: str) -> duckdb.DuckDBPyRelation:
        assert self.running is not None
        try:
            relation = self.running.sql(statement)
        except (duckdb.BinderException, duckdb.CatalogException):
            self.restart()
            self.running.execute(text)  # raises the same error, with its place
            raise
        if relation is None:
            raise PostgresError("25006", "a query only reads")
        return relation

    @each_table_opened_once()
    def _opened(self, views: Mapping[str, View], basis: tuple[object, ...]) -> _OfLake:
        connection, name = duckdb.connect(config=SETTINGS), quoted(self.settings["database"])
        connection.execute(f"attach ':memory:' as {name}; use {name}; {FUNCTIONS}")
        files = create_views(connection, [*views.values()])
        schemas = dict.fromkeys(view.split(".", 1)[0] for view in views)
        wanted = [part.strip(' "') for part in self.settings["search_path"].split(",")]
        path = dict.fromkeys(["main", *(schema for schema in wanted if schema in schemas), *schemas])
        connection.execute(f"set TimeZone = {literal(self.settings['timezone'])}; {AS_POSTGRES}")
        lock(connection, [f"{name}.{quoted(schema)}" for schema in path], files)
        return _OfLake(connection, basis, dict(views), files)

    def catalog(self) -> duckdb.DuckDBPyConnection:
        """Open the catalog of the newest snapshot, with the marts that were built last, which may be of an earlier one."""
        snapshot, of_marts = self.pinned or snapshot_for(self.plant.lake, ""), None
        with suppress(TidemarkError):
            of_marts = snapshot_for(self.plant.lake, "marts.")
        basis = (snapshot and snapshot.snapshot_id, of_marts and of_marts.snapshot_id, *self.settings.items())
        if self._catalog is None or self._of_catalog != basis:
            views = duckdb_views(self.plant, snapshot)
            if of_marts:
                views |= {name: view for name, view in duckdb_views(self.plant, of_marts).items() if name.startswith("marts.")}
            columns = catalog.columns_of([*views.values()])
            self._catalog, self._of_catalog = catalog.catalog(columns, self.settings), basis
            for name, number in (("pg_cancel_backend", signal.SIGUSR1), ("pg_terminate_backend", signal.SIGTERM)):
                send = functools.partial(self._send, number)
                self._catalog.create_function(name, send, ["INTEGER"], "BOOLEAN", side_effects=True)
            self._catalog.execute(f"set TimeZone = {literal(self.settings['timezone'])}; {AS_POSTGRES}")
            self._catalog.execute("set lock_configuration = true; begin transaction read only")
        return self._catalog

    def _send(self, number: signal.Signals, pid: int) -> bool:
        return self.activity.send(pid, number)

    def _hinted(self, problem: PostgresError) -> PostgresError:
        """Say of a table that is not there which one may be meant."""
        if table := NO_TABLE.search(problem.message):
            names = duckdb_views(self.plant, self.pinned or snapshot_for(self.plant.lake, ""))
            if table[1].lower() in names:
                return PostgresError("0A000", "one query cannot ask the catalog and tables of the lake", position=problem.position)
            return PostgresError("42P01", f"there is no table {table[1]}{hint(table[1], names)}", position=problem.position)
        return problem


def _is_hidden_in_catalog(name: str, is_called: bool) -> bool:
    """Say whether a query of the catalog may not have a name. Its database holds nothing secret, and has what pg_catalog has."""
    is_own = name.startswith("pg_") or name in {"format_type", "current_setting", "information_schema", "_nformation_schema"}
    return bool(re.fullmatch(r"(duckdb|pragma|sqlite)_.+", name)) or (is_called and not is_own and is_hidden(name, is_called))
