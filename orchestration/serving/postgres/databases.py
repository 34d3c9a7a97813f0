"""The databases of one connection: of the catalog, and of the tables that a query names, each at one snapshot."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from orchestration.errors import TidemarkError
from orchestration.serving.postgres import catalog
from orchestration.serving.postgres.activity import Activity
from orchestration.serving.postgres.dialect import for_catalog, is_of_catalog, significant
from orchestration.serving.postgres.wire import PostgresError
from orchestration.serving.sql.answer import RefusedError
from orchestration.serving.sql.duckdb_engine import SETTINGS, _hint, create_views
from orchestration.serving.sql.duckdb_guard import _is_hidden, _only_reads, checked
from orchestration.storage.delta import each_table_opened_once, literal
from orchestration.storage.duckdb_view import quoted
from orchestration.storage.live_views import duckdb_views
from orchestration.storage.marts import snapshot_for
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import Plant, View

FUNCTIONS = (Path(__file__).parent / "functions.sql").read_text()
AS_POSTGRES = "set integer_division = true; set default_null_order = 'postgres'; set enable_progress_bar = false; set preserve_identifier_case = false"
OURS = {"current_setting"}
SQLSTATES = {
    duckdb.ParserException: "42601",
    duckdb.BinderException: "42804",
    duckdb.CatalogException: "42704",
    duckdb.ConversionException: "22P02",
    duckdb.OutOfRangeException: "22003",
    duckdb.InterruptException: "57014",
    duckdb.OutOfMemoryException: "53200",
    duckdb.IOException: "58030",
    duckdb.InvalidInputException: "22023",
    duckdb.PermissionException: "42501",
    duckdb.NotImplementedException: "0A000",
}
BY_TEXT = [
    (r"[Dd]ivision by zero", "22012"),
    (r"out of range", "22003"),
    (r"^INTERRUPT", "57014"),
    (r"^Out of Memory|MemoryError|malloc|bad_alloc", "53200"),
    (r"Table with name", "42P01"),
    (r"Function with name|No function matches", "42883"),
    (r"Referenced column|does not have a column", "42703"),
    (r"must appear in the GROUP BY", "42803"),
    (r"Type with name", "42704"),
    (r"[Aa]mbiguous", "42702"),
]
LINE = re.compile(r"\n+LINE (\d+): (.*)\n( *)\^+\s*$", re.DOTALL)
ASKS_SESSION = re.compile(r"version|current_(schemas?|database|catalog|user|role)|session_user|user|quote_ident|txid_current", re.I)


@dataclass
class _Made:
    connection: duckdb.DuckDBPyConnection
    snapshot_id: int | None
    zone: str
    path: str
    names: frozenset[str]
    files: list[str]


@dataclass
class Databases:
    """`settings`: of the session, by lower name; it changes them."""

    plant: Plant
    settings: Mapping[str, str]
    activity: Activity
    """Connections of the server, for pg_stat_activity."""
    pinned: Snapshot | None = None
    """Of the transaction that is open."""
    _made: _Made | None = None
    _catalog: duckdb.DuckDBPyConnection | None = None
    _of_catalog: tuple[object, ...] = ()
    running: duckdb.DuckDBPyConnection | None = field(default=None)

    def query(self, text: str, in_transaction: bool) -> duckdb.DuckDBPyRelation:
        """What DuckDB makes of a query, before it runs. PostgresError. A mart may be named without its schema where the search path has it."""
        pinned = self.pinned
        try:
            return self._query(text, in_transaction)
        except PostgresError as refused:
            named = re.match(r"there is no table (\w+)", refused.message)
            if not named or refused.code != "42P01" or "marts" not in re.findall(r"\w+", self.settings["search_path"]):
                raise
            at, self.pinned = self.pinned, pinned
            try:
                return self._query(text, in_transaction, f" marts.{named[1]}")
            except PostgresError:
                self.pinned = at
                raise refused from None

    def _query(self, text: str, in_transaction: bool, also: str = "") -> duckdb.DuckDBPyRelation:
        """`also`: what it means and does not say."""
        try:
            connection, text = self._database(text, in_transaction, also)
            self.running = connection
            guarded(connection, text, connection is self._catalog)
            files = self._made.files if self._made and connection is self._made.connection else []
            # As the DuckDB engine has it: DuckDB may read these files, and so by a name in quotes too.
            if "parquet" in text.lower() and any(file.rpartition("/")[2].partition(".")[0] in text for file in files):
                raise RefusedError("a query reads the tables of the lake, not their files.")
            try:
                relation = connection.sql(text)
            except (duckdb.BinderException, duckdb.CatalogException):
                self.restart()
                connection.execute(text)  # raises the same error, with its place
                raise
            if relation is None:
                raise PostgresError("25006", "a query only reads")
            return relation
        except Exception as error:
            self.restart()
            refused = worded(error, text)
            if match := re.match(r'Table with name "?(.+?)"? does not exist', refused.message):
                shown = f"there is no table {match[1]}{_hint(match[1], duckdb_views(self.plant, self.pinned or snapshot_for(self.plant.lake, '')))}"
                refused = PostgresError("42P01", shown, position=refused.position)
            raise refused from error

    def interrupt(self) -> None:
        """End the query that runs; from another thread."""
        if running := self.running:
            running.interrupt()

    def leave(self) -> None:
        """Let a query that still runs keep its database: the next query gets another."""
        self._made = self._catalog = self.running = None

    def restart(self) -> None:
        """After an error, which ends the transaction of DuckDB."""
        if self.running is not None:
            with suppress(duckdb.Error):
                self.running.execute("rollback")
            with suppress(duckdb.Error):
                self.running.execute("begin transaction read only")

    def _database(self, text: str, in_transaction: bool, also: str) -> tuple[duckdb.DuckDBPyConnection, str]:
        listed = significant(text)
        if is_of_catalog(listed):
            return self.catalog(), for_catalog(text)
        pinned = self.settings.get("tidemark.snapshot")
        snapshot = self.pinned or snapshot_for(self.plant.lake, text + also, int(pinned) if pinned else None)
        meant = duckdb_views(self.plant, snapshot, text + also)
        if not meant and any(ASKS_SESSION.fullmatch(word.name) for word in listed):
            return self.catalog(), for_catalog(text)
        if in_transaction:
            self.pinned = snapshot
        made, zone, path = self._made, self.settings["timezone"], self.settings["search_path"]
        key = snapshot.snapshot_id if snapshot else None
        if made and made.snapshot_id == key and (made.zone, made.path) == (zone, path) and made.names >= meant.keys():
            return made.connection, text
        if made and (in_transaction or made.snapshot_id == key):  # a transaction asks what the one before it asked
            meant = {name: view for name, view in duckdb_views(self.plant, snapshot).items() if name in meant.keys() | made.names}
        connection, files = open_database([*meant.values()], self.settings["database"], zone, path)
        self._made = _Made(connection, key, zone, path, frozenset(meant), files)
        return self._made.connection, text

    def catalog(self) -> duckdb.DuckDBPyConnection:
        """Of the newest snapshot, with the marts that were built last, which may be of an earlier one."""
        snapshot, of_marts = self.pinned or snapshot_for(self.plant.lake, ""), None
        with suppress(TidemarkError):
            of_marts = snapshot_for(self.plant.lake, "marts.")
        key = (snapshot and snapshot.snapshot_id, of_marts and of_marts.snapshot_id, *self.settings.items())
        if self._catalog is None or self._of_catalog != key:
            marts = (
                {name: view for name, view in duckdb_views(self.plant, of_marts).items() if name.startswith("marts.")} if of_marts else {}
            )
            columns = catalog.columns_of([*(duckdb_views(self.plant, snapshot) | marts).values()])
            self._catalog, self._of_catalog = catalog.catalog(columns, self.settings), key
            self._catalog.execute(
                f"set TimeZone = {literal(self.settings['timezone'])}; {AS_POSTGRES}; set lock_configuration = true; begin transaction read only"
            )
        return self._catalog


def guarded(connection: duckdb.DuckDBPyConnection, text: str, is_catalog: bool) -> None:
    """RefusedError for what does more than read. The catalog's database holds nothing secret, and its tables have the names that are hidden."""
    if not is_catalog:
        checked(connection, text)
        return
    listed = significant(text)
    for before, word, following in zip([None, *listed], listed, [*listed[1:], None], strict=False):
        name = word.name.lower()
        if name in OURS and before and before.text == ".":
            raise RefusedError(f"{word.name} cannot be used here: a query reads the tables of the lake.")
        if re.fullmatch(r"(duckdb|pragma|sqlite)_.+", name) or (
            following
            and following.text == "("
            and not name.startswith("pg_")
            and name not in {*OURS, "format_type"}
            and _is_hidden(name, True)
        ):
            raise RefusedError(f"{word.name} cannot be used here: a query reads the tables of the lake.")
    connection.extract_statements(text)  # raises where it cannot be parsed
    while listed and listed[-1].text == ";":
        listed.pop()
    if not _only_reads(connection, text[: listed[-1].at + len(listed[-1].text)], listed):
        raise RefusedError(f"{listed[0].text.upper()} cannot be used here: a query only reads, by SELECT, DESCRIBE, SUMMARIZE or EXPLAIN.")


@each_table_opened_once()
def open_database(meant: Sequence[View], name: str, zone: str, path: str) -> tuple[duckdb.DuckDBPyConnection, list[str]]:
    """As the DuckDB engine makes it, with a search path, a time zone and some functions."""
    connection = duckdb.connect(config=SETTINGS)
    connection.execute(f"attach ':memory:' as {quoted(name)}; use {quoted(name)}; {FUNCTIONS}")
    files = create_views(connection, meant)
    there = {view.name.split(".", 1)[0] for view in meant}
    listed = ",".join(name for name in dict.fromkeys([*(part.strip(' "') for part in path.split(",")), *there]) if name in there)
    listed = ",".join(f"{quoted(name)}.{schema}" for schema in ["main", *listed.split(",")] if schema)
    connection.execute(
        f"set TimeZone = {literal(zone)}; {AS_POSTGRES}; set search_path = {literal(listed)}; set allowed_paths = [{', '.join(map(literal, files))}]"
    )
    connection.execute("set enable_external_access = false; set lock_configuration = true; begin transaction read only")
    return connection, files


def worded(error: Exception, text: str) -> PostgresError:
    if isinstance(error, PostgresError):
        return error
    message = re.sub(r"^[\w ]+ Error: ", "", str(error).strip())
    code = next((code for pattern, code in BY_TEXT if re.search(pattern, str(error) or type(error).__name__)), None) or next(
        (code for kind, code in SQLSTATES.items() if isinstance(error, kind)), "XX000"
    )
    if code == "22012":
        message = "division by zero"
    if code == "57014":
        message = "canceling statement due to user request or its time limit"
    if isinstance(error, TidemarkError):
        code = "25006" if "query only reads" in message else "42501" if isinstance(error, RefusedError) else "58000"
    position = 0
    if place := LINE.search(str(error)):
        line, shown, indent = int(place[1]), place[2], len(place[3]) - len(f"LINE {place[1]}: ")
        message = LINE.sub("", "\n" + message).strip()
        start = sum(len(each) + 1 for each in text.split("\n")[: line - 1])
        part = shown.removeprefix("...").removesuffix("...")
        at = max(text.find(part, start), text.find(part))  # a query within another, while it runs, has more lines
        position = at + indent + 1 - 3 * shown.startswith("...") if at >= 0 else 0
    return PostgresError(code, message.replace("\n\n", "\n").strip(), position=max(position, 0))
