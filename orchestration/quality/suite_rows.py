"""The rows that a suite evaluates, with the columns that it computes. Suites use Spark's SQL, which is translated to DuckDB's."""

from collections.abc import Sequence

import duckdb
import sqlglot

from expectations.suite import Suite
from orchestration.quality.translation import to_duckdb


def create_suite_view(store: duckdb.DuckDBPyConnection, suite: Suite, views: Sequence[str]) -> str:
    """A view of the rows of all `views` as one, with the columns that the suite computes; its name.

    Raises ValueError for a column that cannot be translated, duckdb.Error for one that names an unknown column.
    """
    together = " union all by name ".join(f'from "{view}"' for view in views)
    # Nested, so that a column may build on an earlier one.
    rows = f"({together})"
    for column, sql in suite.columns.items():
        rows = f'(select *, {to_duckdb(sql)} as "{column}" from {rows})'
    name = f"suite_{suite.name}_{views[0]}"
    store.execute(f'create or replace view "{name}" as from {rows}')
    return name


def columns_of(store: duckdb.DuckDBPyConnection, view: str) -> tuple[tuple[str, str], ...]:
    """Names and types of the columns of a view, in their order."""
    return tuple((name, kind) for name, kind, *_ in store.execute(f'describe "{view}"').fetchall())


def create_empty_table(store: duckdb.DuckDBPyConnection, view: str, ddl: str) -> None:
    """Create an empty table with these columns; `ddl` is Spark's."""
    columns = sqlglot.parse_one(f"create table rows ({ddl})", read="spark")
    created = columns.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.IGNORE)  # comments
    store.execute(created.replace("CREATE TABLE rows", f'create or replace table "{view}"', 1))
