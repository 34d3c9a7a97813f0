"""Whole queries in DataFusion's SQL: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT, ORDER BY, LIMIT, in the order of Spark."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from orchestration.query.fast.groups import Groups, group_keys
from orchestration.query.fast.meaning import direction, meaning, window_of
from orchestration.query.fast.relations import Cte, Ctes, Making, Relation, combined
from orchestration.query.fast.scope import Aliases, Column, Keys, Rows, Scope
from orchestration.query.fast.sources import exploding, read, values, where
from orchestration.query.fast.syntax import Body, Call, Cast, Combined, Item, Literal, Name, Order, Query, Select, Star, Values
from orchestration.query.fast.telling import AmissError, differs
from orchestration.query.fast.value import Value, comparable, require_boolean, require_key, require_order

Named = list[tuple[str, Value]]
"""Names of columns, and what they hold."""


@dataclass(frozen=True)
class Maker:
    """Of relations, at a place that sees these CTEs."""

    making: Making
    ctes: Ctes = field(default_factory=dict)
    is_named: bool = True
    """Whether anybody can see the names of its columns."""
    around: Sequence[Column] = ()
    """Columns of the query around a subquery."""

    def query(self, query: Query) -> Relation:
        """With its CTEs, and in its order."""
        maker = replace(self, ctes=_with(self.ctes, query))
        if isinstance(query.body, Select):
            shaped, order = maker.select(query.body, query.order)
        else:
            shaped, order = maker.sorted(maker.body(query.body), query.order)
        is_cut = query.limit is not None or query.offset is not None
        sql = f"select {', '.join(column.sql for column in shaped.columns)} from ({shaped.sql})" if order or is_cut else shaped.sql
        sql += f" order by {', '.join(order)}" if order else ""
        sql += "" if query.limit is None else f" limit {query.limit}"
        sql += "" if query.offset is None else f" offset {query.offset}"
        return Relation(sql, tuple(replace(column, path=(), is_hidden=False) for column in shaped.columns))

    def body(self, body: Body) -> Relation:
        """Without an order."""
        match body:
            case Query():
                return self.query(body)
            case Select():
                return self.select(body, ())[0]
            case Values():
                return values(self, body)
            case Combined():
                return combined(self.making, body.kind, self.body(body.left), replace(self, is_named=False).body(body.right), body.at)

    def rows(self, columns: Sequence[Column]) -> Rows:
        """A scope over rows that are read."""
        return Rows(columns, self.scalar, around=self.around)

    def scalar(self, query: Query, around: Sequence[Column]) -> Value:
        """A query for one value; DataFusion ends with an error where it finds several, as Spark does."""
        relation = replace(self, around=around).query(query)
        if len(relation.columns) != 1:
            raise AmissError(f"a query for one value gives {len(relation.columns)} columns", query.at)
        return Value(f"({relation.sql})", relation.columns[0].type, "scalarsubquery()", query.at)

    def sorted(self, relation: Relation, orders: Sequence[Order]) -> tuple[Relation, list[str]]:
        """What is no SELECT is ordered by what it gives."""
        if not orders:
            return relation, []
        named = [(column.name, Value(column.sql, column.type, column.name, 0)) for column in relation.columns]
        return _projected(self.making, relation, named, _terms(orders, named, self.rows(relation.columns)), is_distinct=False)

    def select(self, select: Select, orders: Sequence[Order]) -> tuple[Relation, list[str]]:
        """With what ORDER BY needs, in SQL."""
        rows = read(self, select.source)
        if select.where is not None:
            rows = where(self, rows, select.where)
        rows, items = exploding(self, rows, select.items)
        plain = self.rows(rows.columns)
        keys, new = Keys(self.making.new), self.making.new
        over = partial(window_of, keys)
        grouped_by = group_keys(select, items, orders, plain)
        groups = None if grouped_by is None else Groups(plain, [(key, new()) for key in grouped_by], new, over)
        scope = groups or replace(plain, window_of=over)
        named = _named(items, scope, is_seen=self.is_named)
        having = None if select.having is None else meaning(select.having, Aliases(scope, named, is_first=True))
        terms = _terms(orders, named, scope)
        if groups is not None:
            rows = Relation(groups.sql(rows.sql), ())
        if having is not None:
            rows = rows.where(require_boolean(having, "HAVING").sql)
        rows = replace(rows, sql=keys.added(rows.sql))
        return _projected(self.making, rows, named, terms, is_distinct=select.is_distinct)


def _with(seen: Ctes, query: Query) -> Ctes:
    known = dict(seen)
    names = [name.lower() for name, *_ in query.ctes]
    for name, columns, inner in query.ctes:
        if names.count(name.lower()) > 1:
            raise AmissError(f"WITH has two queries of the name {name}", inner.at)
        known[name.lower()] = Cte(inner, columns, dict(known))
    return known


def _named(items: Sequence[Item], scope: Scope, *, is_seen: bool) -> Named:
    """Of SELECT. An alias has a meaning for the items behind it, where no column has that name."""
    named: Named = []
    for item in items:
        if isinstance(item.value, Star):
            named += _every(item, scope)
        else:
            value = meaning(item.value, Aliases(scope, list(named), is_first=False))
            named.append((item.alias or (_column_name(item, value) if is_seen else ""), value))
    return named


def _every(item: Item, scope: Scope) -> Named:
    assert isinstance(item.value, Star)
    if not isinstance(scope, Rows):
        raise AmissError("* cannot stand beside GROUP BY or aggregates; name the columns", item.value.at)
    if item.alias:
        raise AmissError("* takes no alias", item.value.at)
    columns = [scope.column(Name((*column.path, column.name), item.value.at)) for column in scope.star(item.value)]
    return [(value.name or "", value) for value in columns]


def _column_name(item: Item, value: Value) -> str:
    """As Spark names a column without an alias; of a cast column it is that of the column."""
    match item.value:
        case (
            Cast(value=Name(parts=parts))
            | Call(
                function=("int" | "bigint" | "double" | "string" | "date" | "timestamp" | "boolean" | "binary"),
                arguments=(Name(parts=parts),),
            )
        ):
            return parts[-1]
    if value.name is None:
        raise AmissError("how Spark would name this column is not known here; write AS and a name behind it", value.at)
    return value.name


def _terms(orders: Sequence[Order], named: Named, scope: Scope) -> list[tuple[Value, Order]]:
    """Of ORDER BY: a column of SELECT by its number or name, or anything else that has a meaning where SELECT stands."""
    aliased = Aliases(scope, named, is_first=True, is_order=True)
    found = []
    for order in orders:
        if isinstance(order.value, Literal):
            number = order.value.value
            if order.value.type != "int" or not 1 <= number <= len(named):
                raise AmissError(f"ORDER BY takes names, or numbers of columns from 1 to {len(named)}", order.value.at)
            found.append((named[number - 1][1], order))
        else:
            found.append((meaning(order.value, aliased), order))
    return found


def _projected(
    making: Making, rows: Relation, named: Named, terms: Sequence[tuple[Value, Order]], *, is_distinct: bool
) -> tuple[Relation, list[str]]:
    """The columns of SELECT, those that only ORDER BY needs behind them, and its terms."""
    columns = [Column(name, value.type, making.new()) for name, value in named]
    listed = [f"{_shown(value, is_distinct=is_distinct)} as {column.sql}" for (_, value), column in zip(named, columns, strict=True)]
    order = []
    for value, term in terms:
        column = next((column.sql for (_, known), column in zip(named, columns, strict=True) if known.sql == value.sql), None)
        if column is None and is_distinct:
            raise differs("ORDER BY something else than SELECT DISTINCT gives", value.at, "order by one of its columns")
        if column is None:
            column = making.new()
            listed.append(f"{value.sql} as {column}")
        require_order(value)
        order.append(f"{comparable(replace(value, sql=column, constant=None))} {direction(term)}")
    sql = f"select {'distinct ' if is_distinct else ''}{', '.join(listed)} from ({rows.sql})"
    return Relation(sql, tuple(columns)), order


def _shown(value: Value, *, is_distinct: bool) -> str:
    if is_distinct:
        require_key(value)
        return comparable(value)
    return value.sql
