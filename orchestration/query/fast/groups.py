"""After GROUP BY: what was grouped by has a column, and so has each aggregate, which is collected as it is met."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from orchestration.query.fast.meaning import aggregate_of, has_aggregate, meaning
from orchestration.query.fast.scope import Rows, Scope
from orchestration.query.fast.syntax import Call, Expression, Item, Literal, Name, Order, Query, Select, Star
from orchestration.query.fast.telling import AmissError, differs
from orchestration.query.fast.value import Value, comparable, require_key


@dataclass
class Groups:
    """A scope over groups of rows. `keys`: what was grouped by, with the column that holds it. `new` gives names of columns."""

    rows: Rows
    keys: Sequence[tuple[Value, str]]
    new: Callable[[], str]
    window_of: Callable[[Call, Scope], Value]
    aggregates: dict[str, str] = field(default_factory=dict)
    """SQL of each aggregate: the column that holds it."""

    def column(self, name: Name) -> Value:
        """None that is not grouped by."""
        self.rows.column(name)  # which may say that there is none of that name
        raise AmissError(f"{'.'.join(name.parts)} is neither in GROUP BY nor in an aggregate", name.at)

    def whole(self, expression: Expression) -> Value | None:
        """What was grouped by."""
        if isinstance(expression, Literal) or has_aggregate(expression):
            return None
        try:
            value = meaning(expression, self.rows)
        except AmissError:
            return None  # its parts will say so
        return next((replace(value, sql=column) for key, column in self.keys if key.sql == value.sql), None)

    def aggregate(self, call: Call) -> Value:
        """The column that will hold it."""
        value, after = aggregate_of(call, self.rows)
        column = self.aggregates.setdefault(value.sql, self.new())
        return replace(value, sql=after.replace("$0", column))

    def window(self, call: Call) -> Value:
        """Over the groups."""
        return self.window_of(call, self)

    def scalar(self, query: Query) -> Value:
        """As of the rows."""
        return self.rows.scalar(query)

    def sql(self, rows: str) -> str:
        """The groups of rows, with a column for each key and each aggregate."""
        keyed = ", ".join(["*", *(f"{comparable(key)} as {column}" for key, column in self.keys)])
        columns = [column for _, column in self.keys]
        listed = [*columns, *(f"{aggregate} as {column}" for aggregate, column in self.aggregates.items())]
        grouped_by = f" group by {', '.join(columns)}" if columns else ""
        return f"select {', '.join(listed)} from (select {keyed} from ({rows})){grouped_by}"


def group_keys(select: Select, items: Sequence[Item], orders: Sequence[Order], rows: Rows) -> list[Value] | None:
    """What the rows are grouped by; nothing where all of them are one group, None where every row is answered by itself."""
    asked = [item.value for item in items] + [order.value for order in orders]
    if select.groups is None and select.having is None and not any(map(has_aggregate, asked)):
        return None
    if select.is_grouped_by_all:
        keys = [meaning(item.value, rows) for item in items if not has_aggregate(item.value)]
    else:
        keys = [_key(each, items, rows) for each in select.groups or ()]
    if not keys and not any(map(has_aggregate, asked)):
        raise differs("HAVING without GROUP BY and aggregates", select.at, "use WHERE")
    for key in keys:
        require_key(key)
    return keys


def _key(expression: Expression, items: Sequence[Item], rows: Rows) -> Value:
    """Of GROUP BY: a number of a column of SELECT, a column, an alias where no column has that name, or any other expression."""
    if isinstance(expression, Literal):
        number = expression.value
        if expression.type != "int" or not 1 <= number <= len(items) or any(isinstance(item.value, Star) for item in items):
            raise AmissError(f"GROUP BY takes names, or numbers of columns from 1 to {len(items)}", expression.at)
        return meaning(items[number - 1].value, rows)
    if isinstance(expression, Name) and len(expression.parts) == 1:
        try:
            return rows.column(expression)
        except AmissError:
            aliased = [item.value for item in items if item.alias and item.alias.lower() == expression.parts[0].lower()]
            if len(aliased) == 1:
                return meaning(aliased[0], rows)
            raise
    return meaning(expression, rows)
