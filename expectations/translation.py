"""Translates Spark's SQL to DuckDB's: only expressions that mean the same in both; a test compares each with Spark.

Where Spark raises an error (an index out of bounds), DuckDB may return null.
"""

from collections.abc import Callable
from functools import cache

import sqlglot
from sqlglot import exp

SAME = frozenset(
    """
    Abs Add And Array ArrayFilter ArrayIntersect ArrayMax ArrayMin ArraySize ArraySlice ArraySort Avg Between
    Boolean Bracket Case Coalesce Column Contains Count DataType DateDiff Day DayOfWeek DayOfYear Div EQ EndsWith
    Exp GT GTE Greatest Hour ILike Identifier If In IntDiv Interval Is IsNan LT LTE Lag Lambda Least Left
    Length Like Literal Lower Median Minute Mod Month Mul NEQ Neg Not Null NullSafeEQ Nullif Or Order Ordered
    Paren Pi Pow Quarter Reduce RegexpExtract RegexpLike RegexpReplace Replace Reverse Right Round SafeDivide Second
    StartsWith StrPosition Sub Substring Sum TimestampTrunc Transform Trim TsOrDsToDate UnixMicros UnixMillis
    UnixSeconds Var WeekOfYear Window Year
    """.split()  # noqa: SIM905  a list of a hundred lines says no more
)
"""Kinds of nodes by their names in sqlglot."""
INSTEAD = {
    "Exists": "say it by size(filter(..)) > 0",
    "ArrayAny": "say it by size(filter(..)) > 0",
    "ArrayAll": "say it by size(filter(..)) = size(..)",
    "ArrayContains": "say it by size(filter(..)) > 0",
    "Floor": "use round",
    "Ceil": "use round",
    "Upper": "use lower",
    "StrToUnix": "use unix_micros",
}
PLAINER = "write it with plainer functions, or expect it of the column itself"
DIVISIONS = (exp.Div, exp.IntDiv, exp.Mod)
FALLIBLE = (*DIVISIONS, exp.Cast, exp.Bracket, exp.TsOrDsToDate)
"""What Spark computes of some values only; all other nodes of `SAME` it computes of all."""
CAUGHT = "exists(array(try_to_binary(cast(({}) as string), 'utf-8')), caught -> caught = cast('true' as binary))"
"""Of a predicate: `try_to_binary` catches all that its argument raises, and nothing inside of `exists` is computed ahead of it."""
DOUBLE, DATE, INT = exp.DataType.Type.DOUBLE, exp.DataType.Type.DATE, exp.DataType.Type.INT
INSTANTS = {exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ, exp.DataType.Type.TIMESTAMP}


@cache
def to_duckdb(sql: str) -> str:
    """The expression in DuckDB's SQL; ValueError if no translation is known to mean the same."""
    tree = parsed(sql)
    for node in tree.walk():
        if remedy := _refused(node):
            raise ValueError(f"{node.sql(dialect='spark')!r} is more than quality checks can compute; {remedy}")
    return _transformed(tree, _as_spark_means_it).sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.RAISE)


def parsed(sql: str) -> exp.Expr:
    """The expression of Spark's SQL as a tree; ValueError if it is none."""
    try:
        return sqlglot.parse_one(sql, read="spark")
    except sqlglot.errors.SqlglotError as error:
        raise ValueError(f"{sql!r} is no expression of Spark's SQL{_place(error)}") from None


@cache
def without_failures(predicate: str) -> str:
    """The predicate, in Spark's SQL, but null or false for a row of which it cannot be computed, where Spark ends the query."""
    tree = parsed(predicate)
    # Databricks' dialect has try_cast for cast, and null for a divisor of 0.
    sql = _transformed(tree, _null_for_failures).sql(dialect="databricks") if tree.find(*FALLIBLE) else predicate
    try:
        to_duckdb(sql)
    except ValueError:
        return CAUGHT.format(sql)
    return sql


def _transformed(tree: exp.Expr, meaning: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """From the inside out: sqlglot's own `transform` does not look into what it has replaced."""
    for node in reversed([*tree.walk()]):
        meant = meaning(node)
        if node is tree:
            return meant
        node.replace(meant)
    return tree


def _refused(node: exp.Expr) -> str | None:
    """What to write instead; None for what means the same in both."""
    name = type(node).__name__
    if isinstance(node, exp.Anonymous):
        return None if str(node.this).lower() == "octet_length" else PLAINER
    if isinstance(node, exp.Cast):
        return _refused_cast(node)
    if name not in SAME:
        return INSTEAD.get(name, PLAINER)
    if isinstance(node, DIVISIONS) and not _is_number_but_0(node.expression):
        return "divide by a number that is written out, or use try_divide"
    if isinstance(node, exp.Substring) and not _is_number_but_0(node.args.get("start")):
        return "write the start as a number, from 1"
    return None


def _refused_cast(node: exp.Cast) -> str | None:
    """The engines format numbers and parse times differently, and DuckDB rounds to integers where Spark truncates."""
    kind, value = node.to.this, node.this
    is_same = kind in {DOUBLE, DATE} or (kind in INSTANTS and value.is_string) or (kind is INT and isinstance(value, exp.Predicate))
    if is_same:
        return None
    return "cast to double or date only, or use round"


def _is_number_but_0(node: exp.Expr | None) -> bool:
    number = node.this if isinstance(node, exp.Neg) else node
    return isinstance(number, exp.Literal) and not number.is_string and float(number.this) != 0


def _null_for_failures(node: exp.Expr) -> exp.Expr:
    """Dates and other values of texts that are none, remainders of a division by 0, places that a list does not have."""
    if isinstance(node, exp.TsOrDsToDate) and not node.args.get("format"):
        return exp.TryCast(this=node.this.copy(), to=exp.DataType.build("date"))
    if type(node) is exp.Cast and not isinstance(node.this, exp.Literal):
        return exp.TryCast(this=node.this.copy(), to=node.to.copy())
    if isinstance(node, exp.Bracket) and not node.expressions[0].is_string:
        is_from_1 = node.args.get("offset") == 1
        return exp.func("try_element_at" if is_from_1 else "get", node.this.copy(), node.expressions[0].copy(), dialect="databricks")
    if isinstance(node, exp.IntDiv | exp.Mod) and not _is_number_but_0(node.expression):
        divisor = exp.Nullif(this=node.expression.copy(), expression=exp.Literal.number(0))
        return type(node)(this=node.this.copy(), expression=divisor)
    return node


def _as_spark_means_it(node: exp.Expr) -> exp.Expr:
    """isnan(null) is false, a backslash escapes in LIKE, weekdays start at 1, and parts of a second are truncated."""
    if isinstance(node, exp.IsNan):
        return exp.Coalesce(this=node.copy(), expressions=[exp.false()])
    if isinstance(node, exp.Like | exp.ILike) and not isinstance(node.parent, exp.Escape):
        return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
    if isinstance(node, exp.DayOfWeek):
        return exp.paren(exp.Add(this=node.copy(), expression=exp.Literal.number(1)))
    if isinstance(node, exp.UnixSeconds | exp.UnixMillis):
        micros = exp.Div(this=exp.UnixMicros(this=node.this.copy()), expression=exp.Literal.number(UNITS[type(node)]))
        return exp.cast(exp.Floor(this=micros), exp.DataType.Type.BIGINT)
    return node


UNITS: dict[Callable[..., exp.Expr], str] = {exp.UnixSeconds: "1e6", exp.UnixMillis: "1e3"}


def _place(error: sqlglot.errors.SqlglotError) -> str:
    """Where parsing fails: more useful to people than the parser's message."""
    first = next(iter(getattr(error, "errors", ())), None)
    return f"; look at line {first['line']}, character {first['col']} of it" if first else "; look for an open quote"
