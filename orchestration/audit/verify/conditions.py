"""The second implementation of conditions: translate a condition into SQL of DuckDB, as expectations/README.md defines it.

`value > 10 and zone = 'hall'` is parsed by sqlglot and written anew node by node; an empty DuckDB table tells the type of each part.
A result that is NaN or infinite becomes null at each operation, and the grammar of a text is checked before it is cast. Only conditions
that `tidemark check` accepted come here. A new function needs an entry in `FUNCTIONS` or `WRITERS`. No table of the lake is read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

from orchestration.errors import ConfError

FINITE = "list_filter([{}], lambda number: isfinite(number))[1]"
"""SQL that turns NaN and infinity into null."""
NUMBER = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"
INSTANT = (
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]((?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?)"
    r"(?:Z|([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9]))?)?)?"
)
PARTS = f"regexp_extract(t, '^{INSTANT}$', ['day', 'time', 'sign', 'hours', 'minutes'])"
OFFSET = "coalesce(try_cast(p.sign || p.hours as int) * 60, 0) + coalesce(try_cast(p.sign || p.minutes as int), 0)"
TO_INSTANT = (
    f"[try_cast(p.day || ' ' || case when p.time = '' then '00:00' else p.time end as timestamp) - to_minutes({OFFSET}) "
    f"for p in [{PARTS} for t in [{{}}] if regexp_full_match(t, '{INSTANT}')]][1]"
)
TO_NUMBER = FINITE.format(f"[try_cast(t as double) for t in [{{}}] if regexp_full_match(t, '{NUMBER}')][1]")
OPERATORS = {"eq": "=", "neq": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "and": "and", "or": "or"}
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}
NUMERIC = ("DOUBLE", "FLOAT", "BIGINT", "INTEGER", "SMALLINT", "TINYINT", "HUGEINT")


def evaluated(text: str, rows: pa.Schema | str) -> str:
    """Return a condition as SQL that fails for no row. `rows`: the schema of its rows, or their columns as SQL declares them."""
    with duckdb.connect(config={"threads": 1}) as scratch:
        if isinstance(rows, str):
            scratch.execute(f"create table row ({rows})")
        else:
            scratch.register("row", rows.empty_table())
        try:
            writer = _Writer(scratch)
            sql = writer.sql(sqlglot.parse_one(text, read="duckdb"))
            writer.type_of(sql)
        except (sqlglot.errors.SqlglotError, duckdb.Error, KeyError) as error:
            reason = str(error).splitlines()[0]
            raise ConfError(f"the condition {text!r} cannot be verified ({reason}); see what `tidemark check` says of it") from error
    return f"({sql})"


@dataclass(frozen=True)
class _Writer:
    """Write SQL for nodes of the parser. `scratch` holds an empty table `row` with the columns and types that the condition will see."""

    scratch: duckdb.DuckDBPyConnection

    def sql(self, node: Any) -> str:
        if node.key in OPERATORS:
            return f"({self.sql(node.this)} {OPERATORS[node.key]} {self.sql(node.expression)})"
        if node.key in ARITHMETIC:
            left, right = (FINITE.format(self.sql(part)) for part in (node.this, node.expression))
            return FINITE.format(f"({left}) {ARITHMETIC[node.key]} ({right})")
        if node.key in FUNCTIONS:
            return f"{node.key}({', '.join(self.sql(value) for value in (node.this, *node.expressions))})"
        return WRITERS[node.key](self, node)

    def type_of(self, sql: str) -> str:
        return str(self.scratch.execute(f"describe select {sql} as value from row").fetchall()[0][1])

    def column(self, node: Any) -> str:
        column = '"' + node.name.replace('"', '""') + '"'
        kind = self.type_of(column)
        return f"{column}::double" if kind in NUMERIC else f"epoch_us({column}).make_timestamp()" if "TIME" in kind else column

    def among(self, node: Any) -> str:
        value, texts = self.sql(node.this), node.args.get("field")
        return f"({value} in {self.sql(texts)})" if texts else f"({' or '.join(f'{value} = {self.sql(one)}' for one in node.expressions)})"

    def like(self, node: Any) -> str:
        likeness = f"({self.sql(node.this)} like {_quoted(node.expression.this)} escape '\\')"
        return f"(not {likeness})" if node.args.get("negate") else likeness

    def rounded(self, node: Any) -> str:
        digits = node.args.get("decimals")
        factor = f"1{'0' * int(digits.this)}::double" if digits else ""
        value = self.sql(node.this)
        return FINITE.format(f"round({value} * {factor}) / {factor}") if digits else f"round({value})"

    def case(self, node: Any) -> str:
        subject, otherwise = f"{self.sql(node.this)} = " if node.this else "", node.args.get("default")
        branches = (f"when {subject}{self.sql(branch.this)} then {self.sql(branch.args['true'])}" for branch in node.args["ifs"])
        return f"(case {' '.join(branches)} else {self.sql(otherwise) if otherwise else 'null'} end)"

    def cast(self, node: Any) -> str:
        value, to = self.sql(node.this), "TIMESTAMP" if node.to.this.name.startswith("TIMESTAMP") else node.to.this.name
        kind = self.type_of(value)
        if kind == "VARCHAR" and to in {"DOUBLE", "TIMESTAMP"}:
            return {"DOUBLE": TO_NUMBER, "TIMESTAMP": TO_INSTANT}[to].replace("{}", value)
        return f"({value} != 0)" if (kind, to) == ("DOUBLE", "BOOLEAN") else f"try_cast({value} as {to})"


def _nullif(writer: _Writer, node: Any) -> str:
    first, second = writer.sql(node.this), writer.sql(node.expression)
    return f"(case when {first} = {second} then null else {first} end)"


FUNCTIONS = ("abs", "floor", "ceil", "lower", "upper", "trim", "coalesce", "least", "greatest")
"""Functions of DuckDB that do what conditions promise, and are used as they are."""
WRITERS: dict[str, Callable[[_Writer, Any], str]] = {
    "column": _Writer.column,
    "literal": lambda _, node: _quoted(node.this) if node.is_string else f"{_quoted(node.this)}::double",
    "boolean": lambda _, node: str(node.this).lower(),
    "null": lambda _, node: "null",
    "paren": lambda writer, node: writer.sql(node.this),
    "not": lambda writer, node: f"(not {writer.sql(node.this)})",
    "neg": lambda writer, node: f"(- {writer.sql(node.this)})",
    "is": lambda writer, node: f"({writer.sql(node.this)} is null)",
    "between": lambda writer, node: "({0} >= {1} and {0} <= {2})".format(*(writer.sql(node.args[key]) for key in ("this", "low", "high"))),
    "in": _Writer.among,
    "bracket": lambda writer, node: f"map_extract_value({writer.sql(node.this)}, {_quoted(node.expressions[0].this)})",
    "like": _Writer.like,
    "regexplike": lambda writer, node: f"regexp_matches({writer.sql(node.this)}, {_quoted(node.expression.this)})",
    "round": _Writer.rounded,
    "length": lambda writer, node: f"length({writer.sql(node.this)})::double",
    "nullif": _nullif,
    "substring": lambda writer, node: f"({writer.sql(node.this)})[{node.args['start'].this}:{_last(node)}]",
    "extract": lambda writer, node: f"date_part('{node.name}', {writer.sql(node.expression)})::double",
    "anonymous": lambda writer, node: f"date_part('{node.expressions[0].this}', {writer.sql(node.expressions[1])})::double",
    "case": _Writer.case,
    **dict.fromkeys(("cast", "trycast"), _Writer.cast),
}


def _last(node: Any) -> str:
    """Return the position of the last character of a substring; an empty text if it goes to the end."""
    length = node.args.get("length")
    return str(int(node.args["start"].this) + int(length.this) - 1) if length else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
