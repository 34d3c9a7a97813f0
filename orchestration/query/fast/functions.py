"""Functions of one row: Spark's name and types, and what DataFusion calculates. Each line is compared with Spark by a test.

A line is `names (types) -> type: SQL`. Of types, `a|b` is either, `number` any number as a double, and what begins with # a value that is
written out: `#text` a string, `#int` a whole number, `#0` one from 0 on, `#1` one from 1 on. `$1` is the first argument. Where Spark names
a column without alias otherwise than by the function and its arguments, `name=NAME` says so; `name=NAME+REST` with more behind them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from orchestration.query.fast import dates, elements, special
from orchestration.query.fast.operators import OPERATORS
from orchestration.query.fast.telling import ASK_SPARK, AmissError, differs
from orchestration.query.fast.types import INSTANT, common, has, is_number, text
from orchestration.query.fast.value import Value, become, total

SIGNATURES = """
upper ucase (string) -> string: upper($1)
lower lcase (string) -> string: lower($1)
length len char_length character_length (string) -> int: character_length($1)
length len octet_length (binary) -> int: cast(octet_length(encode($1, 'hex')) / 2 as int)
octet_length (string) -> int: octet_length($1)
trim (string) -> string: btrim($1, ' ')
ltrim (string) -> string: ltrim($1, ' ')
rtrim (string) -> string: rtrim($1, ' ')
reverse (string) -> string: reverse($1)
startswith (string, string) -> boolean: starts_with($1, $2)
endswith (string, string) -> boolean: ends_with($1, $2)
contains (string, string) -> boolean: contains($1, $2)
instr (string, string) -> int: strpos($1, $2)
locate=locate+1 position=position+1 (string, string) -> int: strpos($2, $1)
left (string, #0) -> string: left($1, $2)
right (string, #0) -> string: right($1, $2)
substring=substring+2147483647 substr=substr+2147483647 (string, #1) -> string: substr($1, $2)
substring substr (string, #1, #0) -> string: substr($1, $2, $3)
split_part (string, #text, #1) -> string: split_part($1, $2, $3)
md5 (string) -> string: md5($1)
hex (binary) -> string: upper(encode($1, 'hex'))
abs (int) -> int: cast(abs(cast($1 as bigint)) as int)
abs (bigint) -> bigint: cast(abs(cast($1 as decimal(20,0))) as bigint)
abs (double) -> double: abs($1)
sign signum=SIGNUM (number) -> double: signum($1)
floor=FLOOR ceil=CEIL ceiling (bigint) -> bigint: $1
floor=FLOOR (double) -> bigint: cast(floor($1) as bigint)
ceil=CEIL ceiling (double) -> bigint: cast(ceil($1) as bigint)
sqrt=SQRT (number) -> double: case when $1 < 0e0 then cast('NaN' as double) else sqrt($1) end
exp=EXP (number) -> double: exp($1)
ln (number) -> double: case when nanvl($1, cast('NaN' as double)) <= 0e0 then null else ln($1) end
log10=LOG10 (number) -> double: case when nanvl($1, cast('NaN' as double)) <= 0e0 then null else log10($1) end
log2=LOG2 (number) -> double: case when nanvl($1, cast('NaN' as double)) <= 0e0 then null else log2($1) end
pow power=POWER (number, #0) -> double: power($1, $2)
isnan (double) -> boolean: coalesce(isnan($1), false)
nanvl (double, double) -> double: nanvl($1, $2)
pi=PI () -> double: pi()
year (date|timestamp) -> int: date_part('year', $1)
quarter (date|timestamp) -> int: date_part('quarter', $1)
month (date|timestamp) -> int: date_part('month', $1)
day dayofmonth (date|timestamp) -> int: date_part('day', $1)
dayofweek (date|timestamp) -> int: cast(date_part('dow', $1) + 1 as int)
weekday (date|timestamp) -> int: cast((date_part('dow', $1) + 6) % 7 as int)
dayofyear (date|timestamp) -> int: date_part('doy', $1)
weekofyear (date|timestamp) -> int: date_part('week', $1)
hour (timestamp) -> int: date_part('hour', $1)
minute (timestamp) -> int: date_part('minute', $1)
second (timestamp) -> int: date_part('second', $1)
unix_seconds (timestamp) -> bigint: arrow_cast(date_trunc('second', $1), 'Int64') / 1000000
unix_timestamp=unix_timestamp+FORMAT (timestamp) -> bigint: arrow_cast($1, 'Int64') / 1000000
unix_millis (timestamp) -> bigint: arrow_cast(date_trunc('millisecond', $1), 'Int64') / 1000
unix_micros (timestamp) -> bigint: arrow_cast($1, 'Int64')
timestamp_seconds (bigint) -> timestamp: arrow_cast(cast(cast($1 as decimal(20,0)) * 1000000 as bigint), INSTANT)
timestamp_millis (bigint) -> timestamp: arrow_cast(cast(cast($1 as decimal(20,0)) * 1000 as bigint), INSTANT)
timestamp_micros (bigint) -> timestamp: arrow_cast($1, INSTANT)
datediff date_diff (date|timestamp, date|timestamp) -> int: cast(cast($1 as date) - cast($2 as date) as int)
date_add (date|timestamp, int) -> date: arrow_cast(arrow_cast(cast($1 as date), 'Int32') + $2, 'Date32')
date_sub (date|timestamp, int) -> date: arrow_cast(arrow_cast(cast($1 as date), 'Int32') - $2, 'Date32')
unix_date (date) -> int: arrow_cast($1, 'Int32')
"""
SPECIAL = {**OPERATORS, **special.FUNCTIONS, **dates.FUNCTIONS, **elements.FUNCTIONS}
LINE = re.compile(r"(?P<names>[^(]+) \((?P<takes>[^)]*)\) -> (?P<type>\S+): (?P<sql>.+)")
REST = {"FORMAT": "yyyy-MM-dd HH:mm:ss"}
ARGUMENT = re.compile(r"\$([1-9])")


@dataclass(frozen=True)
class Signature:
    """One line of SIGNATURES for one name. `column` is what stands in the name of a column before the arguments, `rest` behind them."""

    takes: tuple[str, ...]
    type: str
    sql: str
    column: str
    rest: str


@cache
def signatures(lines: str) -> dict[str, list[Signature]]:
    """Of a table such as SIGNATURES, by the name of the function; the first that takes the arguments counts."""
    found: dict[str, list[Signature]] = {}
    for line in filter(None, lines.splitlines()):
        parts = LINE.fullmatch(line)
        assert parts is not None, line
        takes = tuple(filter(None, parts["takes"].split(", ")))
        for name in parts["names"].split():
            function, _, column = name.partition("=")
            column, _, rest = column.partition("+")
            sql = parts["sql"].replace("NAME", function)
            found.setdefault(function, []).append(Signature(takes, parts["type"], sql, column or function, REST.get(rest, rest)))
    return found


def fitting(among: Sequence[Signature], arguments: Sequence[Value]) -> tuple[Signature, list[str]] | None:
    """The first that takes the arguments as they are, else the first that takes them as wider numbers; with their SQL in its types."""
    for is_wider in (False, True):
        for signature in among:
            sql = [_taken(value, kind, is_wider=is_wider) for value, kind in zip(arguments, signature.takes, strict=False)]
            if len(arguments) == len(signature.takes) and None not in sql:
                return signature, [each for each in sql if each is not None]
    return None


def require_known(function: str, at: int) -> None:
    """AmissError where there is no function of that name here."""
    known = {**signatures(SIGNATURES), **SPECIAL}
    if function not in known:
        nearest = get_close_matches(function, [name for name in known if name.isidentifier()], n=1, cutoff=0.75)
        hint = f"did you mean '{nearest[0]}'? If not, " if nearest else ""
        raise AmissError(f"the fast engine knows no function {function}; {hint}{ASK_SPARK}", at)


def called(function: str, arguments: Sequence[Value], at: int) -> Value:
    """What a function that is known makes of values; AmissError where it is not known to mean the same here."""
    if meaning := SPECIAL.get(function):
        try:
            return meaning(arguments, at)
        except ValueError:  # of unpacking: another number of arguments than it takes
            raise differs(f"{function} of {len(arguments)} arguments", at) from None
    found = fitting(signatures(SIGNATURES)[function], arguments)
    if found is None:
        raise differs(f"{function}({', '.join(value.type for value in arguments)})", at)
    signature, sql = found
    name = column_of(signature, arguments)
    return Value(filled(signature.sql, sql), signature.type, name, at)


def column_of(signature: Signature, arguments: Sequence[Value], of: str = "") -> str | None:
    """As Spark names a column of it. `of`: what stands before the arguments."""
    names = [value.name for value in arguments]
    listed = ", ".join([*map(str, names), *([signature.rest] if signature.rest else [])])
    return None if None in names else f"{signature.column}({of}{listed})"


def _taken(value: Value, kind: str, *, is_wider: bool) -> str | None:
    """The SQL of an argument, if it may be one of that kind."""
    if kind.startswith("#"):
        return _written(value, kind)
    if kind == "any" or value.type in kind.split("|"):
        return value.sql
    if kind == "ordered":
        return None if value.type == "void" or has(value.type, "map", "array") else total(value)
    if kind == "number" and is_number(value.type):
        return become(value, "double").sql
    is_number_in_it = kind in {"bigint", "double"} and value.type in {"int", "bigint"} and common((value.type, kind)) == kind
    return become(value, kind).sql if is_wider and is_number_in_it else None


def _written(value: Value, kind: str) -> str | None:
    if kind == "#text":
        return text(value.constant) if value.type == "string" and isinstance(value.constant, str) and value.constant else None
    if kind == "#share":
        is_share = value.type.startswith("decimal") and 0 <= float(value.constant or 2) <= 1
        return repr(float(value.constant)) if is_share else None
    if value.type != "int" or not isinstance(value.constant, int):
        return None
    return str(value.constant) if kind == "#int" or value.constant >= int(kind[1:]) else None


def filled(sql: str, arguments: Sequence[str]) -> str:
    """SQL of a signature with the arguments in their places."""
    done = ARGUMENT.sub(lambda place: f"({arguments[int(place[1]) - 1]})", sql)
    return f"({done.replace('INSTANT', text(INSTANT))})"
