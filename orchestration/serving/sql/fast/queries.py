"""Whole queries in DuckDB's SQL, in the order of Spark: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT, ORDER BY, LIMIT.

No name of who asks comes into the SQL: columns are c1, c2, .., tables t1, t2, .. So no name can mean something else there. DuckDB says
itself what is neither grouped by nor in an aggregate (see engine).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from orchestration.serving.sql.fast.errors import SqlError, unsupported
from orchestration.serving.sql.fast.expressions import condition, function_of, has_aggregate, key, meaning, ordered
from orchestration.serving.sql.fast.functions import Value, become, called
from orchestration.serving.sql.fast.relations import Names, Relation, column_name, every, grouped_by, listed, ordinal
from orchestration.serving.sql.fast.scope import Scope
from orchestration.serving.sql.fast.signatures import OPERATORS
from orchestration.serving.sql.fast.types import common, inner
from orchestration.storage.duckdb_view import quoted

SETS: dict[type[exp.Expr], str] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}
JOINS = {
    **dict.fromkeys((("", ""), ("", "INNER")), ""),
    ("", "CROSS"): "cross",
    **{(side, kind): side.lower() for side in ("LEFT", "RIGHT", "FULL") for kind in ("", "OUTER")},
    **{(side, kind): kind.lower() for side in ("", "LEFT") for kind in ("SEMI", "ANTI")},
}
UNNAMED = ("explode",)
"""Before the name of what explode in SELECT gives."""
Ctes = Mapping[str, tuple[exp.CTE, "Ctes"]]
"""By their names in lower case, each with those that it can see itself."""
Tables = Callable[[exp.Table], tuple[str, Sequence[tuple[str, str]]]]
"""SQL that reads a table, and its columns with their types; SqlError where there is no such table."""


@dataclass(frozen=True)
class Maker:
    """Of relations, at a place that sees these CTEs, and around which there are these columns. `is_named`: names of columns matter."""

    source: str
    tables: Tables
    names: Names
    ctes: Ctes = field(default_factory=dict)
    around: Sequence[Value] = ()
    is_named: bool = True

    def query(self, node: exp.Expr) -> Relation:
        """With its CTEs, in its order."""
        ctes, with_ = dict(self.ctes), node.args.get("with_")
        names: list[str] = []
        for cte in with_.expressions if with_ else ():
            name = cte.alias.lower()
            if name in names:
                raise SqlError(f"WITH has two queries of the name {name}", cte)
            names.append(name)
            ctes[name] = (cte, dict(ctes))
        maker = replace(self, ctes=ctes)
        match node:
            case exp.Select():
                return maker._select(node)
            case exp.Subquery():
                made = maker.query(node.this)
            case exp.Values():
                made = maker._values(node)
            case exp.SetOperation():
                made = maker._combined(node)
            case _:
                raise unsupported("this in parentheses", node)
        columns = tuple(replace(column, path=()) for column in made.columns)
        return Relation(made.sql + maker._tail(node, replace(maker._scope(columns), aliases=columns), {}), columns)

    def _scope(self, columns: Sequence[Value]) -> Scope:
        return Scope(self.source, columns, self._scalar, self.names.used, self.around)

    def _one_column(self, node: exp.Expr, around: Sequence[Value], what: str) -> Relation:
        relation = replace(self, around=around).query(node)
        if len(relation.columns) != 1:
            raise SqlError(f"{what} gives {len(relation.columns)} columns", node)
        return relation

    def _scalar(self, node: exp.Expr, around: Sequence[Value]) -> Value:
        """DuckDB ends with an error where it finds several rows, as Spark does."""
        relation = self._one_column(node, around, "a query for one value")
        return Value(f"({relation.sql})", relation.columns[0].type, "scalarsubquery()", node)

    def _combined(self, node: exp.Expr) -> Relation:
        """UNION [ALL], INTERSECT, EXCEPT: in common types, with the names of the left."""
        word, is_all = SETS[type(node)], not node.args.get("distinct")
        if is_all and word != "union":
            raise unsupported(f"{word.upper()} ALL", node)
        sides = [self.query(node.this), replace(self, is_named=False).query(node.expression)]
        if len(sides[0].columns) != len(sides[1].columns):
            raise SqlError(f"{len(sides[0].columns)} columns on the left of {word.upper()}, {len(sides[1].columns)} on its right", node)
        columns = []
        for one, other in zip(sides[0].columns, sides[1].columns, strict=True):
            if (kind := common((one.type, other.type))) is None:
                raise unsupported(f"{one.type} above {other.type}", node, "cast one of them")
            columns.append(Value(self.names.new(), kind, one.name, node))
        for column in columns if not is_all else ():
            key(column)
        left, right = (f"(select {listed(side.columns, columns)} from ({side.sql}))" for side in sides)
        return Relation(f"select * from ({left} {word}{' all' if is_all else ''} {right})", tuple(columns))

    def _values(self, node: exp.Values) -> Relation:
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
        made = [[meaning(each, self._scope(())) for each in row] for row in rows]
        kinds = [common(value.type for value in column) for column in zip(*made, strict=False)]
        if None in kinds or len({len(row) for row in rows}) > 1:
            raise unsupported("rows of VALUES that differ in their types or lengths", node)
        columns = tuple(Value(self.names.new(), kind or "", f"col{number}") for number, kind in enumerate(kinds, 1))
        alike = [[become(value, column.type) or value for value, column in zip(row, columns, strict=True)] for row in made]
        listed = ", ".join(f"({', '.join(value.sql for value in row)})" for row in alike)
        sql = f"select * from (values {listed}) as v({', '.join(column.sql for column in columns)})"
        return Relation(sql, columns).called(node.args.get("alias"), node)

    def _read(self, node: exp.Expr) -> Relation:
        alias = node.args.get("alias")
        match node:
            case exp.Table() if not node.db and node.name.lower() in self.ctes:
                cte, seen = self.ctes[node.name.lower()]
                made = replace(self, ctes=seen, around=()).query(cte.this).called(cte.args["alias"], cte)
                return made.called(alias, node, (node.name,))
            case exp.Table():
                rows, listed = self.tables(node)
                columns = tuple(Value(self.names.new(), kind, name) for name, kind in listed)
                names = ", ".join(f"{quoted(column.name or '')} as {column.sql}" for column in columns)
                return Relation(f"select {names} from ({rows})", columns).called(alias, node, tuple(part.name for part in node.parts))
            case exp.Values():
                return self._values(node)
            case exp.Subquery():
                return self.query(node).called(alias, node)
        raise unsupported("this in FROM", node)

    def _joined(self, left: Relation, join: exp.Join) -> Relation:
        kind, on, using = JOINS.get((join.side.upper(), join.kind.upper())), join.args.get("on"), join.args.get("using") or []
        if kind is None or (kind != "cross" and not on and not using):
            raise unsupported("a join without a condition", join, "write ON, USING, or CROSS JOIN")
        right = self._read(join.this)
        both, joined = (*left.columns, *right.columns), f"select * from ({left.sql}) {kind} join ({right.sql})"
        columns = left.columns if kind in {"semi", "anti"} else both
        if not using:
            return Relation(joined + (f" on {condition(meaning(on, self._scope(both)), 'ON')}" if on else ""), columns)
        # Each key is one column before the others; those of both sides are found only with their table before them.
        keys = [[key(self._scope(side.columns).column(exp.column(name))) for side in (left, right)] for name in using]
        joined += f" on {' and '.join(called(OPERATORS, '=', pair, join).sql for pair in keys)}"
        if kind in {"semi", "anti"}:
            return Relation(joined, columns)
        of_keys, named = {value.sql for pair in keys for value in pair}, {column.sql: column.name for column in both}
        hidden = [replace(column, is_hidden=column.is_hidden or column.sql in of_keys) for column in both]
        shown = [replace(pair[kind == "right"], name=named[pair[kind == "right"].sql]) for pair in keys]
        if kind == "full":
            shown = [replace(column, sql=self.names.new()) for column in shown]
            merged = [f"coalesce({one.sql}, {other.sql}) as {new.sql}" for (one, other), new in zip(keys, shown, strict=True)]
            joined = f"select *, {', '.join(merged)} from ({joined})"
        return Relation(joined, (*shown, *hidden))

    def _exploded(self, rows: Relation, call: exp.Expr, name: str, path: tuple[str, ...]) -> Relation:
        """A row for each element; none for an array that is empty or null."""
        if function_of(call) != "explode" or len(call.expressions) != 1:
            raise unsupported("this LATERAL VIEW", call, "use LATERAL VIEW explode(..) name AS column")
        array = meaning(call.expressions[0], self._scope(rows.columns))
        if not array.type.startswith("array"):
            raise unsupported(f"explode of {array.type}", call)
        column = Value(self.names.new(), inner(array.type)[0], name, path=path, is_hidden=path == UNNAMED)
        return Relation(f"select *, unnest({array.sql}) as {column.sql} from ({rows.sql})", (*rows.columns, column))

    def _rows(self, node: exp.Select) -> Relation:
        """FROM and WHERE."""
        rows = self._read(node.args["from_"].this) if node.args.get("from_") else Relation("select 1 as c0", ())
        has_comma = False
        for join in node.args.get("joins") or []:
            if has_comma and join.kind != "CROSS":  # for Spark it would join with what is behind the comma only
                raise unsupported("a join behind a comma", join, "write CROSS JOIN for the comma")
            rows = self._joined(rows, join)
            start = min((part.meta["start"] for part in join.this.walk() if "start" in part.meta), default=0)
            has_comma = has_comma or not self.source[:start].rstrip("( \n\t").lower().endswith("join")
        for view in node.args.get("laterals") or []:
            alias = view.args.get("alias")
            if not view.args.get("view") or not alias or len(alias.columns) != 1:
                raise unsupported("this LATERAL VIEW", view, "name its column: LATERAL VIEW explode(..) name AS column")
            rows = self._exploded(rows, view.this, alias.columns[0].name, (alias.name,) if alias.name else ())
        where = node.args.get("where")
        parts = [] if where is None else [*where.this.flatten()] if isinstance(where.this, exp.And) else [where.this]
        conditions = " and ".join(self._condition(part, rows.columns) for part in parts)
        return replace(rows, sql=f"select * from ({rows.sql}) where {conditions}") if conditions else rows

    def _condition(self, node: exp.Expr, columns: Sequence[Value]) -> str:
        """Of WHERE. IN (SELECT ..) may stand between ANDs."""
        is_not = isinstance(node.unnest(), exp.Not)
        among = node.unnest().this.unnest() if is_not else node.unnest()
        if not isinstance(among, exp.In) or not among.args.get("query"):
            return condition(meaning(node, self._scope(columns)), "WHERE")
        inside = self._one_column(among.args["query"].unnest(), columns, "the query behind IN")
        one, other = meaning(among.this, self._scope(columns)), inside.columns[0]
        kind = common((one.type, other.type)) or "?"
        left, right = become(one, kind), become(other, kind)
        if not left or not right:
            raise unsupported(f"{one.type} and {other.type} together", among, "cast one of them")
        return f"{key(left).sql} {'not ' if is_not else ''}in (select {right.sql} from ({inside.sql}))"

    def _select(self, node: exp.Select) -> Relation:
        rows, items = self._exploding(self._rows(node), node)
        group, having = node.args.get("group"), node.args.get("having")
        scope = self._scope(rows.columns)
        named = self._items(items, scope)
        columns = tuple(Value(self.names.new(), value.type, value.name) for value in named)
        is_distinct = bool(node.args.get("distinct"))
        for value in named if is_distinct else ():
            key(value)
        listed = ", ".join(f"{value.sql} as {column.sql}" for value, column in zip(named, columns, strict=True))
        sql = f"select {'distinct ' if is_distinct else ''}{listed} from ({rows.sql})"
        if group:
            nodes = [item.unalias() for item in items if not has_aggregate(item)] if group.args.get("all") else group.expressions
            keys = dict.fromkeys(key(grouped_by(each, items, scope)).sql for each in nodes)
            sql += f" group by {', '.join(keys)}" if keys else ""
        aliased = replace(scope, aliases=named, is_alias_first=True)
        if having and not group and not any(map(has_aggregate, (*items, having))):
            raise unsupported("HAVING without GROUP BY and aggregates", node, "use WHERE")
        sql += f" having {condition(meaning(having.this, aliased), 'HAVING')}" if having else ""
        places = {value.sql: column.sql for value, column in zip(named, columns, strict=True)}
        return Relation(sql + self._tail(node, aliased, places, is_distinct=is_distinct), columns)

    def _exploding(self, rows: Relation, node: exp.Select) -> tuple[Relation, Sequence[exp.Expr]]:
        """explode as an item of SELECT: a row for each element, and the item is the element."""
        calls = [item for item in node.expressions if function_of(item.unalias()) == "explode"]
        if not calls:
            return rows, node.expressions
        if len(calls) > 1 or node.args.get("group") or any(map(has_aggregate, node.expressions)):
            raise unsupported("this explode", calls[0], "use LATERAL VIEW explode(..) name AS column")
        name = calls[0].alias or "col"
        element = exp.column(exp.to_identifier(name), exp.to_identifier(UNNAMED[0]))
        rows = self._exploded(rows, calls[0].unalias(), name, UNNAMED)
        return rows, [element if item is calls[0] else item for item in node.expressions]

    def _items(self, items: Sequence[exp.Expr], scope: Scope) -> list[Value]:
        """Of SELECT. An alias has a meaning for the items behind it, where no column has that name."""
        named: list[Value] = []
        for item in items:
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                for column in every(item, star, scope):
                    if "?" in column.type:
                        raise unsupported(f"the type of column {column.name}", item)
                    self.names.used.setdefault(column.sql, item)
                named += [Value(column.sql, column.type, column.name, item) for column in every(item, star, scope)]
            else:
                value = meaning(item.unalias(), replace(scope, aliases=list(named)))
                named.append(replace(value, name=item.alias or (column_name(item, value) if self.is_named else "")))
        return named

    def _tail(self, node: exp.Expr, scope: Scope, places: Mapping[str, str], *, is_distinct: bool = False) -> str:
        """ORDER BY, LIMIT, OFFSET. `places`: columns of SELECT by what they hold."""
        terms = []
        for term in node.args["order"].expressions if node.args.get("order") else ():
            is_number = isinstance(term.this, exp.Literal)
            value = scope.aliases[ordinal(term.this, "ORDER", len(scope.aliases))] if is_number else meaning(term.this, scope)
            if is_distinct and value.sql not in places:
                raise unsupported("ORDER BY something else than SELECT DISTINCT gives", term, "order by one of its columns")
            terms.append(ordered(term, value, places.get(value.sql, "")))
        sql = f" order by {', '.join(terms)}" if terms else ""
        for word in ("limit", "offset"):
            count = node.args[word].expression if node.args.get(word) else None
            if count is not None and not (isinstance(count, exp.Var) and count.name.upper() == "ALL"):
                if not isinstance(count, exp.Literal) or not count.name.isdigit():
                    raise SqlError("a whole number was expected", count)
                sql += f" {word} {int(count.name)}"
        return sql
