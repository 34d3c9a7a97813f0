"""The form of a query as Spark reads it, as far as the fast engine knows it. Operators are calls of functions named by their signs.

`at` is the place in the text, in characters.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Literal:
    """A value that is written out. `type` as Spark gives it, `name` as Spark calls a column that holds it."""

    type: str
    value: Any
    name: str
    at: int


@dataclass(frozen=True)
class Interval:
    """A length of time: months and microseconds, of which one is 0."""

    months: int
    micros: int
    at: int


@dataclass(frozen=True)
class Name:
    """A column, with what stands before it, up to database.table.column."""

    parts: tuple[str, ...]
    at: int


@dataclass(frozen=True)
class Star:
    """All columns, or those of one table; but for some."""

    parts: tuple[str, ...]
    at: int
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """A function of arguments; `where` is its FILTER, `over` its window."""

    function: str
    arguments: "tuple[Expression, ...]"
    at: int
    is_distinct: bool = False
    where: "Expression | None" = None
    over: "Over | None" = None


@dataclass(frozen=True)
class Cast:
    """To a type by its name in Spark."""

    value: "Expression"
    type: str
    at: int


@dataclass(frozen=True)
class Case:
    """WHEN .. THEN, with comparisons already written out."""

    branches: "tuple[tuple[Expression, Expression], ...]"
    otherwise: "Expression | None"
    at: int


@dataclass(frozen=True)
class Subquery:
    """A query for one value."""

    query: "Query"
    at: int


@dataclass(frozen=True)
class InQuery:
    """Whether a value is among those of a query."""

    value: "Expression"
    query: "Query"
    is_not: bool
    at: int


Expression: TypeAlias = Literal | Interval | Name | Star | Call | Cast | Case | Subquery | InQuery


@dataclass(frozen=True)
class Order:
    """Of ORDER BY. Nulls come first where nothing else is said, and last where the order is descending."""

    value: Expression
    is_descending: bool
    is_nulls_first: bool


@dataclass(frozen=True)
class Over:
    """A window. `frame` in the words of SQL, made of words that are known; None for Spark's own."""

    partition: tuple[Expression, ...]
    order: tuple[Order, ...]
    frame: str | None


@dataclass(frozen=True)
class Table:
    """A table or CTE by its name."""

    parts: tuple[str, ...]
    alias: str | None
    at: int


@dataclass(frozen=True)
class Derived:
    """A query in FROM. `columns` are names given with the alias."""

    query: "Query"
    alias: str | None
    columns: tuple[str, ...]
    at: int


@dataclass(frozen=True)
class Values:
    """Rows that are written out."""

    rows: tuple[tuple[Expression, ...], ...]
    alias: str | None
    columns: tuple[str, ...]
    at: int


@dataclass(frozen=True)
class Join:
    """`kind`: inner, left, right, full, cross, left semi, left anti."""

    kind: str
    left: "Source"
    right: "Source"
    on: Expression | None
    using: tuple[str, ...]
    at: int


@dataclass(frozen=True)
class LateralView:
    """A row for each element of an array."""

    source: "Source"
    array: Expression
    alias: str | None
    column: str
    at: int


Source: TypeAlias = Table | Derived | Values | Join | LateralView


@dataclass(frozen=True)
class Item:
    """Of SELECT."""

    value: Expression
    alias: str | None


@dataclass(frozen=True)
class Select:
    """One SELECT. `groups` None: no GROUP BY; () with `is_grouped_by_all`: GROUP BY ALL."""

    items: tuple[Item, ...]
    source: Source | None
    where: Expression | None
    groups: tuple[Expression, ...] | None
    is_grouped_by_all: bool
    having: Expression | None
    is_distinct: bool
    at: int


@dataclass(frozen=True)
class Combined:
    """`kind`: union all, union, intersect, except."""

    kind: str
    left: "Body"
    right: "Body"
    at: int


Body: TypeAlias = "Select | Combined | Values | Query"


@dataclass(frozen=True)
class Query:
    """With its CTEs: name, names of columns, query."""

    ctes: "tuple[tuple[str, tuple[str, ...], Query], ...]"
    body: Body
    order: tuple[Order, ...]
    limit: int | None
    offset: int | None
    at: int
