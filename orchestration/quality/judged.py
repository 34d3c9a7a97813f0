"""Rows as a suite judges them: with the columns that it computes. What suites say in Spark's SQL, DuckDB is asked in its own."""

from collections.abc import Sequence
from functools import cache

import duckdb
import sqlglot
from sqlglot import exp

from expectations.suite import Suite

LOST_IN_TRANSLATION = (exp.Exists, exp.AnonymousAggFunc, exp.ArrayAny, exp.ArrayAll)


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


@cache
def translated(sql: str) -> str:
    """An expression in DuckDB's SQL; ValueError where it has none that is known to mean the same."""
    try:
        tree = sqlglot.parse_one(sql, read="spark")
    except sqlglot.errors.SqlglotError as error:
        raise ValueError(f"{sql!r} is no expression of Spark's SQL{_place(error)}") from None
    if lost := next(iter(tree.find_all(*LOST_IN_TRANSLATION)), None):
        raise ValueError(f"{lost.sql(dialect='spark')!r} is more than quality checks can compute; say it by size(filter(..))")
    return tree.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE)


def _place(error: sqlglot.errors.SqlglotError) -> str:
    """Where it breaks, which says more to people than how the parser calls it."""
    first = next(iter(getattr(error, "errors", ())), None)
    return f"; look at line {first['line']}, character {first['col']} of it" if first else "; look for an open quote"


def declare(store: duckdb.DuckDBPyConnection, view: str, ddl: str) -> None:
    """An empty table of these columns, declared as for Spark."""
    columns = sqlglot.parse_one(f"create table rows ({ddl})", read="spark")
    created = columns.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.IGNORE)  # comments
    store.execute(created.replace("CREATE TABLE rows", f'create or replace table "{view}"', 1))
