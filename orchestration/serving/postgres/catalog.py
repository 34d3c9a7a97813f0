"""What clients ask of pg_catalog and information_schema, as tables in a database of its own, which can open no file."""

import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from orchestration.serving.postgres.datatypes import SQL_NAMES, TYPES, DataType, modifier_of, type_of
from orchestration.serving.sql.duckdb_engine import SETTINGS, create_views
from orchestration.storage.delta import each_table_opened_once
from orchestration.storage.duckdb_view import quoted
from orchestration.storage.views import View

HERE = Path(__file__).parent
DUCKDB = {
    "oid": "uinteger",
    "int8": "bigint",
    "int4": "integer",
    "int2": "smallint",
    "float8": "double",
    "text": "varchar",
    "bool": "boolean",
}
CATEGORIES = {
    "bool": "B",
    "text": "S",
    "date": "D",
    "time": "D",
    "timestamp": "D",
    "timestamptz": "D",
    "interval": "T",
    "bytea": "U",
    "uuid": "U",
    "json": "U",
}
OTHERS = [
    (19, "name", 64, "S", 1003),
    (1043, "varchar", -1, "S", 1015),
    (18, "char", 1, "S", 1002),
    (1042, "bpchar", -1, "S", 1014),
    (705, "unknown", -2, "X", 0),
    (2278, "void", 4, "P", 0),
    (2249, "record", -1, "P", 2287),
    (3802, "jsonb", -1, "U", 3807),
    (2205, "regclass", 4, "N", 2210),
    (22, "int2vector", -1, "A", 1006),
]
Column = tuple[str, str, int, str, DataType, int]
"""Schema, table, place, name, type and its modifier."""


def columns_of(views: Sequence[View]) -> list[Column]:
    """Of views, whose tables are opened for it."""
    found = list[Column]()
    with duckdb.connect(config=SETTINGS) as connection, each_table_opened_once():
        create_views(connection, views)
        for view in views:
            schema, name = view.name.split(".", 1)
            rows = connection.sql(f"select * from {quoted(schema)}.{quoted(name)}")
            for place, (column, of) in enumerate(zip(rows.columns, rows.types, strict=True), 1):
                found.append((schema, name, place, column, type_of(of), modifier_of(of)))
    return found


def oid_of(name: str) -> int:
    """The same for ever."""
    return 16384 + zlib.crc32(name.encode()) % (1 << 30)


def catalog(columns: Sequence[Column], settings: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """A database that has it, and locks itself."""
    name = settings["database"]
    connection = duckdb.connect(config=SETTINGS)
    connection.execute(f"attach ':memory:' as {quoted(name)}; use {quoted(name)}; create schema pg; create schema _nformation_schema")
    system = []
    for line in (HERE / "pg_catalog.txt").read_text().splitlines():
        table, listed = line.split(": ")
        schema, table = table.split(".")
        typed = [column.split(" ") for column in listed.split(", ")]
        kinds = ", ".join(
            f"{quoted(column)} {DUCKDB.get(kind.removesuffix('[]'), kind.removesuffix('[]'))}{'[]' * kind.endswith('[]')}"
            for column, kind in typed
        )
        connection.execute(f"create table {'pg' if schema == 'pg_catalog' else '_nformation_schema'}.{table} ({kinds})")
        if schema == "pg_catalog":
            connection.execute(
                f"alter table pg.{table} add column if not exists xmin bigint default 1; alter table pg.{table} add column if not exists tableoid uinteger default 0"
            )
            system.append((1259 if table == "pg_class" else oid_of(line), table))
    connection.execute(f"use {quoted(name)}.pg; create macro pg_backend_pid() as {os.getpid()}")
    connection.execute(
        f"create macro current_user() as {_text(settings['user'])}; create macro current_role() as {_text(settings['user'])}; create macro session_user() as {_text(settings['user'])}"
    )
    path = [part.strip(' "') for part in settings["search_path"].split(",")]
    connection.execute(
        f"create macro current_schema() as {_text(path[0])}; create macro current_schemas(implicit) as [{', '.join(map(_text, path))}]::varchar[] || if(implicit, ['pg_catalog'], []::varchar[])"
    )
    listed = ", ".join(f"{_text(key)}: {_text(value)}" for key, value in settings.items())
    connection.execute(f"create macro current_setting(n) as map {{{listed}}}[lower(n)], (n, missing) as map {{{listed}}}[lower(n)]")
    schemas = dict.fromkeys(column[0] for column in columns)
    tables = dict.fromkeys(column[:2] for column in columns)
    _fill(
        connection,
        "lake_schemas(oid uinteger, nspname varchar)",
        [(11, "pg_catalog"), (13, "information_schema"), *((oid_of(schema), schema) for schema in schemas)],
    )
    _fill(
        connection,
        "lake_tables(oid uinteger, schema varchar, name varchar, comment varchar)",
        [(oid_of(".".join(table)), *table, "") for table in tables],
    )
    _fill(
        connection,
        "lake_columns(oid uinteger, position smallint, name varchar, type uinteger, typmod int)",
        [(oid_of(f"{schema}.{table}"), place, column, kind.oid, typmod) for schema, table, place, column, kind, typmod in columns],
    )
    _fill(
        connection,
        "lake_types(oid_of uinteger, typname varchar, sqlname varchar, typlen int, typtype varchar, typcategory varchar, typelem uinteger, typarray uinteger)",
        [*_types()],
    )
    _fill(connection, "lake_settings(name varchar, setting varchar)", [*settings.items()])
    _fill(connection, "system_tables(oid uinteger, relname varchar)", system)
    connection.execute((HERE / "functions.sql").read_text() + (HERE / "catalog.sql").read_text())
    connection.execute("set enable_external_access = false")
    return connection


def _types() -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for kind in TYPES.values():
        category, shown = CATEGORIES.get(kind.name, "N"), SQL_NAMES.get(kind.name, kind.name)
        found.append((kind.oid, kind.name, shown, kind.size, "b", category, 0, kind.array))
        found.append((kind.array, f"_{kind.name}", f"{shown}[]", -1, "b", "A", kind.oid, 0))
    for oid, name, size, category, array in OTHERS:
        found.append(
            (
                oid,
                name,
                {"varchar": "character varying", "char": '"char"', "bpchar": "character"}.get(name, name),
                size,
                "p" if category in "PX" else "b",
                category,
                21 if name == "int2vector" else 0,
                array,
            )
        )
        if array:
            found.append((array, f"_{name}", f"{name}[]", -1, "p" if category == "P" else "b", "A", oid, 0))
    return found


def _fill(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Sequence[object]]) -> None:
    values = ", ".join(f"({', '.join(_text(value) if isinstance(value, str) else str(value) for value in row)})" for row in rows)
    connection.execute(f"create table {table}; insert into {table.split('(', maxsplit=1)[0]} values {values}")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
