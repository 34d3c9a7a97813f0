"""Delta tables as views of a DuckDB store, at a version or only the rows added since one, and with columns of a suite. Times in UTC."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from expectations.condition import expression
from expectations.rule import Kind
from expectations.suite import Suite
from gold.schema import CARRY
from gold.windows.spec import Group
from orchestration.location import Location
from orchestration.storage.delta import added, is_table, log_of, open_table
from orchestration.storage.duckdb_view import readable, select_from_table, sized_files
from orchestration.storage.views import CONDITIONS

MEMORY = "2GB"


@dataclass(frozen=True)
class PinnedTable:
    """A table at one version; `version` None: the table does not exist.

    `since`: only rows of later versions; None: all rows. `table_id` is Delta's: a table that was created again has another. `group`: only
    rows of this one.
    """

    name: str
    location: Location
    version: int | None = None
    since: int | None = None
    table_id: str | None = None
    group: Group | None = None

    @property
    def view(self) -> str:
        return self.name.replace(".", "_") + ("" if self.since is None else f"_since_{self.since}")

    @property
    def of_all(self) -> "PinnedTable":
        """The table of a group with the rows of all groups."""
        return replace(self, name=f"gold.{self.table_id}", group=None)

    @property
    def is_unchanged(self) -> bool:
        """Whether there are no new rows: compaction adds none."""
        return self.version is not None and self.version == self.since


def open_store() -> duckdb.DuckDBPyConnection:
    store = duckdb.connect(config={"memory_limit": MEMORY})
    store.execute("set enable_progress_bar = false")
    store.execute("set global TimeZone = 'UTC'")  # global: cursors do not inherit a local setting
    return store


def pin_table(
    name: str, path: Location, since: tuple[str, int] | None = None, version: int | None = None, group: Group | None = None
) -> PinnedTable:
    """A table at its newest version, or that one. `since`: table id and version of the last run, if all newer files exist."""
    if not is_table(path):
        return PinnedTable(name, path)
    table = open_table(path, version)
    whole = PinnedTable(name, path, table.version(), None, str(table.metadata().id), group)
    if since is None or since[0] != whole.table_id or not _is_complete(path, since[1], table.version()):
        return whole
    has_new_rows = bool(_added(path, since[1], table.version()))
    return replace(whole, since=since[1] if has_new_rows else table.version())


def create_view(store: duckdb.DuckDBPyConnection, table: PinnedTable) -> None:
    """Create the view of a table. For a group it reads a view of all groups, which is made once."""
    if table.group is not None:
        rows = f"select * exclude (device_group) from \"{table.of_all.view}\" where device_group = '{table.group.name}'"
        try:
            store.execute(f'create or replace view "{table.view}" as {rows}')
        except duckdb.CatalogException:
            create_view(store, table.of_all)
            store.execute(f'create or replace view "{table.view}" as {rows}')
        return
    delta = open_table(table.location, table.version)
    if "deletionVectors" in (delta.protocol().reader_features or []):  # files may hold deleted rows; Tidemark writes no such tables
        copy_rows(store, table.view, pa.RecordBatchReader.from_stream(delta.scan()))
        return
    files = sized_files(table.location, delta) if table.since is None else _added(table.location, table.since, delta.version())
    rows = select_from_table(delta, readable(store, files))
    if table.name.startswith("gold.aggregates") and CARRY.name not in {
        field.name for field in delta.schema().fields
    }:  # written by an earlier version
        rows = f"select *, null::double[] as {CARRY.name} from ({rows})"
    store.execute(f'create or replace view "{table.view}" as from ({rows}) where {CONDITIONS.get(table.name, "true")}')


def copy_rows(store: duckdb.DuckDBPyConnection, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
    """Create a table with these rows: a registered one only this connection would see, cursors would not."""
    store.register("arriving", rows)
    store.execute(f'create or replace table "{name}" as from arriving')
    store.unregister("arriving")


def row_count(store: duckdb.DuckDBPyConnection, view: str) -> int:
    (count,) = store.execute(f'select count(*) from "{view}"').fetchall()[0]
    return int(count)


def create_suite_view(store: duckdb.DuckDBPyConnection, suite: Suite, views: Sequence[str]) -> str:
    """A view of the rows of all `views` as one, with the columns that the suite computes; its name.

    Raises ConditionError for a column that is no expression of the language, duckdb.Error for one in SQL that DuckDB refuses.
    """
    together = " union all by name ".join(f'from "{view}"' for view in views)
    kinds = {name: kind_of(kind) for name, kind, *_ in store.execute(f"describe {together}").fetchall()} if suite.columns else {}
    # Nested, so that a column may build on an earlier one.
    rows = f"({together})"
    for column, text in suite.columns.items():
        computed = expression(text, kinds)
        kinds[column] = computed.kind
        rows = f'(select *, {computed.sql} as "{column}" from {rows})'
    for column, sql in suite.columns_in_sql.items():
        rows = f'(select *, ({sql}\n) as "{column}" from {rows})'
    name = f"suite_{suite.name}_{views[0]}"
    store.execute(f'create or replace view "{name}" as from {rows}')
    return name


def kind_of(column_type: str) -> Kind:
    """The kind that conditions know a type of DuckDB as."""
    if column_type in {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "FLOAT", "DOUBLE"}:
        return Kind.NUMBER
    kinds = {"VARCHAR": Kind.TEXT, "BOOLEAN": Kind.BOOLEAN, "VARCHAR[]": Kind.TEXTS, "MAP(VARCHAR, VARCHAR)": Kind.ATTRIBUTES}
    return Kind.TIMESTAMP if column_type.startswith("TIMESTAMP") else kinds.get(column_type, Kind.OTHER)


def columns_of(store: duckdb.DuckDBPyConnection, view: str) -> tuple[tuple[str, str], ...]:
    """Names and types of the columns of a view, in their order."""
    return tuple((name, kind) for name, kind, *_ in store.execute(f'describe "{view}"').fetchall())


def _added(path: Location, since: int, version: int) -> dict[Location, int]:
    """List files with rows that versions after `since` added, and their sizes; compaction adds none.

    A file that the log does not count may have rows.
    """
    adds = (add for number in range(since + 1, version + 1) for add in added(path, number) if add["dataChange"])
    return {path / add["path"]: add["size"] for add in adds if json.loads(add.get("stats") or "{}").get("numRecords", 1)}


def _is_complete(path: Location, since: int, version: int) -> bool:
    """Whether the log still lists the new files, and maintenance has not replaced them with larger ones."""
    is_logged = since <= version and all(log_of(path, number).exists() for number in range(since + 1, version + 1))
    return is_logged and all(file.exists() for file in _added(path, since, version))
