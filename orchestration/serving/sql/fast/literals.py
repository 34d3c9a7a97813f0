"""What is written out in a query: strings, numbers, instants, lengths of time, patterns; values of time are in UTC."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import pairwise, zip_longest
from typing import Any

from sqlglot import exp

from orchestration.serving.sql.fast.errors import SqlError, unsupported

ESCAPE = r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\([0-3][0-7]{2})|\\(.)"
QUOTED = re.compile(r"""[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*["]""", re.DOTALL)
SHORT = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
NUMBER = re.compile(r"(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(E[+-]?[0-9]+)?([LD]?)")
LARGEST = {"int": 2**31, "bigint": 2**63}
MICROS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
MONTHS = {"year": 12, "month": 1}
INSTANT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)(Z|[+-][0-9]{2}:[0-9]{2})?)?")
FORMATS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
LIKE = re.compile(r"(?:[^\\]|\\[%_\\])*", re.DOTALL)
LINE_END = r"\n\r\x{85}\x{2028}\x{2029}"
PARTS = re.compile(
    r"""
    (?P<plain>[A-Za-z0-9_ \-,:;/@#%&=~!"'<>]|[^\x00-\x7f])
    | (?P<escaped>\\[.\\*+?()\[\]{}|^$/\-])
    | (?P<kind>\\[dDwWsS])
    | (?P<any>\.)
    | (?P<set>\[\^?(?:[A-Za-z0-9_ .,:;/@%=~!"'<>()*+?$]|\\[.\\\[\]\-dws]|[A-Za-z0-9]-[A-Za-z0-9])+\])
    | (?P<group>\((?!\?)|\(\?:|\)|\|)
    | (?P<begin>\^)
    | (?P<end>\$)
    | (?P<repeat>(?:[*+?]|\{[0-9]{1,3}(?:,(?:[0-9]{1,3})?)?\})\??(?![*+?{]))
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
KINDS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\x0B\f\r"}
"""In Java these are of ASCII only."""


def string(written: str, node: exp.Expr) -> str:
    """What a string of the query says, by its source text; strings beside each other are one, a doubled quote in one is a quote."""
    if QUOTED.sub("", written).strip():
        raise unsupported("a comment between strings", node)
    said = ""
    for piece in QUOTED.findall(written):
        # Of a doubled quote the first goes, but where a backslash stands before it.
        unescaped = partial(re.sub, rf"{ESCAPE}|{piece[-1]}({piece[-1]})", _unescaped, flags=re.DOTALL)
        said += piece[2:-1] if piece[0] in "rR" else unescaped(piece[1:-1])
    try:
        return said.encode("utf-16", "surrogatepass").decode("utf-16")  # two halves of a character become one
    except ValueError:
        raise SqlError("an escape in this string stands for no character", node) from None


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    if code:
        return chr(int(code, 16)) if int(code, 16) < 0x110000 else "\ud800"
    return chr(int(escape[3], 8)) if escape[3] else escape[5] or SHORT.get(escape[4], escape[4])


def number(written: str, node: exp.Expr) -> tuple[str, Any]:
    """Type and value: whole ones are int, or bigint where they are too large; those with a point are decimal, with an exponent double."""
    match = NUMBER.fullmatch(written.upper())
    digits, exponent, suffix = match.groups("") if match else ("", "", "")
    if suffix == "D" or (exponent and not suffix):
        return "double", float(digits + exponent)
    if "." in digits and not suffix:
        value = Decimal(digits)
        scale = -int(value.as_tuple().exponent)
        if (precision := max(len(value.as_tuple().digits), scale)) <= 38:
            return f"decimal({precision},{scale})", format(value, "f")
    elif digits and "." not in digits and not exponent:
        for kind in ("bigint",) if suffix else LARGEST:
            if -LARGEST[kind] <= int(digits) < LARGEST[kind]:
                return kind, int(digits)
    raise unsupported(f"the number {written}", node)


def instant(text: str, node: exp.Expr | None) -> datetime:
    """Without a zone it is in UTC."""
    match = INSTANT.fullmatch(text.strip())
    if not match:
        raise unsupported(f"the instant {text!r}", node, "write it such as 2026-01-05T12:00:00Z")
    day, clock, zone = match.groups()
    try:
        return datetime.fromisoformat(f"{day}T{clock or '00:00'}{zone or 'Z'}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise SqlError(f"there is no instant {text!r}", node) from None


def day(text: str, node: exp.Expr | None) -> date:
    """A date."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text.strip()):
        raise unsupported(f"the date {text!r}", node, "write it such as 2026-01-05")
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise SqlError(f"there is no date {text!r}", node) from None


def length(node: exp.Expr) -> tuple[int, int]:
    """Months and microseconds of an interval, of which one is 0."""
    words = f"{node.name if isinstance(node.this, exp.Literal) else '?'} {node.text('unit')}".split()
    months, micros = 0, 0
    for count, plural in zip_longest(words[::2], words[1::2], fillvalue=""):
        unit = plural.lower().removesuffix("s")
        if not re.fullmatch(r"[+-]?[0-9]{1,9}", count) or unit not in MICROS | MONTHS:
            raise unsupported(f"an interval of {count} {plural}", node, "write whole numbers of weeks, days, hours, minutes, seconds")
        months, micros = months + int(count) * MONTHS.get(unit, 0), micros + int(count) * MICROS.get(unit, 0)
    if months and micros:
        raise unsupported("this interval", node, "write one such as interval 1 hour")
    return months, micros


def time_format(pattern: str, node: exp.Expr | None) -> str:
    """A pattern of date_format as DuckDB's strftime takes it. Spark takes MMMM for the name of the month, not for MM twice."""
    parts = re.findall(r"yyyy|MM|dd|HH|mm|ss|[-:./ _]+|.", pattern, re.DOTALL)
    is_plain = all(part in FORMATS or re.fullmatch(r"[-:./ _]+", part) for part in parts)
    if not is_plain or any(one[-1] == other[0] and other in FORMATS for one, other in pairwise(parts)):
        raise unsupported(f"the format {pattern!r}", node, "use yyyy, MM, dd, HH, mm, ss and signs between them")
    return "".join(FORMATS.get(part, part) for part in parts)


def like_pattern(pattern: str, node: exp.Expr | None) -> str:
    r"""The same pattern, in which a backslash stands before %, _ or itself; Spark refuses any other."""
    if not LIKE.fullmatch(pattern):
        raise SqlError(r"in a pattern of LIKE a backslash stands before %, _ or \ only", node)
    return pattern


def regular_expression(pattern: str, node: exp.Expr | None) -> str:
    """One of Java as one of RE2 that finds the same in texts."""
    parts = [*PARTS.finditer(pattern)]
    at = next(
        (part.start() for part in parts if part.lastgroup == "other" or (part.lastgroup == "end" and part.end() < len(pattern))), None
    )
    if at is not None:
        raise unsupported(f"the regular expression from {pattern[at : at + 10]!r} on", node, "use LIKE")
    try:
        re.compile(pattern)
    except re.error:
        raise unsupported(f"the regular expression {pattern!r}", node, "use LIKE") from None
    return "".join(_of_re2(part.lastgroup or "", part[0]) for part in parts)


def _of_re2(kind: str, part: str) -> str:
    if kind in {"kind", "set"}:
        within = re.sub(r"\\([dws])", lambda match: KINDS[match[1]], part.lower() if kind == "kind" else part)
        return within if kind == "set" else f"[{'^' * part[1].isupper()}{within}]"
    # `$` is the end of the text, or before the line end that ends it.
    return {"any": f"[^{LINE_END}]", "end": rf"(?:\r\n|[{LINE_END}])?\z", "begin": r"\A"}.get(kind, part)
