"""Clients do their usual things with the sql-server, and get the rows that DuckDB reads from the lake."""

from typing import Any

import pyarrow as pa
import pytest

from orchestration.conf.load import load
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from tests.orchestration.serving.postgres.served import Served

QUERY = "select device_id, metric, event_time, value, bronze_batch, part, groups, unit from silver.readings order by all"


@pytest.fixture(scope="module")
def table(server: Served) -> pa.Table:
    """The answer of `tidemark sql`."""
    rows: pa.Table = DuckDbEngine(load(server.conf), Limits()).ask(Question(QUERY)).rows
    return rows


@pytest.fixture(scope="module")
def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_has_the_rows_by_a_cursor_of_the_client_of_the_server_and_in_a_pipeline(
    server: Served, rows: list[tuple[Any, ...]], binary: bool
) -> None:
    with server.connect() as connection:
        assert connection.execute(QUERY, binary=binary).fetchall() == rows
        with connection.transaction(), connection.cursor("few", binary=binary) as cursor:
            cursor.execute(QUERY)
            assert [*cursor.fetchmany(3), *cursor] == rows
        with connection.pipeline():
            asked = [connection.execute(QUERY, binary=binary) for _ in range(3)]
            assert [cursor.fetchall() for cursor in asked] == [rows] * 3
