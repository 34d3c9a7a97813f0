"""Rows as a suite judges them: with the columns that it computes. What suites say in Spark's SQL, DuckDB is asked in its own."""

from collections.abc import Sequence

import duckdb
import sqlglot

from expectations.suite import Suite
from orchestration.quality.translation import translated


def show_judged(store: duckdb.DuckDBPyConnection, suite: Suite, views: Sequence[str]) -> str:
    """A view of the rows of all `views` as one, with the columns that the suite computes; its name.

    Raises ValueError where a column cannot be said in DuckDB's SQL, duckdb.Error where it names what is not there.
    """
    together = " union all by name ".join(f'from "{view}"' for view in views)
    # One around the other, so that a column may build on an earlier one.
    rows = f"({together})"
    for column, sql in suite.columns.items():
        rows = f'(select *, {translated(sql)} as "{column}" from {rows})'
    name = f"judged_{suite.name}_{views[0]}"
    store.execute(f'create or replace view "{name}" as from {rows}')
    return name


def columns_of(store: duckdb.DuckDBPyConnection, view: str) -> tuple[tuple[str, str], ...]:
    """Names and types of the columns of a view, in their order."""
    return tuple((name, kind) for name, kind, *_ in store.execute(f'describe "{view}"').fetchall())


def declare(store: duckdb.DuckDBPyConnection, view: str, ddl: str) -> None:
    """An empty table of these columns, declared as for Spark."""
    columns = sqlglot.parse_one(f"create table rows ({ddl})", read="spark")
    created = columns.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.IGNORE)  # comments
    store.execute(created.replace("CREATE TABLE rows", f'create or replace table "{view}"', 1))
