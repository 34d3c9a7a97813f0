"""What a query is made of: rows with named columns, and what names and numbers of columns mean in its clauses."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from orchestration.serving.sql.fast.errors import TOO_LARGE, SqlError, unknown, unsupported
from orchestration.serving.sql.fast.expressions import function_of, meaning
from orchestration.serving.sql.fast.functions import Value, become
from orchestration.serving.sql.fast.scope import Scope, is_meant
from orchestration.serving.sql.fast.signatures import CASTS, signatures


@dataclass
class Names:
    """Of columns, as many as one query may have. `used`: where in the query each was meant first."""

    most: int
    count: int = 0
    used: dict[str, exp.Expr] = field(default_factory=dict)

    def new(self) -> str:
        """Another one."""
        self.count += 1
        if self.count > self.most:
            raise SqlError(TOO_LARGE)
        return f"c{self.count}"


@dataclass(frozen=True)
class Relation:
    """`sql` is a SELECT whose columns are those of `columns`, by their `sql`."""

    sql: str
    columns: tuple[Value, ...]

    def called(self, alias: exp.TableAlias | None, node: exp.Expr, path: tuple[str, ...] = ()) -> "Relation":
        """With an alias before its columns, and other names for them."""
        names = [name.name for name in alias.columns] if alias else []
        if names and len(names) != len(self.columns):
            raise SqlError(f"{len(names)} names for {len(self.columns)} columns", node)
        listed = zip(names or [column.name for column in self.columns], self.columns, strict=True)
        path = (alias.name,) if alias and alias.name else path
        return replace(self, columns=tuple(Value(column.sql, column.type, name, path=path) for name, column in listed))


def listed(columns: Sequence[Value], wanted: Sequence[Value]) -> str:
    pairs = [(become(column, new.type), new) for column, new in zip(columns, wanted, strict=True)]
    return ", ".join(f"{value.sql} as {new.sql}" for value, new in pairs if value)


def ordinal(node: exp.Expr, clause: str, count: int) -> int:
    if not node.name.isdigit() or not 1 <= int(node.name) <= count:
        raise SqlError(f"{clause} BY takes names, or numbers of columns from 1 to {count}", node)
    return int(node.name) - 1


def grouped_by(node: exp.Expr, items: Sequence[exp.Expr], scope: Scope) -> Value:
    """Of GROUP BY: a number of a column of SELECT, a column, an alias where no column has that name, or any other expression."""
    if isinstance(node, exp.Literal):
        has_star = any(isinstance(item, exp.Star) or isinstance(item.this, exp.Star) for item in items)
        return meaning(items[ordinal(node, "GROUP", 0 if has_star else len(items))].unalias(), scope)
    aliased = [item.this for item in items if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower()]
    is_column = isinstance(node, exp.Column) and not any(is_meant(column, [part.name for part in node.parts]) for column in scope.columns)
    return meaning(aliased[0] if is_column and len(aliased) == 1 and not node.text("table") else node, scope)


def every(node: exp.Expr, star: exp.Star, scope: Scope) -> list[Value]:
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
    for name in left_out.keys() - {(column.name or "").lower() for column in columns}:
        raise unknown("column", left_out[name].name, [column.name or "" for column in columns], left_out[name])
    return [column for column in columns if (column.name or "").lower() not in left_out]


def column_name(item: exp.Expr, value: Value) -> str:
    """As Spark names a column without an alias; of a cast column it is that of the column."""
    is_cast = isinstance(item, exp.TryCast) or function_of(item) in signatures(CASTS)
    inside = item.this if isinstance(item, exp.TryCast) else next(iter(item.expressions), None)
    if is_cast and isinstance(inside, exp.Column):
        return str(inside.name)
    if value.name is None:
        raise SqlError("how Spark would name this column is not known here; write AS and a name behind it", item)
    return value.name
