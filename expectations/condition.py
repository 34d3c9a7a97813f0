"""The language of conditions: a small part of SQL over the columns of one row, with types, rendered for DuckDB.

Rules of silver, predicates of flows, conditions of alerts and computed columns of suites are written in it. README.md says what each
operator and function means. The SQL never ends in an error, whatever the row holds: what cannot be computed is null.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlglot
from sqlglot import exp

from expectations.rule import Kind
from expectations.terms import LIKENESS, TYPES, ConditionError, Term, Terms, instead_of, position, text_of
from expectations.wording import hint

NUMBER, TEXT, BOOLEAN, TIMESTAMP = Kind.NUMBER, Kind.TEXT, Kind.BOOLEAN, Kind.TIMESTAMP
CASTABLE = {"DOUBLE": NUMBER, "TEXT": TEXT, "VARCHAR": TEXT, "BOOLEAN": BOOLEAN, "TIMESTAMP": TIMESTAMP} | dict.fromkeys(
    ("TIMESTAMPNTZ", "TIMESTAMPTZ", "TIMESTAMPLTZ"), TIMESTAMP
)
"""Types by their names in sqlglot."""
PARTS = ("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "hour", "minute", "second", "epoch")
NUMBER_TEXT = r"^\s*([+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)\s*$"
DATE, TIME, OFFSET = r"\d{4}-\d\d-\d\d", r"[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?", r"(Z|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)"
WITH_TIME = f"regexp_replace({{}}, '^({DATE})$', '\\1 00:00:00')"
WITH_OFFSET = f"regexp_replace({WITH_TIME}, '^({DATE}{TIME})$', '\\1+00')"
CASTS = {
    (TEXT, NUMBER): f"try_cast(regexp_extract({{}}, '{NUMBER_TEXT}', 1) as double)",
    (TEXT, BOOLEAN): "try_cast({} as boolean)",
    # DuckDB passes over the offset of a text that it casts to timestamp, and takes one without an offset to be of the session's zone.
    (TEXT, TIMESTAMP): f"make_timestamp(epoch_us(try_cast(regexp_extract({WITH_OFFSET}, '^{DATE}{TIME}{OFFSET}$') as timestamptz)))",
    (BOOLEAN, NUMBER): "{}::int::double",
    (NUMBER, BOOLEAN): "({} <> 0e0)",
} | {(kind, TEXT): "cast({} as text)" for kind in (NUMBER, BOOLEAN, TIMESTAMP)}


@dataclass(frozen=True)
class Condition:
    """`sql`: DuckDB's, a whole operand. `columns`, `attributes`: names that it asks for, in the order of the text.

    `considers_null`: it says what is to become of nulls, by `is null` or `coalesce`.
    """

    sql: str
    kind: Kind
    columns: tuple[str, ...]
    attributes: tuple[str, ...]
    considers_null: bool


def condition(text: str, columns: Mapping[str, Kind]) -> Condition:
    """The condition that a text says over rows with these columns; ConditionError where it is none."""
    rendered = expression(text, columns)
    if rendered.kind is not BOOLEAN:
        raise ConditionError(f"is neither true nor false, but a {rendered.kind}; compare it, for example value >= 0")
    return rendered


def expression(text: str, columns: Mapping[str, Kind]) -> Condition:
    """A value of any kind, in the same language; ConditionError where it is none."""
    terms = Terms(text, columns, RENDERERS)
    try:
        tree = _parsed(text)
        whole = terms.finite(terms.term(tree))
    except RecursionError:
        raise ConditionError("is nested too deeply; write several conditions") from None
    considers_null = tree.find(exp.Is, exp.Coalesce) is not None
    return Condition(
        f"({whole.sql})", whole.kind, tuple(dict.fromkeys(terms.names)), tuple(dict.fromkeys(terms.attributes)), considers_null
    )


def _parsed(text: str) -> exp.Expr:
    try:
        for token in sqlglot.tokenize(text, read="duckdb"):
            if token.comments or token.token_type.name == "SEMICOLON":
                where = position(text, token.start)
                raise ConditionError(f"contains a comment or a semicolon{where}; write a comment behind a # in the YAML instead")
        return sqlglot.parse_one(text, read="duckdb")
    except sqlglot.errors.TokenError:
        raise ConditionError("cannot be read; look for a quote that is not closed") from None
    except sqlglot.errors.ParseError as error:
        first = error.errors[0]
        start = sum(map(len, text.splitlines(keepends=True)[: first["line"] - 1])) + first["col"] - 1
        where = f"cannot be read{position(text, start)}: something is missing there, or does not belong there"
        raise ConditionError(f'{where}; put a name such as "oven-1.power" in double quotes') from None


def _call(template: str, wants: Kind | None, gives: Kind | None = None) -> Callable[[Terms, Any], Term]:
    """A renderer of what has a fixed form. `wants`: the kind of what it takes, None for all of one kind. `gives`: None for the same.
    `*` in the template stands for all that it takes.
    """

    def render(terms: Terms, node: Any) -> Term:
        values = [part for value in node.args.values() for part in (value if isinstance(value, list) else [value])]
        parts = [value for value in values if isinstance(value, exp.Expr)]
        if node.args.get("symmetric") or ("*" not in template and len(parts) != template.count("{}")):
            raise terms.error(node, f"has more in {text_of(node)} than conditions have", "leave it out")
        if wants is None:
            kind, sqls = terms.alike(node, parts, "compares" if gives else "mixes")
        else:
            kind, sqls = wants, [terms.sql(part, wants) for part in parts]
        return Term(node, gives or kind, template.replace("*", ", ".join(sqls)) if "*" in template else template.format(*sqls))

    return render


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _column(terms: Terms, node: Any) -> Term:
    written = ".".join(part.name for part in node.parts)
    name = next((name for name in (written, *terms.columns) if name in terms.columns and name.lower() == written.lower()), None)
    if name is None:
        remedy = hint(written, terms.columns, f"there are {', '.join(terms.columns)}", LIKENESS)
        raise terms.error(node, f"uses '{written}', which is not a column", remedy)
    terms.names.append(name)
    kind, sql = terms.columns[name], '"' + name.replace('"', '""') + '"'
    # DuckDB has instants with a zone and without, and compares the two by the session's zone.
    return Term(node, kind, {NUMBER: f"{sql}::double", TIMESTAMP: f"make_timestamp(epoch_us({sql}))"}.get(kind, sql))


def _literal(terms: Terms, node: Any) -> Term:
    if node.is_string:
        return Term(node, TEXT, _quoted(node.this))
    if (number := float(node.this)) == float("inf"):
        raise terms.error(node, "has a number beyond 1.8e308", "write a smaller one")
    return Term(node, NUMBER, repr(number) if "e" in repr(number) else f"{number!r}e0")


def _attribute(terms: Terms, node: Any) -> Term:
    owner, key = terms.term(node.this), node.expressions[0]
    if owner.kind is not Kind.ATTRIBUTES or len(node.expressions) > 1 or not key.is_string:
        raise terms.error(node, f"takes a part of a {owner}", "write for example attributes['quality'], or 'kitchen' in groups")
    terms.attributes.append(key.this)
    return Term(node, TEXT, f"{owner.sql}[{_quoted(key.this)}]")


def _junction(terms: Terms, node: Any) -> Term:
    return Term(node, BOOLEAN, f"({f' {node.key} '.join(terms.sql(part, BOOLEAN) for part in node.flatten(unnest=False))})")


def _in(terms: Terms, node: Any) -> Term:
    if query := node.args.get("query"):
        raise terms.refusal(query)
    if texts := node.args.get("field"):
        return Term(node, BOOLEAN, f"list_contains({terms.sql(texts, Kind.TEXTS)}, {terms.sql(node.this, TEXT)})")
    _, (value, *values) = terms.alike(node, (node.this, *node.expressions), "compares")
    if not values:
        raise terms.error(node, "looks for a value in nothing", "write values between the brackets")
    return Term(node, BOOLEAN, f"({value} in ({', '.join(values)}))")


def _like(terms: Terms, node: Any) -> Term:
    pattern = terms.literal(node.expression, "the pattern of like")
    if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
        raise terms.error(node, "has a pattern that ends with a backslash", "write two of them for one, as it escapes what follows")
    negation = "not " if node.args.get("negate") else ""  # a part of the node, where other operators stand in a Not
    return Term(node, BOOLEAN, f"({terms.sql(node.this, TEXT)} {negation}like {_quoted(pattern)} escape '\\')")


def _regexp(terms: Terms, node: Any) -> Term:
    if terms.called(node) not in {"", "regexp_matches"}:
        raise terms.refusal(node)
    if not terms.called(node) or node.args.get("flag"):
        raise terms.error(node, "has an operator or flags of patterns", "write regexp_matches(unit, 'pattern'), with (?i) for any case")
    pattern = terms.literal(node.expression, "the pattern of regexp_matches")
    import duckdb  # here: only it knows what its patterns are

    try:
        duckdb.connect().execute("select regexp_matches('', ?)", [pattern])
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].partition(": ")[2]
        raise terms.error(node, f"has a pattern that is none ({reason})", "write it as RE2 does") from None
    return Term(node, BOOLEAN, f"regexp_matches({terms.sql(node.this, TEXT)}, {_quoted(pattern)})")


def _is_null(terms: Terms, node: Any) -> Term:
    if not isinstance(node.expression, exp.Null):
        raise terms.error(node, f"asks whether something is {text_of(node.expression).lower()}", "write it alone, or coalesce(.., false)")
    return Term(node, BOOLEAN, f"({terms.sql(node.this)} is null)")


def _arithmetic(terms: Terms, node: Any) -> Term:
    left, right = terms.term(node.this, NUMBER), terms.term(node.expression, NUMBER)
    if isinstance(node, exp.Div | exp.Mod):
        # 1 divided by infinity would be finite again.
        right = terms.finite(right._replace(is_arithmetic=not isinstance(node.expression, exp.Literal)))
    sign = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}[node.key]
    return Term(node, NUMBER, f"({left.sql} {sign} {right.sql})", is_arithmetic=True)


def _negative(terms: Terms, node: Any) -> Term:
    term = terms.term(node.this, NUMBER)
    return Term(node, NUMBER, f"(-{term.sql})", term.is_arithmetic)


def _round(terms: Terms, node: Any) -> Term:
    if (decimals := node.args.get("decimals")) is None:
        return Term(node, NUMBER, f"round({terms.sql(node.this, NUMBER)})")
    digits = terms.literal(decimals, "the number of digits")
    if not re.fullmatch("[0-9]|1[0-5]", digits):
        raise terms.error(node, f"rounds to {digits} digits", "write 0 to 15")
    return Term(node, NUMBER, f"(round({terms.term(node.this, NUMBER).sql} * 1e{digits}) / 1e{digits})", is_arithmetic=True)


def _length(terms: Terms, node: Any) -> Term:
    return Term(node, NUMBER, f"length({terms.sql(node.this, TEXT, Kind.TEXTS)})::double")


def _substring(terms: Terms, node: Any) -> Term:
    bounds = [node.args.get("start") or node.this, *filter(None, [node.args.get("length")])]
    numbers = [terms.literal(bound, "the first letter and the number of letters") for bound in bounds]
    if not all(re.fullmatch("[0-9]{1,6}", number) for number in numbers) or not int(numbers[0]):
        raise terms.error(node, f"takes the letters {', '.join(numbers)}", "write the first one as a number from 1, and how many")
    return Term(node, TEXT, f"substring({', '.join([terms.sql(node.this, TEXT), *numbers])})")


def _date_part(terms: Terms, node: Any) -> Term:
    if isinstance(node, exp.Extract):
        name, instant = node.name.lower(), node.expression
    elif node.name.lower() == "date_part" and len(node.expressions) == 2:
        name, instant = terms.literal(node.expressions[0], "the part of the date").lower(), node.expressions[1]
    else:
        raise terms.refusal(node)
    if name not in PARTS:
        raise terms.error(node, f"uses the part '{name}' of a date", hint(name, PARTS, f"there are {', '.join(PARTS)}", LIKENESS))
    return Term(node, NUMBER, f"date_part('{name}', {terms.sql(instant, TIMESTAMP)})::double")


def _cast(terms: Terms, node: Any) -> Term:
    kind = CASTABLE.get(node.to.this.name)
    if kind is None or node.to.expressions:
        remedy = f"there are {', '.join(TYPES.values())}; floor and round make whole numbers"
        raise terms.error(node, f"casts to {node.to.sql(dialect='duckdb').lower()}", remedy)
    if kind is TIMESTAMP and isinstance(node.this, exp.Literal):
        return Term(node, kind, f"timestamp '{_instant(terms, node)}'")
    term = terms.term(node.this, *TYPES)
    if term.kind is kind:
        return term._replace(node=node)
    if (term.kind, kind) not in CASTS:
        remedy = instead_of(term, kind) if kind is NUMBER else "compare it as it is"
        raise terms.error(node, f"casts {term} to {kind}", remedy)
    # Not `format`, as patterns have braces.
    sql = CASTS[term.kind, kind].replace("{}", terms.finite(term).sql)
    return Term(node, kind, sql, is_arithmetic=(term.kind, kind) == (TEXT, NUMBER))


def _instant(terms: Terms, node: Any) -> str:
    """A timestamp that is written out, in UTC and as DuckDB writes it."""
    text = str(node.this.this)
    try:
        instant = datetime.fromisoformat(text if re.fullmatch(f"{DATE}({TIME}{OFFSET}?)?", text, re.ASCII) else "")
        return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    except (ValueError, OverflowError):
        raise terms.error(node, f"has the timestamp '{text}', which is none", "write for example timestamp '2026-01-31 06:00:00'") from None


def _case(terms: Terms, node: Any) -> Term:
    branches, otherwise = node.args["ifs"], node.args.get("default") or exp.null()
    tests = [exp.EQ(this=node.this, expression=branch.this) if node.this else branch.this for branch in branches]
    kind, sqls = terms.alike(node, [*(branch.args["true"] for branch in branches), otherwise], "mixes")
    cases = " ".join(f"when {terms.sql(test, BOOLEAN)} then {sql}" for test, sql in zip(tests, sqls, strict=False))
    return Term(node, kind, f"(case {cases} else {sqls[-1]} end)")


SIGNS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
RENDERERS: dict[str, Callable[[Terms, Any], Term]] = {
    "Column": _column,
    "Literal": _literal,
    "Boolean": lambda _, node: Term(node, BOOLEAN, str(node.this).lower()),
    "Null": lambda _, node: Term(node, Kind.NULL, "null"),
    "Paren": lambda terms, node: terms.term(node.this)._replace(node=node),
    "Bracket": _attribute,
    "Not": _call("(not {})", BOOLEAN, BOOLEAN),
    **dict.fromkeys(("And", "Or"), _junction),
    **{name: _call(f"({{}} {sign} {{}})", None, BOOLEAN) for name, sign in SIGNS.items()},
    "Between": _call("({} between {} and {})", None, BOOLEAN),
    "In": _in,
    "Like": _like,
    "RegexpLike": _regexp,
    "Is": _is_null,
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod"), _arithmetic),
    "Neg": _negative,
    **{name.title(): _call(f"{name}({{}})", NUMBER) for name in ("abs", "floor", "ceil")},
    **{name.title(): _call(f"{name}({{}})", TEXT) for name in ("lower", "upper", "trim")},
    **{name.title(): _call(f"{name}(*)", None) for name in ("coalesce", "least", "greatest")},
    "Nullif": _call("nullif({}, {})", None),
    "Round": _round,
    "Length": _length,
    "Substring": _substring,
    **dict.fromkeys(("Anonymous", "Extract"), _date_part),
    **dict.fromkeys(("Cast", "TryCast"), _cast),
    "Case": _case,
}
"""Renderers by the node of sqlglot. Two names of one function are one node: `ceiling`, `ifnull` and `mod` are taken too."""
