"""Parts of a condition as DuckDB's SQL with their kinds, and what is said where they do not fit."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlglot import exp

from expectations.rule import Kind
from expectations.wording import hint

SEE = "see expectations/README.md for all that they have"
ONE_ROW = "write what is true of one row; a window, a flow or columns_in_sql of a suite compare rows"
STEADY = "ask for columns alone; ingested_at is when the event came"
PATTERN = "write regexp_matches(unit, 'pattern')"
PART = "write unit like '%part%'"
IN_LIST = "write 'kitchen' in groups"
IN_SECONDS = "write date_part('epoch', event_time), which is in seconds since 1970"
CASES = "write case when .. then .. else .. end"
FINITE = "write value between -1e308 and 1e308, which is true of finite numbers alone"
AT_ONCE = "write the comparison out, with + - * / and round"
APART = "compare the parts one by one"
INSTANT = "write timestamp '2026-01-31 00:00:00', or try_cast(attributes['since'] as timestamp)"
AS_ATTRIBUTE = "read the part as an attribute of the source, in sources.yml"
IN_PARTS = "write date_part('{0}', event_time)"

FUNCTIONS = {
    **dict.fromkeys(("rand", "random", "uuid", "now", "today", "current_timestamp", "current_date", "getdate", "gen_random_uuid"), STEADY),
    **dict.fromkeys(("isnan", "isinf", "isfinite", "nanvl"), FINITE),
    **dict.fromkeys(("rlike", "regexp", "regexp_like", "regexp_full_match", "regexp_extract", "regexp_replace", "regexp_count"), PATTERN),
    **dict.fromkeys(("contains", "instr", "locate", "position", "strpos", "charindex"), PART),
    **dict.fromkeys(("startswith", "starts_with", "prefix"), "write unit like 'start%'"),
    **dict.fromkeys(("endswith", "ends_with", "suffix"), "write unit like '%end'"),
    **dict.fromkeys(("ltrim", "rtrim", "btrim"), "write trim(unit)"),
    **dict.fromkeys(("left", "right", "substr", "substring_index"), "write substring(unit, 1, 3), which takes 3 letters from the first on"),
    **dict.fromkeys(("array_contains", "list_contains", "array_position", "list_has", "exists", "any_match", "arrays_overlap"), IN_LIST),
    **dict.fromkeys(("size", "cardinality", "array_size", "array_length", "len"), "write length(groups)"),
    **dict.fromkeys(
        ("filter", "transform", "aggregate", "list_filter", "list_transform", "forall"), "write 'kitchen' in groups; a list has no more"
    ),
    **dict.fromkeys(("element_at", "split", "split_part", "get_json_object", "json_extract", "from_json"), AS_ATTRIBUTE),
    **dict.fromkeys(("concat", "concat_ws", "format_string", "printf"), APART),
    **dict.fromkeys(("if", "iff", "iif", "nvl2", "decode", "switch"), CASES),
    **dict.fromkeys(("isnull", "isnotnull"), "write value is null, or value is not null"),
    **dict.fromkeys(
        ("unix_timestamp", "unix_seconds", "unix_millis", "unix_micros", "to_unix_timestamp", "epoch", "epoch_ms", "epoch_us"), IN_SECONDS
    ),
    **dict.fromkeys(("datediff", "date_diff", "timestampdiff", "age", "date_sub", "date_add", "dateadd", "date_trunc"), IN_SECONDS),
    **{name: IN_PARTS.format(name) for name in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")},
    "dayofmonth": IN_PARTS.format("day"),
    "weekofyear": IN_PARTS.format("week"),
    "dayofyear": IN_PARTS.format("doy"),
    **dict.fromkeys(("dayofweek", "weekday", "dayname"), "write date_part('isodow', event_time), which is 1 on Monday and 7 on Sunday"),
    **dict.fromkeys(("date_format", "strftime", "to_char"), "write date_part('hour', event_time) and its like"),
    **dict.fromkeys(("to_timestamp", "timestamp", "to_date", "date", "strptime", "make_timestamp", "from_unixtime"), INSTANT),
    **dict.fromkeys(("int", "integer", "bigint", "smallint", "trunc", "truncate"), "write floor(value), or round(value)"),
    **dict.fromkeys(("double", "float", "decimal"), f"write try_cast(unit as double); for infinity, {FINITE}"),
    **dict.fromkeys(("string", "varchar", "char"), "write cast(value as text)"),
    **dict.fromkeys(("try_divide", "try_add", "try_subtract", "try_multiply"), "write + - * /: what cannot be computed is null by itself"),
    **dict.fromkeys(("pow", "power", "square"), "write value * value"),
    **dict.fromkeys(("pmod", "fmod"), "write value % 10"),
    **dict.fromkeys(("sqrt", "exp", "ln", "log", "log10", "sin", "cos", "tan", "pi", "sign", "bround", "cbrt"), AT_ONCE),
}
"""Suggestions by the name of a function, in lower case."""
NODES: dict[tuple[type[exp.Expr], ...], tuple[str, str]] = {
    (exp.Query, exp.Subquery, exp.Exists): ("a subquery", ONE_ROW),
    (exp.Window, exp.AggFunc): ("more than one row", ONE_ROW),
    (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime): ("the current time", STEADY),
    (exp.Lambda, exp.JSONExtract): ("a lambda or a path", IN_LIST),
    (exp.DPipe, exp.Concat): ("joined texts", APART),
    (exp.Interval,): ("an interval", f"{IN_SECONDS}, and compare numbers"),
    (exp.If,): ("if", CASES),
    (exp.ILike,): ("ilike", "write lower(unit) like 'part%'"),
    (exp.Escape,): ("an escape of like", "write a backslash in front of % or _, which escapes them here"),
    (exp.SimilarTo, exp.Glob): ("a pattern of another language", PATTERN),
    (exp.NullSafeEQ, exp.NullSafeNEQ): ("a comparison of nulls", "write a = b or (a is null and b is null)"),
    (exp.IntDiv,): ("a division of whole numbers", "write floor(a / b)"),
    (exp.Pow,): ("a power", "write value * value"),
    (exp.Binary, exp.BitwiseNot): ("an operator", SEE),
    (exp.Array, exp.Struct, exp.Tuple): ("a list of its own", "write metric in ('a', 'b')"),
    (exp.Alias,): ("a name after an expression", "put an operator, or and or or, between the two"),
    (exp.Star, exp.Placeholder, exp.Parameter): ("a placeholder", "name a column"),
}
"""Descriptions and suggestions by the node of the parser."""
OWN = ("regexp_matches", "substring", "coalesce", "nullif", "greatest", "least", "length", "date_part", "round", "floor", "trim", "lower")
"""Functions that conditions have, for who misspells one."""
TYPES = {Kind.NUMBER: "double", Kind.TEXT: "text", Kind.BOOLEAN: "boolean", Kind.TIMESTAMP: "timestamp"}
"""Kinds that can be compared, and the types of SQL that stand for them."""
LIKENESS = 0.75
"""Names are short, and what else may stand there is said where none is as like as this."""
LONGEST = 200_000
"""Letters of SQL. What is checked for infinity stands there twice, so each level of such arithmetic doubles it."""


class ConditionError(ValueError):
    """A mistake of a condition, its position, and what to write instead; a sentence that follows the name of a setting."""


class Term(NamedTuple):
    """A part of a condition. `is_arithmetic`: it may be infinite or NaN, and is to be null then."""

    node: Any
    kind: Kind
    sql: str
    is_arithmetic: bool = False

    def __str__(self) -> str:
        return f"{self.kind} ({text_of(self.node)})"


@dataclass(frozen=True)
class Terms:
    """Renders parts of one condition. `renderers`: by the node of sqlglot. `names`, `attributes`: what it has asked for."""

    text: str
    columns: Mapping[str, Kind]
    renderers: "Mapping[str, Callable[[Terms, Any], Term]]"
    names: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)

    def term(self, node: exp.Expr, *kinds: Kind) -> Term:
        """A part, of one of `kinds` if any are given."""
        render = self.renderers.get(type(node).__name__)
        if render is None:
            raise self.refusal(node)
        term = render(self, node)
        if kinds and term.kind not in kinds:
            raise self.error(node, f"has a {term} where a {' or '.join(kinds)} belongs", instead_of(term, kinds[0]))
        return term

    def sql(self, node: exp.Expr, *kinds: Kind) -> str:
        return self.finite(self.term(node, *kinds)).sql

    def finite(self, term: Term) -> Term:
        """The part, null where it is arithmetic whose result is no finite number."""
        if len(term.sql) > LONGEST:
            raise ConditionError("is too long, or nested too deeply; write several conditions")
        sql = f"(case when isfinite({term.sql}) then {term.sql} end)" if term.is_arithmetic else term.sql
        return term._replace(sql=sql, is_arithmetic=False)

    def alike(self, node: exp.Expr, nodes: Iterable[exp.Expr], verb: str) -> tuple[Kind, list[str]]:
        """The kind that all of them have, and their SQL. A null has any kind, but nothing is compared with it."""
        terms = [self.finite(self.term(part)) for part in nodes]
        first = next((term for term in terms if term.kind is not Kind.NULL), terms[0])
        for term in terms:
            if term.kind is Kind.NULL and verb == "compares":
                raise self.error(node, "compares with null, which is never true", f"write {text_of(first.node)} is null")
            if term.kind not in {first.kind, Kind.NULL}:
                text, other = (term, first) if term.kind is Kind.TEXT else (first, term)
                raise self.error(node, f"{verb} {first} with {term}", instead_of(text, other.kind))
            if term.kind not in {*TYPES, Kind.NULL}:
                raise self.error(node, f"{verb} a {term}", "write one of its texts: attributes['quality'], or 'kitchen' in groups")
        return first.kind, [term.sql for term in terms]

    def literal(self, node: Any, noun: str) -> str:
        """The text of a literal, which has to be written out."""
        if not isinstance(node, exp.Literal):
            raise self.error(node, f"computes {noun}", f"write {noun} out")
        return str(node.this)

    def called(self, node: exp.Expr) -> str:
        """The name of a function as it is written; nothing for an operator."""
        return self.text[node.meta["start"] : node.meta["end"] + 1].lower() if "start" in node.meta else ""

    def error(self, node: exp.Expr, problem: str, remedy: str) -> ConditionError:
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        return ConditionError(f"{problem}{position(self.text, min(starts)) if starts else ''}; {remedy}")

    def refusal(self, node: exp.Expr) -> ConditionError:
        """The error about something that conditions do not have, with what to write instead."""
        name = self.called(node)
        if name in FUNCTIONS:
            return self.error(node, f"calls '{name}', which conditions do not have", FUNCTIONS[name])
        for kinds, (noun, remedy) in NODES.items():
            if isinstance(node, kinds):
                return self.error(node, f"uses {noun}, which conditions do not have", remedy)
        return self.error(node, f"calls '{name or text_of(node)}', which conditions do not have", hint(name, OWN, SEE, LIKENESS))


def position(text: str, start: int) -> str:
    """The position of an offset of the text, as a person counts."""
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return f" (line {line}, column {column})" if "\n" in text.strip() else f" (column {column})"


def text_of(node: exp.Expr) -> str:
    text = node.sql(dialect="duckdb")
    return text if len(text) <= 50 else f"{text[:47]}..."


def instead_of(term: Term, kind: Kind) -> str:
    """How to write a value as one of another kind."""
    if kind is Kind.BOOLEAN:
        return "compare it, for example value >= 0"
    if term.kind is Kind.TEXT and isinstance(term.node, exp.Literal):
        return f"write timestamp '{term.node.this}'" if kind is Kind.TIMESTAMP else f"write {term.node.this} without quotes"
    if term.kind is Kind.TIMESTAMP and kind is Kind.NUMBER:
        return f"write date_part('epoch', {text_of(term.node)}), which is in seconds since 1970"
    return f"write try_cast({text_of(term.node)} as {TYPES[kind]})" if kind in TYPES else SEE
