"""A place of a query, and what the names of columns mean there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from orchestration.serving.sql.fast.errors import SqlError, unknown, unsupported
from orchestration.serving.sql.fast.functions import Value


@dataclass(frozen=True)
class Scope:
    """A place of a query. `aliases` of SELECT come before columns in HAVING and ORDER BY, behind them in SELECT."""

    source: str
    columns: Sequence[Value]
    scalar: "Callable[[exp.Expr, Sequence[Value]], Value]"
    """What a query for one value means."""
    used: dict[str, exp.Expr]
    around: Sequence[Value] = ()
    """Of the query around a subquery, which cannot be named in it."""
    aliases: Sequence[Value] = ()
    is_alias_first: bool = False

    def column(self, node: exp.Column) -> Value:
        """By its name, which has to be clear."""
        parts, alias = [part.name for part in node.parts], self.alias(node)
        candidates = [column for column in self.columns if is_meant(column, parts)]
        visible = [column for column in candidates if not column.is_hidden]
        if alias and (self.is_alias_first or not candidates):
            return replace(alias, name=parts[0])
        if len(visible or candidates) > 1:
            raise SqlError(f"{'.'.join(parts)} may mean several columns; write the table before it", node)
        if not candidates:
            if any(is_meant(column, parts) for column in self.around):
                raise unsupported("a subquery that names a column of the query around it", node, "use a join")
            names = [".".join((*column.path[len(column.path) - len(parts) + 1 :], column.name or "")) for column in self.columns]
            raise unknown("column", ".".join(parts), names, node)
        column = (visible or candidates)[0]
        if "?" in column.type:
            raise unsupported(f"the type of column {column.name}", node)
        self.used.setdefault(column.sql, node)
        return Value(column.sql, column.type, parts[-1])

    def alias(self, node: exp.Column) -> Value | None:
        """What a name means in SELECT."""
        meant = [value for value in self.aliases if not node.table and value.name and value.name.lower() == node.name.lower()]
        if len(meant) > 1 and (self.is_alias_first or not any(is_meant(column, [node.name]) for column in self.columns)):
            raise SqlError(f"{node.name} may mean several columns of SELECT", node)
        return meant[0] if meant else None


def is_meant(column: Value, parts: Sequence[str]) -> bool:
    """Whether a name with what stands before it can mean the column; Spark looks at no case."""
    *before, name = (part.lower() for part in parts)
    path = [part.lower() for part in column.path]
    return name == (column.name or "").lower() and (not before or path[-len(before) :] == before)
