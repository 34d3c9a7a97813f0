"""Delta tables as DuckDB reads them, at one version."""

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
from duckdb import DuckDBPyConnection
from sqlglot import exp

from orchestration.location import Location
from orchestration.serving.sql.fast.errors import SqlError, unknown
from orchestration.serving.sql.fast.functions import text
from orchestration.serving.sql.fast.types import duckdb, from_delta
from orchestration.storage.delta import PLAIN, OpenTable, files_of, open_table
from orchestration.storage.duckdb_view import select_from_files
from orchestration.storage.views import View


class Tables:
    """Tables of one snapshot by their SQL names, opened when a query first means them."""

    def __init__(self, views: Mapping[str, View]) -> None:
        """See views.views."""
        self._views = views
        self._opened: dict[tuple[Location, int | None], tuple[str, OpenTable]] = {}

    def columns(self, node: exp.Table) -> tuple[str, Sequence[tuple[str, str]]]:
        """See queries.Tables."""
        view = self._views[_named(node, self._views)]
        key = view.location, view.version
        if key not in self._opened:
            self._opened[key] = f"t{len(self._opened) + 1}", open_table(*key)
        name, table = self._opened[key]
        return view.select(name).replace(" left anti join ", " anti join "), _fields(table)

    def show(self, connection: DuckDBPyConnection) -> None:
        """Make t1, t2, .., and leave nothing else to be read."""
        for (path, _), (name, table) in self._opened.items():
            if table.protocol().min_reader_version == PLAIN:
                connection.execute(f"create view {name} as {_files(path, table)}")
            else:
                connection.register("arriving", pa.RecordBatchReader.from_stream(table.scan()))
                connection.execute(f"create table {name} as from arriving")
        folders = ", ".join(text(f"{path}/") for path, _ in self._opened)
        connection.execute(f"set allowed_directories = [{folders}]; set enable_external_access = false; set lock_configuration = true")


def _files(path: Location, table: OpenTable) -> str:
    types = {column: duckdb(kind) for column, kind in _fields(table) if "?" not in kind}
    return select_from_files((str(path / name) for name in files_of(table)), types, table.metadata().partition_columns)


def _fields(table: OpenTable) -> list[tuple[str, str]]:
    return [(field["name"], from_delta(field["type"])) for field in json.loads(table.schema().to_json())["fields"]]


def _named(node: exp.Table, names: Mapping[str, View]) -> str:
    """The SQL name of a table as it is written in the lake, whatever case it was asked in."""
    parts = [part.name.lower() for part in node.parts]
    for name in names:
        if parts == name.lower().split(".", 1):
            return name
    bare = next((name for name in names if parts == [name.split(".", 1)[1].lower()]), None)
    if bare:
        raise SqlError(f"there is no table {node.name}; did you mean '{bare}'?", node)
    raise unknown("table", ".".join(part.name for part in node.parts), names, node)
