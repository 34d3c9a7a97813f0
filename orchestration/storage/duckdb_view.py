"""The rows of Delta tables without deletion vectors in DuckDB's SQL, from their files."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from orchestration.location import Location
from orchestration.storage.delta import OpenTable, files_of, in_log, literal

if TYPE_CHECKING:
    import duckdb

NULL_PART = "__HIVE_DEFAULT_PARTITION__"
TYPES = {
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "string": "varchar",
    "binary": "blob",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
"""DuckDB's names of types by Delta's, where they differ."""


def readable(connection: "duckdb.DuckDBPyConnection", files: Mapping[Location, int]) -> list[str]:
    """Let a connection read files of these sizes, and return their names."""
    if any(not file.store.is_disk for file in files):
        from orchestration.storage.duckdb_files import register  # who reads a disk does without it

        register(connection, files)
    return [*map(str, files)]


def sized_files(path: Location, table: OpenTable) -> dict[Location, int]:
    """List the files of a table's version, with their sizes by the log."""
    sizes = in_log(table, "size_bytes")["size_bytes"].to_pylist()
    return {path / name: size for name, size in zip(files_of(table), sizes, strict=True)}


def select_from_table(table: OpenTable, files: Iterable[str]) -> str:
    """A SELECT of the columns of a table, as it declares them, from these of its files; null where a file is older than the column."""
    types = {field["name"]: duckdb_type(field["type"]) for field in json.loads(table.schema().to_json())["fields"]}
    listed = ", ".join(map(literal, files))
    nulls = ", ".join(f"cast(null as {kind}) as {quoted(column)}" for column, kind in types.items())
    # DuckDB's hive_partitioning would take every folder above the lake for a partition (`source=plant/lake`), and its value for that of
    # the column in the file; and it guesses types.
    parts = "".join(f", cast({_part(name)} as {types[name]}) as {quoted(name)}" for name in table.metadata().partition_columns)
    # Parquet statistics leave NaN out. By default DuckDB trusts them, and a filter on NaN would find nothing.
    how = "union_by_name = true, hive_partitioning = false, can_have_nan = true, filename = 'of_file'"
    rows = f" union all by name select * exclude (of_file){parts} from read_parquet([{listed}], {how})" if listed else ""
    return f"select {nulls} where false{rows}"


def duckdb_type(kind: Any) -> str:
    """A type of Delta's JSON schema in DuckDB's SQL."""
    if not isinstance(kind, dict):
        return TYPES.get(kind, str(kind))
    match kind["type"]:
        case "array":
            return f"{duckdb_type(kind['elementType'])}[]"
        case "map":
            return f"map({duckdb_type(kind['keyType'])}, {duckdb_type(kind['valueType'])})"
        case _:
            members = (f"{quoted(member['name'])} {duckdb_type(member['type'])}" for member in kind["fields"])
            return f"struct({', '.join(members)})"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _part(column: str) -> str:
    # The last folder of that name is the table's own; one above the lake may have it too.
    value = f"regexp_extract(of_file, {literal(f'.*/{re.escape(column)}=([^/]*)/')}, 1)"
    return f"nullif(url_decode({value}), '{NULL_PART}')"
