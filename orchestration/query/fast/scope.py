"""What names mean at a place of a query: columns of what it reads, of what it has grouped, aliases."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from orchestration.query.fast.syntax import Call, Expression, Name, Query, Star
from orchestration.query.fast.telling import AmissError, differs, unknown
from orchestration.query.fast.value import Value


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


class Scope(Protocol):
    """A place of a query."""

    def column(self, name: Name) -> Value:
        """What a name means; AmissError where it means nothing, or several things."""

    def whole(self, expression: Expression) -> Value | None:
        """What an expression means as a whole, before its parts are looked at; None for what has no such meaning."""

    def aggregate(self, call: Call) -> Value:
        """What an aggregate means; AmissError where there is none."""

    def window(self, call: Call) -> Value:
        """What a function over a window means; AmissError where there is none."""

    def scalar(self, query: Query) -> Value:
        """What a query for one value means."""


@dataclass
class Keys:
    """What windows are partitioned and ordered by, each as a column of the rows below: as expressions, DataFusion loses track of some."""

    new: Callable[[], str]
    columns: dict[str, str] = field(default_factory=dict)
    """By their SQL."""

    def column(self, sql: str) -> str:
        """That holds it."""
        if sql not in self.columns:
            self.columns[sql] = self.new()
        return self.columns[sql]

    def added(self, rows: str) -> str:
        """The rows with these columns."""
        listed = ", ".join(f"{sql} as {column}" for sql, column in self.columns.items())
        return f"select *, {listed} from ({rows})" if listed else rows


@dataclass(frozen=True)
class Rows:
    """Columns of rows that are read. `scalar_of`: what a query for one value means; `window_of`: a window, where there may be one."""

    columns: Sequence[Column]
    scalar_of: "Callable[[Query, Sequence[Column]], Value]"
    window_of: "Callable[[Call, Scope], Value] | None" = None
    around: Sequence[Column] = ()
    """Of the query around a subquery, which cannot be named in it."""

    def column(self, name: Name) -> Value:
        """By its name, which has to be clear."""
        found = [column for column in self.columns if column.is_meant(name.parts)]
        visible = [column for column in found if not column.is_hidden]
        if len(visible or found) > 1:
            raise AmissError(f"{'.'.join(name.parts)} may mean several columns; write the table before it", name.at)
        if not found and any(column.is_meant(name.parts) for column in self.around):
            raise differs("a subquery that names a column of the query around it", name.at, "use a join")
        if not found:
            known = [column.name for column in self.columns if not column.is_hidden]
            raise unknown("column", ".".join(name.parts), _with_tables(self.columns, known, name), name.at)
        column = (visible or found)[0]
        if "?" in column.type:
            raise differs(f"the type of column {column.name}", name.at)
        return Value(column.sql, column.type, name.parts[-1], name.at)

    def star(self, star: Star) -> list[Column]:
        """What `*` or `table.*` stands for."""
        found = self._of_table(star) if star.parts else [column for column in self.columns if not column.is_hidden]
        left_out = {name.lower() for name in star.without}
        for name in star.without:
            if name.lower() not in {column.name.lower() for column in found}:
                raise unknown("column", name, [column.name for column in found], star.at)
        return [column for column in found if column.name.lower() not in left_out]

    def _of_table(self, star: Star) -> list[Column]:
        wanted = [part.lower() for part in star.parts]
        found = [column for column in self.columns if [part.lower() for part in column.path[-len(wanted) :]] == wanted]
        if any(column.is_hidden for column in found):
            raise differs(f"{'.'.join(star.parts)}.* behind USING", star.at, "name the columns")
        if not found:
            raise unknown("table", ".".join(star.parts), {".".join(column.path) for column in self.columns if column.path}, star.at)
        return found

    def whole(self, expression: Expression) -> Value | None:
        """Nothing: a row is looked at part by part."""

    def aggregate(self, call: Call) -> Value:
        """There are none."""
        raise AmissError(f"{call.function} answers many rows and cannot be asked of one; group them in a subquery first", call.at)

    def window(self, call: Call) -> Value:
        """In SELECT and ORDER BY only."""
        if self.window_of is None:
            raise AmissError("a function with OVER can only stand in SELECT and ORDER BY; ask its result in a subquery", call.at)
        return self.window_of(call, self)

    def scalar(self, query: Query) -> Value:
        """Of rows that have nothing to do with these."""
        return self.scalar_of(query, self.columns)


def _with_tables(columns: Iterable[Column], known: list[str], name: Name) -> list[str]:
    """Names as they would have to be written."""
    if len(name.parts) == 1:
        return known
    return [".".join((*column.path[-(len(name.parts) - 1) :], column.name)) for column in columns if not column.is_hidden]


@dataclass
class Aliases:
    """A scope in which aliases of SELECT have a meaning too: before the columns in ORDER BY, behind them in GROUP BY."""

    scope: Scope
    aliases: Sequence[tuple[str, Value]]
    is_first: bool
    is_order: bool = False

    def column(self, name: Name) -> Value:
        """An alias or a column."""
        if self.is_first and self._meant(name):
            return self._alias(name)
        try:
            return self.scope.column(name)
        except AmissError:
            if not self._meant(name):
                raise
            return self._alias(name)

    def whole(self, expression: Expression) -> Value | None:
        """An alias comes before what was grouped."""
        if self.is_first and isinstance(expression, Name) and self._meant(expression):
            return self._alias(expression)
        return self.scope.whole(expression)

    def aggregate(self, call: Call) -> Value:
        """As around it. In ORDER BY, Spark takes a name inside for the alias and ends with an error, where there is one."""
        for argument in call.arguments if self.is_order else ():
            if isinstance(argument, Name) and self._meant(argument):
                raise differs(f"{call.function} of what is the name of a column and of an alias", argument.at, "rename the alias")
        return self.scope.aggregate(call)

    def window(self, call: Call) -> Value:
        """As around it."""
        return self.scope.window(call)

    def scalar(self, query: Query) -> Value:
        """As around it."""
        return self.scope.scalar(query)

    def _meant(self, name: Name) -> list[Value]:
        return [value for alias, value in self.aliases if len(name.parts) == 1 and alias.lower() == name.parts[0].lower()]

    def _alias(self, name: Name) -> Value:
        first, *others = self._meant(name)
        if others:
            raise AmissError(f"{name.parts[0]} may mean several columns of SELECT", name.at)
        return replace(first, name=name.parts[0])
