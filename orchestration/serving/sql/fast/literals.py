"""What is written out in a query: strings, numbers, instants, lengths of time, patterns; values of time are in UTC."""

import re
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

from sqlglot import exp

from orchestration.serving.sql.fast.errors import SqlError, unsupported

ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\([0-3][0-7]{2})|\\(.)", re.DOTALL)
QUOTED = re.compile(r"""[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*["]""", re.DOTALL)
SHORT = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?(BD|[LD])?", re.IGNORECASE)
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
    """,
    re.VERBOSE,
)
KINDS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\x0B\f\r"}
"""In Java these are of ASCII only."""


def string(written: str, node: exp.Expr) -> str:
    """What a string of the query says, by its source text; strings beside each other are one, a doubled quote in one is a quote."""
    if QUOTED.sub("", written).strip():
        raise unsupported("a comment between strings", node)
    said = ""
    for piece in QUOTED.findall(written):
        is_raw, quote = piece[0] in "rR", piece[-1]
        # Doubled quotes are taken first, so that a backslash before one keeps its meaning.
        parts = re.findall(rf"(?:[^{quote}\\]|\\.)+|{quote}{quote}", piece[1:-1], re.DOTALL)
        said += piece[2:-1] if is_raw else "".join(quote if part == quote * 2 else ESCAPE.sub(_unescaped, part) for part in parts)
    try:
        return said.encode("utf-16", "surrogatepass").decode("utf-16")  # two halves of a character become one
    except ValueError:
        raise SqlError("an escape in this string stands for no character", node) from None


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    if code:
        return chr(int(code, 16)) if int(code, 16) < 0x110000 else "\ud800"
    return chr(int(escape[3], 8)) if escape[3] else SHORT.get(escape[4], escape[4])


def number(written: str, node: exp.Expr) -> tuple[str, Any]:
    """Type and value: whole ones are int, or bigint where they are too large; those with a point are decimal, with an exponent double."""
    match = NUMBER.fullmatch(written.removeprefix("-"))
    if match is None:
        raise unsupported(f"the number {written}", node)
    sign, (digits, exponent, suffix) = "-" * written.startswith("-"), match.groups()
    suffix = (suffix or "").upper()
    if suffix == "BD" or (not suffix and "." in digits and not exponent):
        return _decimal(sign, digits, exponent, node)
    if suffix == "D" or (not suffix and exponent):
        return "double", float(f"{sign}{digits}{exponent or ''}")
    value = int(sign + digits) if digits.isdigit() and not exponent else 2**63
    for kind in ("bigint",) if suffix else LARGEST:
        if -LARGEST[kind] <= value < LARGEST[kind]:
            return kind, value
    raise unsupported(f"the number {written}", node)


def _decimal(sign: str, digits: str, exponent: str | None, node: exp.Expr) -> tuple[str, str]:
    whole, _, fraction = digits.partition(".")
    whole = whole.lstrip("0")
    precision = max(len(whole) + len(fraction), 1)
    if exponent or precision > 38:
        raise unsupported(f"the number {digits}", node, "write it without an exponent")
    return f"decimal({precision},{len(fraction)})", f"{sign}{whole or '0'}{'.' * bool(fraction)}{fraction}"


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
    if isinstance(node, exp.Add):
        parts = [length(node.this), length(node.expression)]
        months, micros = sum(part[0] for part in parts), sum(part[1] for part in parts)
    else:
        text = node.this.this if isinstance(node.this, exp.Literal) else f"-{node.this.this.this}" if isinstance(node.this, exp.Neg) else ""
        pairs = [(text, node.text("unit"))] if node.args.get("unit") else re.findall(r"(\S+)\s+(\S+)", text)
        months, micros = 0, 0
        for count, plural in pairs or [("", "")]:
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
    out, at = "", 0
    while at < len(pattern):
        match = PARTS.match(pattern, at)
        if match is None or (match.lastgroup == "end" and match.end() != len(pattern)):
            raise unsupported(f"the regular expression from {pattern[at : at + 10]!r} on", node, "use LIKE")
        out, at = out + _of_re2(match.lastgroup or "", match[0]), match.end()
    try:
        re.compile(pattern)
    except re.error:
        raise unsupported(f"the regular expression {pattern!r}", node, "use LIKE") from None
    return out


def _of_re2(kind: str, part: str) -> str:
    match kind:
        case "any":
            return f"[^{LINE_END}]"
        case "end":  # of the text, or before the line end that ends it
            return rf"(?:\r\n|[{LINE_END}])?\z"
        case "begin":
            return r"\A"
        case "kind":
            return f"[{'^' if part[1].isupper() else ''}{KINDS[part[1].lower()]}]"
        case "set":
            return re.sub(r"\\([dws])", lambda match: KINDS[match[1]], part)
    return part
