"""Delta tables as views of a DuckDB store: at one version, or only what came to them after another. Instants are in UTC."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from orchestration.storage.delta_log import added, log_of

MEMORY = "2GB"


@dataclass(frozen=True)
class Pinned:
    """A table at one version, whatever is written meanwhile; `version` None: there is no such table.

    `since`: only rows of later versions; None for all. `table_id` is Delta's: a table that was made anew has another.
    """

    name: str
    path: Path
    version: int | None = None
    since: int | None = None
    table_id: str | None = None

    @property
    def view(self) -> str:
        """Its name in the store."""
        return self.name.replace(".", "_") + ("" if self.since is None else f"_since_{self.since}")

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing came: compaction brings none."""
        return self.version is not None and self.version == self.since


def opened() -> duckdb.DuckDBPyConnection:
    """An empty store; close it."""
    store = duckdb.connect(config={"memory_limit": MEMORY})
    store.execute("set enable_progress_bar = false")
    store.execute("set global TimeZone = 'UTC'")  # global: cursors do not inherit a plain one
    return store


def pinned(name: str, path: Path, since: tuple[str, int] | None = None, version: int | None = None) -> Pinned:
    """A table at its newest version, or that one. `since`: table id and version of an earlier look; it counts if what came is all there."""
    if not DeltaTable.is_deltatable(str(path)):
        return Pinned(name, path)
    table = DeltaTable(path, version=version)
    found = Pinned(name, path, table.version(), None, str(table.metadata().id))
    if since is None or since[0] != found.table_id or not _is_there(path, since[1], table.version()):
        return found
    is_news = any(_added(path, since[1], table.version()))
    return Pinned(name, path, table.version(), since[1] if is_news else table.version(), found.table_id)


def show(store: duckdb.DuckDBPyConnection, table: Pinned) -> None:
    """Make the view, of a table that exists."""
    found = DeltaTable(table.path, version=table.version)
    if _has_deleted_rows(found):
        _copy(store, table.view, pa.RecordBatchReader.from_stream(found.scan()))
    else:
        _show_files(store, table.view, found, _files(table, found))


def show_alike(store: duckdb.DuckDBPyConnection, name: str, tables: Iterable[Pinned]) -> list[tuple[str, list[Pinned]]]:
    """For each set of columns that some of the tables have, a view of all rows of these, with the tables; one view for 300 tables.

    Asking a union of 300 views takes seconds (measured), of which the rows are the least.
    """
    alike: dict[str, list[tuple[Pinned, DeltaTable]]] = {}
    for table in tables:
        found = DeltaTable(table.path, version=table.version)
        if not _has_deleted_rows(found):
            alike.setdefault(found.schema().to_json(), []).append((table, found))
    views = []
    for n, several in enumerate(alike.values()):
        _show_files(store, f"{name}_{n}", several[0][1], (file for table, found in several for file in _files(table, found)))
        views.append((f"{name}_{n}", [table for table, _ in several]))
    return views


def count_of(store: duckdb.DuckDBPyConnection, view: str) -> int:
    """Rows of a view."""
    (count,) = store.execute(f'select count(*) from "{view}"').fetchall()[0]
    return int(count)


def _has_deleted_rows(found: DeltaTable) -> bool:
    """Whether rows may be deleted that are still in the files; not of Tidemark's making."""
    return "deletionVectors" in (found.protocol().reader_features or [])


def _show_files(store: duckdb.DuckDBPyConnection, view: str, found: DeltaTable, files: Iterable[str]) -> None:
    _copy(store, f"{view}_without_rows", pa.schema(found.schema().to_arrow()).empty_table())
    listed = ", ".join(files)
    # A file lacks the columns that the table got later, and that of its partition.
    # Statistics of Parquet leave NaN out, and by default DuckDB takes them for all there is: what asks for NaN would find none.
    how = "union_by_name = true, hive_partitioning = true, can_have_nan = true"
    rows = f" union all by name from read_parquet([{listed}], {how})" if listed else ""
    store.execute(f'create or replace view "{view}" as from "{view}_without_rows"{rows}')


def _copy(store: duckdb.DuckDBPyConnection, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
    store.register("arriving", rows)  # only this connection sees it, cursors do not
    store.execute(f'create or replace table "{name}" as from arriving')
    store.unregister("arriving")


def _files(table: Pinned, found: DeltaTable) -> Iterator[str]:
    paths = (unquote(uri.removeprefix("file://")) for uri in found.file_uris()) if table.since is None else map(str, _came(table))
    for path in paths:
        yield f"""'{path.replace("'", "''")}'"""


def _came(table: Pinned) -> list[Path]:
    assert table.since is not None
    assert table.version is not None
    return [*_added(table.path, table.since, table.version)]


def _added(path: Path, since: int, version: int) -> Iterator[Path]:
    """Files with rows that a version after `since` brought; compaction brings none."""
    for number in range(since + 1, version + 1):
        yield from (path / add["path"] for add in added(path, number) if add["dataChange"] and _rows(add))


def _rows(add: Mapping[str, Any]) -> int:
    """As the log counts them; 1 where it does not."""
    return int(json.loads(add.get("stats") or "{}").get("numRecords", 1))


def _is_there(path: Path, since: int, version: int) -> bool:
    """Whether the log still tells what came, and maintenance has not removed it in favour of larger files."""
    told = since <= version and all(log_of(path, number).exists() for number in range(since + 1, version + 1))
    return told and all(file.exists() for file in _added(path, since, version))
