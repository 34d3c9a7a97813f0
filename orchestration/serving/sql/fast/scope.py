"""A place of a query, and what names and parts of the tree mean there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

from sqlglot import exp

from orchestration.serving.sql.fast.errors import SqlError, unknown, unsupported
from orchestration.serving.sql.fast.functions import Value

LARGEST = 1024 * 1024
"""Characters of SQL that are made of an expression: what is used twice is written twice."""


@dataclass(frozen=True)
class Column:
    """Of something in FROM. `path`: what may stand before its name, such as (silver, readings). Hidden ones are not in `*`."""

    name: str
    type: str
    sql: str
    path: tuple[str, ...] = ()
    is_hidden: bool = False

    def is_meant(self, parts: Sequence[str]) -> bool:
        """Whether a name with what stands before it can mean it; Spark looks at no case."""
        *before, name = (part.lower() for part in parts)
        path = [part.lower() for part in self.path]
        return name == self.name.lower() and (not before or path[-len(before) :] == before)


@dataclass(frozen=True)
class Scope:
    """A place of a query. `aliases` of SELECT come before columns in HAVING and ORDER BY, behind them in SELECT."""

    source: str
    columns: Sequence[Column]
    scalar: "Callable[[exp.Expr, Sequence[Column]], Value]"
    """What a query for one value means."""
    around: Sequence[Column] = ()
    """Of the query around a subquery, which cannot be named in it."""
    aliases: Sequence[tuple[str, Value]] = ()
    is_alias_first: bool = False
    has_aggregates: bool = False
    has_windows: bool = False

    def column(self, node: exp.Column) -> Value:
        """By its name, which has to be clear."""
        alias = self.alias(node) if self.is_alias_first else None
        parts = [part.name for part in node.parts]
        candidates = [column for column in self.columns if column.is_meant(parts)]
        visible = [column for column in candidates if not column.is_hidden]
        if alias or (not candidates and (alias := self.alias(node))):
            return replace(alias, name=parts[0])
        if len(visible or candidates) > 1:
            raise SqlError(f"{'.'.join(parts)} may mean several columns; write the table before it", node)
        if not candidates:
            if any(column.is_meant(parts) for column in self.around):
                raise unsupported("a subquery that names a column of the query around it", node, "use a join")
            names = [".".join((*column.path[len(column.path) - len(parts) + 1 :], column.name)) for column in self.columns]
            raise unknown("column", ".".join(parts), names, node)
        column = (visible or candidates)[0]
        if "?" in column.type:
            raise unsupported(f"the type of column {column.name}", node)
        return Value(column.sql, column.type, parts[-1], node)

    def alias(self, node: exp.Column) -> Value | None:
        """What a name means in SELECT."""
        meant = [value for name, value in self.aliases if not node.table and name.lower() == node.name.lower()]
        if len(meant) > 1:
            raise SqlError(f"{node.name} may mean several columns of SELECT", node)
        return meant[0] if meant else None


def meaning(node: exp.Expr, scope: Scope) -> Value:
    """SqlError for what has none, or may have another in Spark."""
    value = replace(meaning_of(node, scope), node=node)
    if len(value.sql) > LARGEST:
        raise SqlError("the query is too large; split it")
    return value


@singledispatch
def meaning_of(node: exp.Expr, scope: Scope) -> Value:
    """By the kind of node; see expressions, calls."""
    raise unsupported(f"this {node.key}", node)
