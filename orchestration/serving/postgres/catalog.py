"""Tables of pg_catalog and information_schema, for what clients ask about the lake: in a database of its own, which can open no file."""

import functools
import json
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa

from orchestration.serving.postgres.activity import Connection
from orchestration.serving.postgres.datatypes import DataType, modifier_of, type_of
from orchestration.serving.sql.duckdb_engine import SETTINGS, create_views
from orchestration.storage.delta import each_table_opened_once, literal, open_table
from orchestration.storage.duckdb_view import quoted
from orchestration.storage.grains import grain_of
from orchestration.storage.views import View

HERE = Path(__file__).parent
INFORMATION_SCHEMA = "_nformation_schema"
"""DuckDB owns the schemas information_schema and pg_catalog."""
SCHEMAS = {"pg_catalog": "pg", "information_schema": INFORMATION_SCHEMA}
DUCKDB = {
    **dict.fromkeys(("oid", "xid", "regtype"), "uinteger"),
    "bool": "boolean",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "float",
    "float8": "double",
    "bytea": "blob",
    "interval": "interval",
    "numeric": "decimal(38, 10)",
    "timestamptz": "timestamptz",
    "int2vector": "smallint[]",
    "oidvector": "uinteger[]",
}
"""DuckDB's types of columns by PostgreSQL's; the others are texts."""
ROW_TABLES = {"relations": "relations", "pg_type": "sql_types", "pg_proc": "functions"}
"""Names of tables with rows of system_catalog.json that system.sql completes; the others are complete."""


@dataclass(frozen=True)
class Column:
    """`position` from 1. `typmod`: -1 where the type has none. `comment`: meaning and unit, may be empty."""

    schema: str
    table: str
    position: int
    name: str
    data_type: DataType
    typmod: int
    comment: str
    grain: str
    """The meaning of a row of its table; may be empty."""


def columns_of(views: Sequence[View]) -> list[Column]:
    """Return the columns of views, whose tables are opened for it."""
    columns = list[Column]()
    with duckdb.connect(config=SETTINGS) as connection, each_table_opened_once():
        create_views(connection, views)
        for view in views:
            schema, table = view.name.split(".", 1)
            rows, comments = connection.sql(f"select * from {quoted(schema)}.{quoted(table)}"), _comments(view)
            for position, (name, duckdb_type) in enumerate(zip(rows.columns, rows.types, strict=True), 1):
                data_type, typmod = type_of(duckdb_type), modifier_of(duckdb_type)
                columns.append(Column(schema, table, position, name, data_type, typmod, comments.get(name, ""), grain_of(view)))
    return columns


def _comments(view: View) -> dict[str, str]:
    """Return meaning and unit of columns as the table declares them. The last part of a view of open windows has the closed ones."""
    part = view.parts[-1]
    fields = json.loads(open_table(part.location, part.version).schema().to_json())["fields"]
    return {field["name"]: field["metadata"].get("comment", "") for field in fields}


def oid_of(name: str) -> int:
    """Return the same number for a name for ever."""
    return 16384 + zlib.crc32(name.encode()) % (1 << 30)


@functools.cache
def system_database() -> int:
    """Make the part that all sessions share. Returns the descriptor of a DuckDB file in memory.

    It takes half a second. The server calls this before it forks; no thread stays.
    """
    tables = json.loads((HERE / "system_catalog.json").read_text())
    with TemporaryDirectory() as folder:
        file = Path(folder) / "shared"
        with duckdb.connect(file, config={**SETTINGS, "threads": 1}) as connection:
            connection.execute(f"create schema pg; create schema {INFORMATION_SCHEMA}; use shared.pg")
            for schema, table, _, kind, columns in tables["relations"][1:]:
                typed = [column.split(" ") for column in columns.split(", ")] + [["xmin", "xid"], ["tableoid", "oid"]] * (kind == "r")
                listed = ", ".join(f"{quoted(name)} {_duckdb_type(type_name)}" for name, type_name in typed)
                connection.execute(f"create table {SCHEMAS[schema]}.{quoted(table)} ({listed})")
            for name, (names, *rows) in tables.items():
                connection.register("rows", pa.table([*map(pa.array, zip(*rows, strict=True))], names))
                table = ROW_TABLES.get(name)
                connection.execute(f"create table {table} as from rows" if table else f"insert into {name} by name from rows")
                connection.unregister("rows")
            connection.execute((HERE / "functions.sql").read_text() + (HERE / "system.sql").read_text())
        descriptor = os.memfd_create("system catalog")
        os.write(descriptor, file.read_bytes())
    return descriptor


def catalog(columns: Sequence[Column], settings: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """Make the database of a session. From here on it opens no file."""
    name, user = quoted(settings["database"]), literal(settings["user"])
    connection = duckdb.connect(config=SETTINGS)
    connection.execute(f"attach '/proc/self/fd/{system_database()}' as _system (read_only); set enable_external_access = false")
    connection.execute(f"attach ':memory:' as {name}; create schema {name}.pg; create schema {name}.{INFORMATION_SCHEMA}; use {name}.pg")
    path = [f"{database}.{schema}" for schema in SCHEMAS.values() for database in (name, "_system")]
    connection.execute(f"set search_path = {literal(','.join(path))}")
    search_path = [part.strip(' "') for part in settings["search_path"].split(",")]
    listed = ", ".join(f"{literal(key)}: {literal(value)}" for key, value in settings.items())
    connection.execute(f"""
        create macro pg_backend_pid() as {os.getpid()}; create macro current_user() as {user}; create macro current_role() as {user};
        create macro session_user() as {user}; create macro version() as {literal(settings["version"])};
        create macro current_schema() as {literal(search_path[0])};
        create macro current_schemas(implicit) as
          [{", ".join(map(literal, search_path))}]::varchar[] || if(implicit, ['pg_catalog'], []::varchar[]);
        create macro current_setting(n) as map {{{listed}}}[lower(n)], (n, missing) as map {{{listed}}}[lower(n)]""")
    schemas = dict.fromkeys(column.schema for column in columns)
    tables = {(column.schema, column.table): column.grain for column in columns}
    _fill(connection, "lake_schemas(oid uinteger, nspname varchar)", [(oid_of(schema), schema) for schema in schemas])
    _fill(
        connection,
        "lake_tables(oid uinteger, schema varchar, name varchar, comment varchar)",
        [(oid_of(f"{schema}.{table}"), schema, table, grain) for (schema, table), grain in tables.items()],
    )
    _fill(
        connection,
        "lake_columns(oid uinteger, position smallint, name varchar, type uinteger, typmod int, comment varchar)",
        [(oid_of(f"{c.schema}.{c.table}"), c.position, c.name, c.data_type.oid, c.typmod, c.comment) for c in columns],
    )
    _fill(connection, "lake_settings(name varchar, setting varchar)", [*settings.items()])
    statements = (HERE / "catalog.sql").read_text()
    filled = dict.fromkeys([*re.findall(r"^insert into (\S+)", statements, re.MULTILINE), "pg_stat_activity"])
    connection.execute("".join(f"create table {table} as from _system.{_schema_of(table)}; " for table in filled) + statements)
    return connection


def show_activity(connection: duckdb.DuckDBPyConnection, rows: Sequence[Connection]) -> None:
    """Put the connections of the server into pg_stat_activity. A query of this database that still runs ends."""
    cells = [
        (
            *(row.pid, row.user, row.database, row.client_address, row.client_port, row.application_name),
            *(row.backend_start, row.state, row.state_change, row.query_start, row.query),
        )
        for row in rows
    ]
    names = "pid, usename, datname, client_addr, client_port, application_name, backend_start, state, state_change, query_start, query"
    connection.execute("rollback; delete from pg_stat_activity")
    connection.execute(f"""
        insert into pg_stat_activity by name
          select *, 'client backend' as backend_type, 16384 as datid, 10 as usesysid
          from (values {", ".join(map(literal, cells))}) as t({names});
        begin transaction read only""")


def _schema_of(table: str) -> str:
    return table if "." in table else f"pg.{table}"


def _duckdb_type(name: str) -> str:
    return f"{_duckdb_type(name[1:])}[]" if name.startswith("_") else DUCKDB.get(name, "varchar")


def _fill(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[object]]) -> None:
    values = f"; insert into {table.split('(', maxsplit=1)[0]} values {', '.join(map(literal, rows))}" if rows else ""
    connection.execute(f"create table {table}{values}")
