"""Relations: SELECT statements of DataFusion with columns of unique names, made of what stands in FROM, set operations, whole queries.

No name and no text of who asks comes into the SQL but as a quoted string: columns are c1, c2, .., tables t1, t2, ...
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestration.query.fast.scope import Column
from orchestration.query.fast.syntax import Query
from orchestration.query.fast.telling import AmissError, differs, unknown
from orchestration.query.fast.types import common, element
from orchestration.query.fast.value import Value, become, comparable, require_key


@dataclass(frozen=True)
class Relation:
    """`sql` is a SELECT whose columns are those of `columns`, by their `sql`."""

    sql: str
    columns: tuple[Column, ...]

    def called(self, alias: str | None, names: Sequence[str], at: int) -> "Relation":
        """With an alias before its columns, and other names for them."""
        path = (alias,) if alias else ()
        if names and len(names) != len(self.columns):
            raise AmissError(f"{len(names)} names for {len(self.columns)} columns", at)
        known = names or [column.name for column in self.columns]
        columns = (Column(name, column.type, column.sql, path) for name, column in zip(known, self.columns, strict=True))
        return Relation(self.sql, tuple(columns))

    def where(self, condition: str) -> "Relation":
        """Rows for which it is true."""
        return Relation(f"select * from ({self.sql}) where {condition}", self.columns)


@dataclass(frozen=True)
class Cte:
    """A query of WITH, with what it can see itself."""

    query: Query
    names: tuple[str, ...]
    seen: "Ctes"


Ctes = Mapping[str, Cte]
"""By their names in lower case."""


@dataclass
class Making:
    """What is common to all relations of one query. `table`: columns of a table by its name; AmissError where there is none."""

    table: Callable[[tuple[str, ...], int], "tuple[str, Sequence[tuple[str, str]]]"]
    most: int
    count: int = field(default=0)

    def new(self) -> str:
        """A name for a column."""
        self.count += 1
        if self.count > self.most:
            raise AmissError("the query is too large; ask it in parts", 0)
        return f"c{self.count}"

    def read(self, parts: tuple[str, ...], at: int) -> Relation:
        """A table: SQL that reads it, and its columns."""
        rows, known = self.table(parts, at)
        columns = [Column(name, kind, self.new(), parts) for name, kind in known]
        listed = ", ".join(f"{quoted(column.name)} as {column.sql}" for column in columns)
        return Relation(f"select {listed} from ({rows})", tuple(columns))


def quoted(name: str) -> str:
    """A name in DataFusion's SQL."""
    return '"' + name.replace('"', '""') + '"'


def combined(making: Making, kind: str, left: Relation, right: Relation, at: int) -> Relation:
    """UNION [ALL], INTERSECT, EXCEPT: in common types, with the names of the left."""
    if len(left.columns) != len(right.columns):
        raise AmissError(f"{len(left.columns)} columns on the left of {kind.upper()}, {len(right.columns)} on its right", at)
    kinds = [_in_common(*both, at) for both in zip(left.columns, right.columns, strict=True)]
    columns = tuple(Column(column.name, kind_of, making.new(), column.path) for column, kind_of in zip(left.columns, kinds, strict=True))
    sides = [_as_columns(side, columns, at, is_compared=kind != "union all") for side in (left, right)]
    if kind == "union all":
        return Relation(" union all ".join(sides), columns)
    if kind == "union":
        return Relation(f"select distinct * from ({' union all '.join(sides)})", columns)
    return Relation(f" {kind} ".join(sides), columns)


def _in_common(left: Column, right: Column, at: int) -> str:
    kind = common((left.type, right.type))
    if kind is None:
        raise differs(f"{left.type} above {right.type}", at, "cast one of them")
    return kind


def _as_columns(side: Relation, columns: Sequence[Column], at: int, *, is_compared: bool) -> str:
    """A side under the names and types of the whole."""
    listed = []
    for found, wanted in zip(side.columns, columns, strict=True):
        value = become(Value(found.sql, found.type, None, at), wanted.type)
        if is_compared:
            require_key(value)
        listed.append(f"{comparable(value) if is_compared else value.sql} as {wanted.sql}")
    return f"(select {', '.join(listed)} from ({side.sql}))"


def joined(kind: str, left: Relation, right: Relation, condition: str | None) -> Relation:
    """`condition` None: each row with each."""
    columns = left.columns if kind in {"left semi", "left anti"} else (*left.columns, *right.columns)
    on = "" if condition is None else f" on {condition}"
    return Relation(f"select * from ({left.sql}) {kind} join ({right.sql}){on}", columns)


def merged(making: Making, kind: str, relation: Relation, keys: Sequence[tuple[Column, Column]]) -> Relation:
    """After USING: each key is one column before the others; those of both sides are found only with their table before them."""
    if kind in {"left semi", "left anti"}:
        return relation
    of_key = {column.sql for both in keys for column in both}
    hidden = tuple(replace(column, is_hidden=column.sql in of_key) for column in relation.columns)
    if kind != "full":
        side = 1 if kind == "right" else 0
        shown = tuple(replace(both[side], path=(), is_hidden=False) for both in keys)
        return Relation(relation.sql, (*shown, *hidden))
    shown = tuple(replace(left, path=(), sql=making.new()) for left, _ in keys)
    listed = ", ".join(f"coalesce({left.sql}, {right.sql}) as {new.sql}" for (left, right), new in zip(keys, shown, strict=True))
    return Relation(f"select *, {listed} from ({relation.sql})", (*shown, *hidden))


def exploded(making: Making, relation: Relation, array: Value, name: str, path: tuple[str, ...]) -> Relation:
    """A row for each element; none for an array that is empty or null."""
    inner = element(array.type)
    if inner is None:
        raise differs(f"explode of {array.type}", array.at)
    column = Column(name, inner, making.new(), path)
    return Relation(f"select *, unnest({array.sql}) as {column.sql} from ({relation.sql})", (*relation.columns, column))


def table_named(parts: tuple[str, ...], known: Collection[str], at: int) -> str:
    """The SQL name of a table as it is written in the lake, whatever case it was asked in."""
    meant = [name for name in known if [part.lower() for part in parts] == name.lower().split(".", 1)]
    if meant:
        return meant[0]
    bare = [name for name in known if [part.lower() for part in parts] == [name.split(".", 1)[1].lower()]]
    if bare:
        raise AmissError(f"there is no table {parts[0]}; did you mean '{bare[0]}'?", at)
    raise unknown("table", ".".join(parts), known, at)
