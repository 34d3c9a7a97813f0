"""What stands in FROM and WHERE, as relations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from orchestration.serving.sql.fast.calls import function_of, require_key
from orchestration.serving.sql.fast.errors import SqlError, place, unsupported
from orchestration.serving.sql.fast.functions import Value, become, called
from orchestration.serving.sql.fast.scope import Column, meaning
from orchestration.serving.sql.fast.signatures import OPERATORS
from orchestration.serving.sql.fast.types import common, inner

if TYPE_CHECKING:
    from orchestration.serving.sql.fast.queries import Maker

JOINS = {
    ("", ""): "",
    ("", "INNER"): "",
    ("", "CROSS"): "cross",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    **{(side, kind): kind.lower() for side in ("", "LEFT") for kind in ("SEMI", "ANTI")},
}


@dataclass(frozen=True)
class Relation:
    """`sql` is a SELECT whose columns are those of `columns`, by their `sql`."""

    sql: str
    columns: tuple[Column, ...]

    def called(self, alias: exp.TableAlias | None, node: exp.Expr, path: tuple[str, ...] = ()) -> "Relation":
        """With an alias before its columns, and other names for them."""
        names = [name.name for name in alias.columns] if alias else []
        path = (alias.name,) if alias and alias.name else path
        if names and len(names) != len(self.columns):
            raise SqlError(f"{len(names)} names for {len(self.columns)} columns", node)
        listed = zip(names or [column.name for column in self.columns], self.columns, strict=True)
        return Relation(self.sql, tuple(Column(name, column.type, column.sql, path) for name, column in listed))


def values(maker: "Maker", node: exp.Values) -> Relation:
    scope = maker.scope(())
    rows = [[meaning(each, scope) for each in (row.expressions if isinstance(row, exp.Tuple) else [row])] for row in node.expressions]
    kinds = [common(value.type for value in column) for column in zip(*rows, strict=False)]
    if None in kinds or len({len(row) for row in rows}) > 1:
        raise unsupported("rows of VALUES that differ in their types or lengths", node)
    columns = tuple(Column(f"col{number}", kind or "", maker.names.new()) for number, kind in enumerate(kinds, 1))
    alike = [[become(value, column.type) or value for value, column in zip(row, columns, strict=True)] for row in rows]
    listed = ", ".join(f"({', '.join(value.sql for value in row)})" for row in alike)
    made = Relation(f"select * from (values {listed}) as v({', '.join(column.sql for column in columns)})", columns)
    return made.called(node.args.get("alias"), node)


def _read(maker: "Maker", node: exp.Expr) -> Relation:
    match node:
        case exp.Table():
            name = node.name.lower()
            if not node.db and name in maker.ctes:
                cte, seen = maker.ctes[name]
                made = replace(maker, ctes=seen, around=()).query(cte.this).called(cte.args["alias"], cte)
                return made.called(node.args.get("alias"), node, path=(node.name,))
            rows, listed = maker.tables(node)
            columns = tuple(Column(name, kind, maker.names.new()) for name, kind in listed)
            reading = ", ".join(f'"{column.name.replace(chr(34), chr(34) * 2)}" as {column.sql}' for column in columns)
            path = tuple(part.name for part in node.parts)
            return Relation(f"select {reading} from ({rows})", columns).called(node.args.get("alias"), node, path)
        case exp.Values():
            return values(maker, node)
        case exp.Subquery():
            return maker.query(node).called(node.args.get("alias"), node)
    raise unsupported("this in FROM", node)


def _joined(maker: "Maker", left: Relation, join: exp.Join) -> Relation:
    kind = JOINS.get((join.side.upper(), join.kind.upper()))
    on, using = join.args.get("on"), join.args.get("using") or []
    if kind is None or (kind != "cross" and not on and not using):
        raise unsupported("a join without a condition", join, "write ON, USING, or CROSS JOIN")
    right = _read(maker, join.this)
    columns = left.columns if kind in {"semi", "anti"} else (*left.columns, *right.columns)
    if using:
        return _using(maker, kind, left, right, using)
    where = condition(meaning(on, maker.scope((*left.columns, *right.columns))), "ON") if on else ""
    return Relation(f"select * from ({left.sql}) {kind} join ({right.sql}){f' on {where}' if on else ''}", columns)


def _using(maker: "Maker", kind: str, left: Relation, right: Relation, names: Sequence[exp.Identifier]) -> Relation:
    """Each key is one column before the others; those of both sides are found only with their table before them."""
    keys = [[maker.scope(side.columns).column(exp.column(name)) for side in (left, right)] for name in names]
    for value in (value for both in keys for value in both):
        require_key(value)
    condition = " and ".join(called(OPERATORS, "=", both, names[0]).sql for both in keys)
    sql = f"select * from ({left.sql}) {kind} join ({right.sql}) on {condition}"
    if kind in {"semi", "anti"}:
        return Relation(sql, left.columns)
    of_key = {value.sql for both in keys for value in both}
    hidden = [replace(column, is_hidden=column.sql in of_key) for column in (*left.columns, *right.columns)]
    place = 1 if kind == "right" else 0
    own = {column.sql: column for column in (*left.columns, *right.columns)}
    shown = [replace(own[both[place].sql], path=()) for both in keys]
    if kind == "full":
        shown = [replace(column, sql=maker.names.new()) for column in shown]
        listed = ", ".join(f"coalesce({one.sql}, {other.sql}) as {new.sql}" for (one, other), new in zip(keys, shown, strict=True))
        sql = f"select *, {listed} from ({sql})"
    return Relation(sql, (*shown, *hidden))


def exploded(maker: "Maker", rows: Relation, call: exp.Expr, name: str, path: tuple[str, ...], *, is_hidden: bool = False) -> Relation:
    """A row for each element; none for an array that is empty or null."""
    if function_of(call) != "explode" or len(call.expressions) != 1:
        raise unsupported("this LATERAL VIEW", call, "use LATERAL VIEW explode(..) name AS column")
    array = meaning(call.expressions[0], maker.scope(rows.columns))
    if not array.type.startswith("array"):
        raise unsupported(f"explode of {array.type}", call)
    column = Column(name, inner(array.type)[0], maker.names.new(), path, is_hidden)
    return Relation(f"select *, unnest({array.sql}) as {column.sql} from ({rows.sql})", (*rows.columns, column))


def rows_of(maker: "Maker", node: exp.Select) -> Relation:
    """FROM and WHERE."""
    rows = _read(maker, node.args["from_"].this) if node.args.get("from_") else Relation("select 1 as c0", ())
    has_comma = False
    for join in node.args.get("joins") or []:
        if has_comma and join.kind != "CROSS":  # for Spark it would join with what is behind the comma only
            raise unsupported("a join behind a comma", join, "write CROSS JOIN for the comma")
        rows = _joined(maker, rows, join)
        has_comma = has_comma or not maker.source[: place(join.this) or 0].rstrip("( \n\t").lower().endswith("join")
    for view in node.args.get("laterals") or []:
        alias = view.args.get("alias")
        if not view.args.get("view") or not alias or len(alias.columns) != 1:
            raise unsupported("this LATERAL VIEW", view, "name its column: LATERAL VIEW explode(..) name AS column")
        rows = exploded(maker, rows, view.this, alias.columns[0].name, (alias.name,) if alias.name else ())
    where = node.args.get("where")
    parts = [] if where is None else [*where.this.flatten()] if isinstance(where.this, exp.And) else [where.this]
    conditions = [_filter(maker, rows, part) for part in parts]
    return replace(rows, sql=f"select * from ({rows.sql}) where {' and '.join(conditions)}") if conditions else rows


def _filter(maker: "Maker", rows: Relation, node: exp.Expr) -> str:
    """A condition. IN (SELECT ..) may stand between ANDs."""
    among = node.unnest()
    is_not = isinstance(among, exp.Not)
    among = among.this.unnest() if is_not else among
    scope = maker.scope(rows.columns)
    if not isinstance(among, exp.In) or not among.args.get("query"):
        return condition(meaning(node, scope), "WHERE")
    inside = replace(maker, around=rows.columns).query(among.args["query"].unnest())
    if len(inside.columns) != 1:
        raise SqlError(f"the query behind IN gives {len(inside.columns)} columns", among)
    both = [meaning(among.this, scope), Value(inside.columns[0].sql, inside.columns[0].type, None, among)]
    kind = common(value.type for value in both) or "?"
    left, right = (become(value, kind) for value in both)
    if not left or not right:
        raise unsupported(f"{both[0].type} and {both[1].type} together", among, "cast one of them")
    require_key(left)
    return f"{left.sql} {'not ' if is_not else ''}in (select {right.sql} from ({inside.sql}))"


def condition(value: Value, place: str) -> str:
    if value.type != "boolean":
        raise unsupported(f"{value.type} in {place}", value.node, "write a condition")
    return value.sql
