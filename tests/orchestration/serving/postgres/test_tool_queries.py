"""Queries that tools send which cannot be had here, at connection and from their builders, written anew after their sources, are answered.

A title of tool_queries.sql that ends with `none` is a query without rows; all others have some.
"""

import re

import pytest

from tests.orchestration.serving.postgres.served import REPOSITORY, Served

TEXT = (REPOSITORY / "tests/orchestration/serving/postgres/tool_queries.sql").read_text()
QUERIES = dict(re.findall(r"^-- (.*)\n((?:.+\n?)+)", TEXT, re.MULTILINE))


@pytest.mark.parametrize("title", QUERIES)
def test_a_query_of_a_tool_is_answered(title: str, server: Served) -> None:
    with server.connect() as connection:
        cursor = connection.execute(QUERIES[title])
        while cursor.nextset():
            pass
        assert bool(cursor.fetchall()) is not title.endswith("none")


def test_an_empty_array_of_a_system_table_is_no_null(server: Served) -> None:
    """Parents of a table, as pgAdmin asks for them; it fails at null."""
    with server.connect() as connection:
        query = "select array(select c.relname from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhparent)"
        assert connection.execute(query).fetchone() == ([],)
