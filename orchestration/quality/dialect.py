"""A SQLAlchemy dialect for DuckDB, as far as Great Expectations needs one: it evaluates 2,000,000 rows a second, without a JVM.

Of the packages for this, one breaks on DuckDB 2 and the other excludes it. DuckDB's SQL is PostgreSQL's except for what is here.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import duckdb
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, registry
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGDialect, PGIdentifierPreparer

NAME = "duckdb"
TYPES = {
    "BIGINT": sa.BIGINT,
    "INTEGER": sa.INTEGER,
    "VARCHAR": sa.VARCHAR,
    "DOUBLE": sa.DOUBLE,
    "BOOLEAN": sa.BOOLEAN,
    "TIMESTAMP": sa.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": sa.TIMESTAMP,
    "DATE": sa.DATE,
    "BLOB": sa.BLOB,
}


class Connection:
    """Each cursor is its own DuckDB connection: Great Expectations closes the connection before it fetches the result."""

    def __init__(self, store: Sequence[duckdb.DuckDBPyConnection]) -> None:
        """`store` has one item, the current store: SQLAlchemy keeps connections longer than a store lives."""
        self._store = store

    def cursor(self) -> duckdb.DuckDBPyConnection:
        return self._store[0].cursor()

    def commit(self) -> None:
        """Nothing is written, and the caller that opened the store closes it."""

    rollback = close = commit


class Compiler(PGCompiler):
    """`~` matches part of a text in PostgreSQL, the whole text in DuckDB."""

    def visit_custom_op_binary(self, element: Any, operator: Any, **kw: Any) -> str:
        if operator.opstring not in ("~", "!~"):
            return str(PGCompiler.visit_custom_op_binary(self, element, operator, **kw))  # type: ignore[no-untyped-call]
        text, regex = self.process(element.left, **kw), self.process(element.right, **kw)
        return f"{'not ' if operator.opstring == '!~' else ''}regexp_matches({text}, {regex})"


class Preparer(PGIdentifierPreparer):
    """The two have different reserved words (`at`), so every name is quoted."""

    def _requires_quotes(self, value: str) -> bool:
        return True


class Dialect(PGDialect):
    """Reads the views of an open store."""

    name, driver, supports_statement_cache = NAME, "tidemark", True
    statement_compiler, preparer = Compiler, Preparer

    @classmethod
    def import_dbapi(cls) -> Any:
        return SimpleNamespace(paramstyle="numeric_dollar", Error=duckdb.Error)

    def initialize(self, connection: sa.Connection) -> None:
        """PostgreSQL's dialect would query the version."""

    def has_table(self, connection: sa.Connection, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        return bool(self.get_columns(connection, table_name))

    def get_pk_constraint(self, *_: Any, **__: Any) -> Any:
        return {"constrained_columns": [], "name": None}

    def get_columns(self, connection: sa.Connection, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        # duckdb_columns() would bind every view of the store
        columns = connection.exec_driver_sql(f'describe "{table_name}"').fetchall()
        kinds = [(name, TYPES.get(str(kind), sa.types.NullType)) for name, kind, *_ in columns]
        return [{"name": name, "type": kind(), "nullable": True, "default": None} for name, kind in kinds]


registry.register(NAME, __name__, Dialect.__name__)
MODULE = SimpleNamespace(dialect=postgresql.dialect, **TYPES)
"""Stands for the module that Great Expectations looks up by the name of the dialect."""
