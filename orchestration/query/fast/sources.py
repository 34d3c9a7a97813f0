"""What stands in FROM and WHERE, as relations."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestration.query.fast.meaning import has_aggregate, meaning
from orchestration.query.fast.relations import Relation, exploded, joined, merged
from orchestration.query.fast.scope import Column
from orchestration.query.fast.syntax import Call, Derived, Expression, InQuery, Item, Join, LateralView, Name, Source, Table, Values
from orchestration.query.fast.telling import AmissError, differs
from orchestration.query.fast.value import Value, alike, comparable, require_boolean, require_key

if TYPE_CHECKING:
    from orchestration.query.fast.select import Maker

ONE_ROW = Relation("select 1 as c0", ())
UNNAMED = ("explode",)
"""Before the name of what explode in SELECT gives."""


def read(maker: "Maker", source: Source | None) -> Relation:
    """All rows of FROM; one without columns where there is none."""
    match source:
        case None:
            return ONE_ROW
        case Table():
            return _table(maker, source)
        case Derived():
            return maker.query(source.query).called(source.alias, source.columns, source.at)
        case Values():
            return values(maker, source)
        case Join():
            return _join(maker, source)
        case LateralView():
            rows = read(maker, source.source)
            array = meaning(source.array, maker.rows(rows.columns))
            return exploded(maker.making, rows, array, source.column, (source.alias,) if source.alias else ())


def _table(maker: "Maker", table: Table) -> Relation:
    cte = maker.ctes.get(table.parts[0].lower()) if len(table.parts) == 1 else None
    if cte is not None:
        made = replace(maker, ctes=cte.seen).query(cte.query).called(None, cte.names, table.at)
        return made.called(table.alias or table.parts[0], (), table.at)
    found = maker.making.read(table.parts, table.at)
    return found.called(table.alias, (), table.at) if table.alias else found


def _join(maker: "Maker", join: Join) -> Relation:
    left, right = read(maker, join.left), read(maker, join.right)
    if join.kind == "cross":
        return joined(join.kind, left, right, None)
    if join.using:
        keys = [(_key(maker, left, name, join.at), _key(maker, right, name, join.at)) for name in join.using]
        equal = " and ".join(" = ".join(map(comparable, _compared(*both, join.at))) for both in keys)
        return merged(maker.making, join.kind, joined(join.kind, left, right, equal), keys)
    assert join.on is not None
    on = meaning(join.on, maker.rows((*left.columns, *right.columns)))
    return joined(join.kind, left, right, require_boolean(on, "ON").sql)


def _key(maker: "Maker", side: Relation, name: str, at: int) -> Column:
    found = maker.rows(side.columns).column(Name((name,), at))
    return next(column for column in side.columns if column.sql == found.sql and not column.is_hidden)


def _compared(left: Column, right: Column, at: int) -> list[Value]:
    both = [Value(column.sql, column.type, None, at) for column in (left, right)]
    for value in both:
        require_key(value)
    return alike(both)


def where(maker: "Maker", rows: Relation, condition: Expression) -> Relation:
    """Rows for which the condition is true. IN (SELECT ..) may stand between ANDs."""
    scope = maker.rows(rows.columns)
    for part in _conjuncts(condition):
        if isinstance(part, InQuery):
            rows = rows.where(_among(replace(maker, around=rows.columns), meaning(part.value, scope), part))
        else:
            rows = rows.where(require_boolean(meaning(part, scope), "WHERE").sql)
    return rows


def _conjuncts(condition: Expression) -> list[Expression]:
    if isinstance(condition, Call) and condition.function == "and":
        return [part for argument in condition.arguments for part in _conjuncts(argument)]
    return [condition]


def _among(maker: "Maker", value: Value, part: InQuery) -> str:
    found = maker.query(part.query)
    if len(found.columns) != 1:
        raise AmissError(f"the query behind IN gives {len(found.columns)} columns", part.query.at)
    among = Value(found.columns[0].sql, found.columns[0].type, None, part.at)
    require_key(value)
    require_key(among)
    left, right = alike([value, among])
    return f"{comparable(left)} {'not ' if part.is_not else ''}in (select {comparable(right)} from ({found.sql}))"


def values(maker: "Maker", source: Values) -> Relation:
    """Rows that are written out, in the common types of their columns."""
    scope = maker.rows(())
    columns = [alike([meaning(row[place], scope) for row in source.rows]) for place in range(len(source.rows[0]))]
    rows = ", ".join(f"({', '.join(column[number].sql for column in columns)})" for number in range(len(source.rows)))
    known = [Column(f"col{number}", column[0].type, maker.making.new()) for number, column in enumerate(columns, 1)]
    listed = ", ".join(f"column{number} as {column.sql}" for number, column in enumerate(known, 1))
    return Relation(f"select {listed} from (values {rows})", tuple(known)).called(source.alias, source.columns, source.at)


def exploding(maker: "Maker", rows: Relation, items: Sequence[Item]) -> tuple[Relation, Sequence[Item]]:
    """explode as an item of SELECT: a row for each element, and the item is the element."""
    calls = [item.value for item in items if isinstance(item.value, Call) and item.value.function == "explode"]
    if not calls:
        return rows, items
    if len(calls) > 1 or len(calls[0].arguments) != 1 or any(has_aggregate(item.value) for item in items):
        raise differs("this explode", calls[0].at, "use LATERAL VIEW explode(..) name AS column")
    array = meaning(calls[0].arguments[0], maker.rows(rows.columns))
    name = next(item.alias for item in items if item.value is calls[0]) or "col"
    made = exploded(maker.making, rows, array, name, UNNAMED)
    hidden = replace(made.columns[-1], is_hidden=True)
    replaced = [Item(Name((*UNNAMED, name), item.value.at), name) if item.value is calls[0] else item for item in items]
    return Relation(made.sql, (*made.columns[:-1], hidden)), replaced
