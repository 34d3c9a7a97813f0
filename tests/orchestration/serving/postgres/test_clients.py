"""Clients do their usual things with the sql-server, and get the rows that DuckDB reads from the lake."""

import asyncio
import io
import subprocess
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import asyncpg
import pandas as pd
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy

from orchestration.conf.load import load
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from tests.orchestration.serving.postgres.served import Served

QUERY = "select device_id, metric, event_time, value, bronze_batch, part, groups, unit from silver.readings order by all"
Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def table(server: Served) -> pa.Table:
    """The answer of `tidemark sql`."""
    return DuckDbEngine(load(server.conf), Limits()).ask(Question(QUERY)).rows


@pytest.fixture(scope="module")
def rows(table: pa.Table) -> Rows:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("is_binary", [False, True], ids=["text", "binary"])
def test_psycopg_has_the_rows_by_a_cursor_of_the_client_of_the_server_and_in_a_pipeline(
    server: Served, rows: Rows, is_binary: bool
) -> None:
    with server.connect() as connection:
        assert connection.execute(QUERY, binary=is_binary).fetchall() == rows
        with connection.transaction(), connection.cursor("few", binary=is_binary) as cursor:
            cursor.execute(QUERY)
            assert [*cursor.fetchmany(3), *cursor] == rows
        with connection.pipeline():
            asked = [connection.execute(QUERY, binary=is_binary) for _ in range(3)]
            assert [cursor.fetchall() for cursor in asked] == [rows] * 3


@pytest.mark.parametrize("cursor", [psycopg.Cursor, psycopg.RawCursor])
def test_psycopg_binds_parameters_of_each_type(server: Served, rows: Rows, cursor: type[psycopg.Cursor[Any]]) -> None:
    marks = [f"${n}" for n in range(1, 7)] if cursor is psycopg.RawCursor else ["%s"] * 6
    condition = "device_id = {} and event_time >= {} and value > {} and part = {} and groups[1] = any({}) and unit is not distinct from {}"
    asked = f"{QUERY.removesuffix(' order by all')} where {condition.format(*marks)} order by all"
    given = ("oven", rows[0][2].replace(minute=0), 20.5, 0, ["kitchen"], None)
    with server.connect(cursor_factory=cursor) as connection:
        for _ in range(7):  # from the sixth time on by a prepared statement
            assert connection.execute(asked, given).fetchall() == [row for row in rows if row[0] == "oven" and row[3] > 20.5]


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_psycopg_copies_rows_out(server: Served, rows: Rows, form: str) -> None:
    query = f"copy (select device_id, value, bronze_batch, event_time from silver.readings order by all) to stdout (format {form})"
    wanted = sorted((row[0], row[3], row[4], row[2]) for row in rows)
    with server.connect() as connection, connection.cursor() as cursor, cursor.copy(query) as copy:
        if form == "csv":
            lines = b"".join(map(bytes, copy)).decode().splitlines()
            assert [line.split(",")[:3] for line in lines] == [[row[0], str(row[1]), str(row[2])] for row in wanted]
        else:
            copy.set_types(["text", "float8", "int8", "timestamptz"])
            assert [*copy.rows()] == wanted


def test_sqlalchemy_reflects_tables_and_pandas_reads_them(server: Served, table: pa.Table) -> None:
    engine = sqlalchemy.create_engine(server.url("postgresql+psycopg"))
    inspector = sqlalchemy.inspect(engine)
    assert {"bronze", "silver", "gold", "marts", "ops"} <= {*inspector.get_schema_names()}
    assert {"late", "quarantine", "readings"} <= {*inspector.get_table_names("silver"), *inspector.get_view_names("silver")}
    readings = sqlalchemy.Table("readings", sqlalchemy.MetaData(schema="silver"), autoload_with=engine)
    types = {name: str(readings.c[name].type.compile(engine.dialect)) for name in ("device_id", "event_time", "value", "groups", "part")}
    assert [*types.values()] == ["TEXT", "TIMESTAMP WITH TIME ZONE", "DOUBLE PRECISION", "TEXT[]", "INTEGER"]
    with engine.connect() as connection:
        read = pd.read_sql(QUERY, connection)
        counted = connection.execute(sqlalchemy.select(sqlalchemy.func.count()).where(readings.c.value > 20.5)).scalar()
    engine.dispose()
    wanted = table.to_pandas()
    assert counted == (wanted.value > 20.5).sum()
    pd.testing.assert_frame_equal(read.map(_plain), wanted.map(_plain), check_dtype=False)


def _plain(cell: Any) -> Any:
    return list(cell) if hasattr(cell, "tolist") and not isinstance(cell, float) else cell


async def _by_asyncpg(server: Served) -> dict[str, Any]:
    connection = await asyncpg.connect(**server.address(), database="plant")
    try:
        of_device = await connection.prepare("select value from silver.readings where device_id = $1 and groups = $2::text[] order by 1")
        async with connection.transaction():
            by_cursor = [tuple(row) async for row in connection.cursor(QUERY, prefetch=3)]
        target, copied = io.BytesIO(), "select value from silver.readings where device_id = $1 order by 1"
        return {
            "rows": [tuple(row) for row in await connection.fetch(QUERY)],
            "prepared": [row["value"] for row in await of_device.fetch("oven", ["kitchen"])],
            "cursor": by_cursor,
            "tag": await connection.copy_from_query(copied, "oven", output=target, format="csv"),
            "copied": [float(line) for line in target.getvalue().splitlines()],
            "table": await connection.copy_from_table("readings", schema_name="silver", columns=["value"], output=io.BytesIO()),
        }
    finally:
        await connection.close()


def test_asyncpg_has_the_rows_by_statements_cursors_and_copy(server: Served, rows: Rows) -> None:
    values = sorted(row[3] for row in rows if row[0] == "oven")
    got = asyncio.run(_by_asyncpg(server))
    assert (got["rows"], got["cursor"]) == (rows, rows)
    assert (got["prepared"], got["copied"], got["tag"]) == (values, values, f"COPY {len(values)}")
    assert got["table"] == f"COPY {len(rows)}"


def test_adbc_has_the_rows_as_arrow(server: Served, table: pa.Table) -> None:
    with adbc.connect(server.url()) as connection, connection.cursor() as cursor:
        cursor.execute(QUERY)
        assert cursor.fetch_arrow_table().to_pylist() == table.to_pylist()
        cursor.execute("select value from silver.readings where value > $1 order by value", (20.5,))
        assert [value for (value,) in cursor.fetchall()] == sorted(value for value in table["value"].to_pylist() if value > 20.5)
        assert connection.adbc_get_table_schema("readings", db_schema_filter="silver").field("event_time").type == pa.timestamp("us", "UTC")
        (catalog,) = connection.adbc_get_objects(depth="tables", db_schema_filter="silver").read_all().to_pylist()
        tables = {table["table_name"] for schema in catalog["catalog_db_schemas"] for table in schema["db_schema_tables"]}
        assert {"late", "quarantine", "readings"} <= tables


def psql(server: Served, *commands: str) -> list[list[str]]:
    """Lines that each command prints, cells between `|`; of a psql that stops at the first error."""
    asked = [word for command in commands for word in ("-c", command, "-c", r"\echo --")]
    ended = subprocess.run(["psql", "-XAtv", "ON_ERROR_STOP=1", server.url(), *asked], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    return [part.splitlines() for part in ended.stdout.split("--\n")[:-1]]


def test_psql_describes_tables_and_prints_and_copies_rows(server: Served, rows: Rows, tmp_path: Path) -> None:
    asked, file = "select device_id, value from silver.readings order by all", tmp_path / "rows.csv"
    schemas, tables, columns, printed, _, by_cursor, copied = psql(
        server,
        *(r"\dn", r"\dt silver.*", r"\d silver.readings", asked, r"\set FETCH_COUNT 3", asked, rf"\copy ({asked}) to '{file}' csv header"),
    )
    assert {line.split("|")[0] for line in schemas} >= {"bronze", "silver", "gold", "ops"}
    assert {line.split("|")[1] for line in tables} >= {"late", "quarantine", "readings"}
    assert [line.split("|")[:2] for line in columns][1:3] == [["metric", "text"], ["event_time", "timestamp with time zone"]]
    lines = sorted(f"{row[0]}|{row[3]}" for row in rows)
    assert (sorted(printed), sorted(by_cursor), copied) == (lines, lines, [f"COPY {len(rows)}"])
    assert sorted(file.read_text().splitlines()[1:]) == [line.replace("|", ",") for line in lines]
