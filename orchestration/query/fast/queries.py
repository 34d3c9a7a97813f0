"""Queries: WITH, SELECT, FROM with joins, set operations, ORDER BY and LIMIT, in the form of syntax."""

from collections.abc import Callable

from orchestration.query.fast.expressions import expression, expressions, orders
from orchestration.query.fast.reader import Reader
from orchestration.query.fast.syntax import (
    Body,
    Combined,
    Derived,
    Expression,
    Item,
    Join,
    LateralView,
    Query,
    Select,
    Source,
    Star,
    Table,
    Values,
)
from orchestration.query.fast.telling import differs

SET_OPERATIONS = {"union": ("union", "union all"), "intersect": ("intersect", None), "except": ("except", None), "minus": ("except", None)}
JOINS = {
    "join": "inner",
    "inner join": "inner",
    "cross join": "cross",
    "left join": "left",
    "left outer join": "left",
    "right join": "right",
    "right outer join": "right",
    "full join": "full",
    "full outer join": "full",
    "left semi join": "left semi",
    "semi join": "left semi",
    "left anti join": "left anti",
    "anti join": "left anti",
}


def parsed(text: str) -> Query:
    """The whole text, which is one query; a semicolon may end it. AmissError where it is not understood."""
    reader = Reader(text, query)
    found = query(reader)
    reader.take(";")
    if reader.next.kind != "end":
        raise reader.lost()
    return found


def query(reader: Reader) -> Query:
    """With its CTEs before and its order behind."""
    at = reader.next.at
    ctes = _ctes(reader) if reader.take("with") else ()
    body = _combined(reader, ("union", "except", "minus"), lambda reader: _combined(reader, ("intersect",), _body))
    order = orders(reader) if reader.take("order", "by") else ()
    limit = reader.number() if reader.take("limit") and not reader.take("all") else None
    offset = reader.number() if reader.take("offset") else None
    return Query(ctes, body, order, limit, offset, at)


def _ctes(reader: Reader) -> tuple[tuple[str, tuple[str, ...], Query], ...]:
    if reader.comes("recursive") and reader.after().word not in {"as", "("}:
        raise differs("WITH RECURSIVE", reader.next.at)
    found: list[tuple[str, tuple[str, ...], Query]] = []
    while not found or reader.take(","):
        name, columns = reader.name(), _names(reader)
        reader.take("as")
        reader.need("(")
        found.append((name, columns, query(reader)))
        reader.need(")")
    return tuple(found)


def _names(reader: Reader) -> tuple[str, ...]:
    """In parentheses, if these come."""
    if not reader.take("("):
        return ()
    found = [reader.name()]
    while reader.take(","):
        found.append(reader.name())
    reader.need(")")
    return tuple(found)


def _combined(reader: Reader, words: tuple[str, ...], part: Callable[[Reader], Body]) -> Body:
    left = part(reader)
    while reader.next.word in words:
        sign = reader.move()
        distinct, every = SET_OPERATIONS[sign.word]
        kind = every if reader.take("all") else distinct
        reader.take("distinct")
        if kind is None:
            raise differs(f"{sign.text} ALL", sign.at)
        left = Combined(kind, left, part(reader), sign.at)
    return left


def _body(reader: Reader) -> Body:
    at = reader.next.at
    if reader.take("("):
        found = query(reader)
        reader.need(")")
        return found
    if reader.take("values"):
        return Values(_rows(reader), None, (), at)
    if reader.take("table"):
        source = Table(_parts(reader), None, at)
        return Select((Item(Star((), at), None),), source, None, None, False, None, False, at)
    return _select(reader)


def _select(reader: Reader) -> Select:
    at = reader.next.at
    reader.need("select")
    if reader.next.kind == "hint":  # how to join: no matter for the answer
        reader.move()
    is_distinct = reader.take("distinct") or (reader.take("all") and False)
    items = [_item(reader)]
    while reader.take(","):
        items.append(_item(reader))
    source = _sources(reader) if reader.take("from") else None
    where = expression(reader) if reader.take("where") else None
    groups, is_grouped_by_all = _groups(reader) if reader.take("group", "by") else (None, False)
    having = expression(reader) if reader.take("having") else None
    return Select(tuple(items), source, where, groups, is_grouped_by_all, having, is_distinct, at)


def _item(reader: Reader) -> Item:
    value = expression(reader)
    is_named = reader.take("as")
    if is_named and reader.comes("("):
        raise differs("several names for one expression", reader.next.at)
    return Item(value, reader.name() if is_named or reader.is_name() else None)


def _groups(reader: Reader) -> tuple[tuple[Expression, ...], bool]:
    if reader.comes("all") and reader.after().word not in {",", "."}:
        reader.move()
        return (), True
    for phrase in (("rollup",), ("cube",), ("grouping", "sets")):
        if reader.comes(*phrase, "("):
            raise differs(f"GROUP BY {' '.join(phrase).upper()}", reader.next.at, "write a UNION ALL of several GROUP BYs")
    found = expressions(reader)
    if reader.comes("with"):
        raise differs("GROUP BY .. WITH", reader.next.at, "write a UNION ALL of several GROUP BYs")
    return found, False


def _sources(reader: Reader) -> Source:
    """Joins, commas (which are cross joins), and LATERAL VIEWs behind them."""
    left = _joined(reader)
    while reader.comes(","):
        at = reader.move().at
        left = Join("cross", left, _joined(reader), None, (), at)
    while reader.comes("lateral", "view"):
        left = _lateral_view(reader, left)
    return left


def _joined(reader: Reader) -> Source:
    left = _source(reader)
    while kind := _join(reader):
        at = reader.next.at
        right = _source(reader)
        on = expression(reader) if kind != "cross" and reader.take("on") else None
        using = _names(reader) if on is None and kind != "cross" and reader.take("using") else ()
        if kind != "cross" and on is None and not using:
            raise differs("a join without a condition", at, "write ON, USING, or CROSS JOIN")
        left = Join(kind, left, right, on, using, at)
    return left


def _join(reader: Reader) -> str | None:
    """The kind of join that comes, gone over."""
    found = next((words for words in JOINS if reader.take(*words.split())), None)
    return JOINS[found] if found else None


def _source(reader: Reader) -> Source:
    at = reader.next.at
    if reader.comes("lateral"):
        raise differs("a lateral subquery", at, "use LATERAL VIEW explode(..)")
    if reader.take("values"):
        return Values(_rows(reader), *_alias(reader), at)
    if reader.take("("):
        if reader.comes("select") or reader.comes("with") or reader.comes("values") or reader.comes("(") or reader.comes("table"):
            found = query(reader)
            reader.need(")")
            return Derived(found, *_alias(reader), at)
        source = _sources(reader)
        reader.need(")")
        return source
    parts = _parts(reader)
    if reader.comes("("):
        raise differs(f"the table function {parts[-1]}", at)
    alias, columns = _alias(reader)
    table = Table(parts, None if columns else alias, at)
    if not columns:
        return table
    body = Select((Item(Star((), at), None),), table, None, None, False, None, False, at)
    return Derived(Query((), body, (), None, None, at), alias, columns, at)


def _parts(reader: Reader) -> tuple[str, ...]:
    parts = [reader.name()]
    while reader.take("."):
        parts.append(reader.name())
    return tuple(parts)


def _alias(reader: Reader) -> tuple[str | None, tuple[str, ...]]:
    """A name, and names of columns in parentheses behind it."""
    is_named = reader.take("as")
    if not is_named and not reader.is_name():
        return None, ()
    return reader.name(), _names(reader)


def _rows(reader: Reader) -> tuple[tuple[Expression, ...], ...]:
    rows: list[tuple[Expression, ...]] = []
    while not rows or reader.take(","):
        found = expressions(reader) if not reader.take("(") else None
        if found is None:
            found = expressions(reader)
            reader.need(")")
        rows.append(found)
        if len(found) != len(rows[0]):
            raise reader.lost("rows of VALUES should be equally long")
    return tuple(rows)


def _lateral_view(reader: Reader, source: Source) -> LateralView:
    at = reader.next.at
    reader.need("lateral", "view")
    if not reader.take("explode"):
        raise differs("this LATERAL VIEW", at, "use LATERAL VIEW explode(..) name AS column")
    reader.need("(")
    array = expression(reader)
    reader.need(")")
    alias = reader.name() if reader.is_name() else None
    if alias is not None and not reader.comes("as") and not reader.is_name():
        raise differs("this LATERAL VIEW", at, "name its column: LATERAL VIEW explode(..) name AS column")
    reader.take("as")
    return LateralView(source, array, alias, reader.name(), at)
