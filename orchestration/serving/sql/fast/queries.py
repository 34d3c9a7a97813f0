"""Whole queries in DuckDB's SQL: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT, ORDER BY, LIMIT, in the order of Spark.

No name of who asks comes into the SQL: columns are c1, c2, .., tables t1, t2, .. So no name can mean something else there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from orchestration.serving.sql.fast.calls import CONVERSIONS, function_of, has_aggregate, is_aggregate, ordered, require_key
from orchestration.serving.sql.fast.errors import SqlError, unknown, unsupported
from orchestration.serving.sql.fast.functions import Value, become
from orchestration.serving.sql.fast.scope import Column, Scope, meaning
from orchestration.serving.sql.fast.sources import Relation, condition, exploded, rows_of, values
from orchestration.serving.sql.fast.types import common

SETS: dict[type[exp.Expr], str] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}
UNNAMED = ("explode",)
"""Before the name of what explode in SELECT gives."""
Tables = Callable[[exp.Table], tuple[str, Sequence[tuple[str, str]]]]
"""SQL that reads a table, and its columns with their types; SqlError where there is no such table."""


Ctes = Mapping[str, tuple[exp.CTE, "Ctes"]]
"""By their names in lower case, each with those that it can see itself."""


@dataclass
class Names:
    """Of columns, as many as one query may have."""

    most: int
    count: int = field(default=0)

    def new(self) -> str:
        """Another one."""
        self.count += 1
        if self.count > self.most:
            raise SqlError("the query is too large; split it")
        return f"c{self.count}"


@dataclass(frozen=True)
class Maker:
    """Of relations, at a place that sees these CTEs, and around which there are these columns. `is_named`: names of columns matter."""

    source: str
    tables: Tables
    names: Names
    ctes: Ctes = field(default_factory=dict)
    around: Sequence[Column] = ()
    is_named: bool = True

    def query(self, node: exp.Expr) -> Relation:
        """With its CTEs, in its order."""
        maker = replace(self, ctes=self._with(node))
        match node:
            case exp.Select():
                return maker._select(node)
            case exp.Subquery():
                made = maker.query(node.this)
            case exp.Values():
                made = values(maker, node)
            case exp.SetOperation():
                made = maker._combined(node)
            case _:
                raise unsupported("this in parentheses", node)
        made = replace(made, columns=tuple(replace(column, path=()) for column in made.columns))
        scope = maker.scope(made.columns, aliases=[(column.name, Value(column.sql, column.type, column.name)) for column in made.columns])
        return replace(made, sql=f"{made.sql}{maker._tail(node, scope, dict[str, str]())}") if _is_cut(node) else made

    def _with(self, node: exp.Expr) -> Ctes:
        ctes = dict(self.ctes)
        with_ = node.args.get("with_")
        names = [cte.alias.lower() for cte in with_.expressions] if with_ else []
        for name, cte in zip(names, with_.expressions if with_ else (), strict=True):
            if names.count(name) > 1:
                raise SqlError(f"WITH has two queries of the name {name}", cte)
            ctes[name] = (cte, dict(ctes))
        return ctes

    def scope(self, columns: Sequence[Column], **changes: object) -> Scope:
        return replace(Scope(self.source, columns, self._scalar, self.around), **changes)  # type: ignore[arg-type]

    def _scalar(self, node: exp.Expr, around: Sequence[Column]) -> Value:
        """DuckDB ends with an error where it finds several rows, as Spark does."""
        relation = replace(self, around=around).query(node)
        if len(relation.columns) != 1:
            raise SqlError(f"a query for one value gives {len(relation.columns)} columns", node)
        return Value(f"({relation.sql})", relation.columns[0].type, "scalarsubquery()", node)

    def _combined(self, node: exp.Expr) -> Relation:
        """UNION [ALL], INTERSECT, EXCEPT: in common types, with the names of the left."""
        word = SETS[type(node)]
        if not node.args.get("distinct") and word != "union":
            raise unsupported(f"{word.upper()} ALL", node)
        sides = [self.query(node.this), replace(self, is_named=False).query(node.expression)]
        counts = [len(side.columns) for side in sides]
        if counts[0] != counts[1]:
            raise SqlError(f"{counts[0]} columns on the left of {word.upper()}, {counts[1]} on its right", node)
        kinds = [common((one.type, other.type)) for one, other in zip(sides[0].columns, sides[1].columns, strict=True)]
        if None in kinds:
            place = kinds.index(None)
            raise unsupported(f"{sides[0].columns[place].type} above {sides[1].columns[place].type}", node, "cast one of them")
        columns = tuple(Column(column.name, kind or "", self.names.new()) for column, kind in zip(sides[0].columns, kinds, strict=True))
        is_all = not node.args.get("distinct")
        for column in columns if not is_all else ():
            require_key(Value(column.sql, column.type, None, node))
        left, right = (f"(select {_as(side.columns, columns)} from ({side.sql}))" for side in sides)
        return Relation(f"select * from ({left} {word}{' all' if is_all else ''} {right})", columns)

    def _select(self, node: exp.Select) -> Relation:
        rows = rows_of(self, node)
        rows, items = self._exploding(rows, node.expressions)
        group, having, order = (node.args.get(name) for name in ("group", "having", "order"))
        orders = [term.this for term in order.expressions] if order else []
        is_grouped = bool(group or having or any(map(has_aggregate, [*items, *orders])))
        scope = self.scope(rows.columns)
        keys = self._keys(group, items, scope) if is_grouped else []
        if is_grouped and not keys and not any(map(has_aggregate, [*items, *orders])):
            raise unsupported("HAVING without GROUP BY and aggregates", node, "use WHERE")
        full = replace(scope, has_aggregates=True, has_windows=True)
        named = self._items(items, full, is_grouped=is_grouped)
        aliased = replace(full, aliases=named, is_alias_first=True)
        if is_grouped:
            known = {key.sql for key in keys}
            before = replace(full, aliases=named)
            for part in [*items, *([having.this] if having else []), *orders]:
                _require_grouped(part, known, aliased if part not in items else before, scope)
        columns = tuple(Column(name, value.type, self.names.new()) for name, value in named)
        is_distinct = bool(node.args.get("distinct"))
        for _, value in named if is_distinct else ():
            require_key(value)
        listed = ", ".join(f"{value.sql} as {column.sql}" for (_, value), column in zip(named, columns, strict=True))
        sql = f"select {'distinct ' if is_distinct else ''}{listed} from ({rows.sql})"
        sql += f" group by {', '.join(dict.fromkeys(key.sql for key in keys))}" if keys else ""
        sql += f" having {condition(meaning(having.this, replace(aliased, has_windows=False)), 'HAVING')}" if having else ""
        places = {value.sql: column.sql for (_, value), column in zip(named, columns, strict=True)}
        return Relation(sql + self._tail(node, aliased, places, is_distinct=is_distinct), columns)

    def _keys(self, group: exp.Group | None, items: Sequence[exp.Expr], scope: Scope) -> list[Value]:
        nodes = group.expressions if group else []
        if group and group.args.get("all"):
            nodes = [item.unalias() for item in items if not has_aggregate(item)]
        keys = [_grouped_by(each, items, scope) for each in nodes]
        for key in keys:
            require_key(key)
        return keys

    def _exploding(self, rows: Relation, items: Sequence[exp.Expr]) -> tuple[Relation, Sequence[exp.Expr]]:
        """explode as an item of SELECT: a row for each element, and the item is the element."""
        calls = [item for item in items if function_of(item.unalias()) == "explode"]
        if not calls:
            return rows, items
        if len(calls) > 1 or any(map(has_aggregate, items)):
            raise unsupported("this explode", calls[0], "use LATERAL VIEW explode(..) name AS column")
        name = calls[0].alias or "col"
        made = exploded(self, rows, calls[0].unalias(), name, UNNAMED, is_hidden=True)
        return made, [exp.column(exp.to_identifier(name), exp.to_identifier(UNNAMED[0])) if item is calls[0] else item for item in items]

    def _items(self, items: Sequence[exp.Expr], scope: Scope, *, is_grouped: bool) -> list[tuple[str, Value]]:
        """Of SELECT. An alias has a meaning for the items behind it, where no column has that name."""
        named: list[tuple[str, Value]] = []
        for item in items:
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                if is_grouped:
                    raise SqlError("* cannot stand beside GROUP BY or aggregates; name the columns", item)
                for column in _every(item, star, scope):
                    if "?" in column.type:
                        raise unsupported(f"the type of column {column.name}", item)
                named += [(column.name, Value(column.sql, column.type, column.name, item)) for column in _every(item, star, scope)]
            else:
                value = meaning(item.unalias(), replace(scope, aliases=list(named)))
                named.append((item.alias or (_column_name(item, value) if self.is_named else ""), value))
        return named

    def _tail(self, node: exp.Expr, scope: Scope, places: Mapping[str, str], *, is_distinct: bool = False) -> str:
        """ORDER BY, LIMIT, OFFSET. `places`: columns of SELECT by what they hold."""
        terms = []
        for term in node.args["order"].expressions if node.args.get("order") else ():
            value = _ordinal(term.this, scope) or meaning(term.this, scope)
            if is_distinct and value.sql not in places:
                raise unsupported("ORDER BY something else than SELECT DISTINCT gives", term, "order by one of its columns")
            terms.append(ordered(term, value, places.get(value.sql, value.sql)))
        sql = f" order by {', '.join(terms)}" if terms else ""
        for word in ("limit", "offset"):
            count = node.args[word].expression if node.args.get(word) else None
            if count is not None and not (isinstance(count, exp.Var) and count.name.upper() == "ALL"):
                if not isinstance(count, exp.Literal) or not count.name.isdigit():
                    raise SqlError("a whole number was expected", count)
                sql += f" {word} {int(count.name)}"
        return sql


def _is_cut(node: exp.Expr) -> bool:
    return any(node.args.get(word) for word in ("order", "limit", "offset"))


def _as(columns: Sequence[Column], wanted: Sequence[Column]) -> str:
    pairs = [(become(Value(column.sql, column.type, None), new.type), new) for column, new in zip(columns, wanted, strict=True)]
    return ", ".join(f"{value.sql} as {new.sql}" for value, new in pairs if value)


def _grouped_by(node: exp.Expr, items: Sequence[exp.Expr], scope: Scope) -> Value:
    """Of GROUP BY: a number of a column of SELECT, a column, an alias where no column has that name, or any other expression."""
    if isinstance(node, exp.Literal):
        has_star = any(isinstance(item, exp.Star) or isinstance(item.this, exp.Star) for item in items)
        if not node.name.isdigit() or not 1 <= int(node.name) <= len(items) or has_star:
            raise SqlError(f"GROUP BY takes names, or numbers of columns from 1 to {len(items)}", node)
        return meaning(items[int(node.name) - 1].unalias(), scope)
    aliased = [item.this for item in items if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower()]
    is_column = isinstance(node, exp.Column) and not any(column.is_meant([part.name for part in node.parts]) for column in scope.columns)
    return meaning(aliased[0] if is_column and len(aliased) == 1 and not node.text("table") else node, scope)


def _require_grouped(node: exp.Expr, keys: set[str], scope: Scope, rows: Scope) -> None:
    """SqlError where it holds a column that is neither grouped by nor in an aggregate."""
    if is_aggregate(node) and not (isinstance(node.parent, exp.Window) and node.arg_key == "this"):
        return
    if isinstance(node, exp.Query | exp.Literal | exp.Interval | exp.DataType):
        return
    if isinstance(node, exp.Column):
        if scope.alias(node) and (scope.is_alias_first or not any(each.is_meant([node.name]) for each in scope.columns)):
            return
        if rows.column(node).sql not in keys:
            raise SqlError(f"{'.'.join(part.name for part in node.parts)} is neither in GROUP BY nor in an aggregate", node)
        return
    if keys and isinstance(node, exp.Condition) and not node.find(exp.Window) and not has_aggregate(node):
        try:
            if meaning(node, scope).sql in keys:
                return
        except SqlError:
            pass  # its parts will say so
    skipped = 1 if function_of(node) in {"timestampdiff", "datediff"} and len(node.expressions) == 3 else 0
    for child in [*node.iter_expressions()][skipped:]:
        _require_grouped(child, keys, scope, rows)


def _every(node: exp.Expr, star: exp.Star, scope: Scope) -> list[Column]:
    """What `*` or `table.*` stands for."""
    wanted = [part.name.lower() for part in node.parts[:-1]] if isinstance(node, exp.Column) else []
    columns = [column for column in scope.columns if not column.is_hidden]
    if wanted:
        columns = [column for column in scope.columns if [part.lower() for part in column.path[-len(wanted) :]] == wanted]
        if any(column.is_hidden for column in columns):
            raise unsupported(f"{'.'.join(wanted)}.* behind USING", node, "name the columns")
        if not columns:
            raise unknown("table", ".".join(wanted), {".".join(column.path) for column in scope.columns if column.path}, node)
    left_out = {each.name.lower(): each for each in star.args.get("except_") or []}
    for name in left_out.keys() - {column.name.lower() for column in columns}:
        raise unknown("column", left_out[name].name, [column.name for column in columns], left_out[name])
    return [column for column in columns if column.name.lower() not in left_out]


def _column_name(item: exp.Expr, value: Value) -> str:
    """As Spark names a column without an alias; of a cast column it is that of the column."""
    is_cast = isinstance(item, exp.TryCast) or function_of(item) in CONVERSIONS
    inside = item.this if isinstance(item, exp.TryCast) else next(iter(item.expressions), None)
    if is_cast and isinstance(inside, exp.Column):
        return str(inside.name)
    if value.name is None:
        raise SqlError("how Spark would name this column is not known here; write AS and a name behind it", item)
    return value.name


def _ordinal(node: exp.Expr, scope: Scope) -> Value | None:
    """A column of SELECT by its number."""
    if not isinstance(node, exp.Literal):
        return None
    if not node.name.isdigit() or not 1 <= int(node.name) <= len(scope.aliases):
        raise SqlError(f"ORDER BY takes names, or numbers of columns from 1 to {len(scope.aliases)}", node)
    return scope.aliases[int(node.name) - 1][1]
