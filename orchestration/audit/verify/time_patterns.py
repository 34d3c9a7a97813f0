"""Datetime patterns as conf/sources.yml writes them (yyyy-MM-dd HH:mm:ss), turned into functions that read the fields of a text."""

import re
from collections.abc import Callable
from typing import NamedTuple

from orchestration.errors import TidemarkError

MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
SUPPORTED = ["y", "M", "d", "H", "h", "m", "s", "S", "a", "z", "X", "Z"]
ZONED = {
    "X": r"Z|[+-]\d\d(?:\d\d)?",
    "XX": r"Z|[+-]\d{4}",
    "XXX": r"Z|[+-]\d\d:\d\d",
    "Z": r"[+-]\d{4}",
    "ZZ": r"[+-]\d{4}",
    "ZZZ": r"[+-]\d{4}",
    "z": r"Z|UTC|GMT|[+-]\d\d:\d\d(?::\d\d)?|[A-Za-z]+(?:[/_+-][A-Za-z0-9]+)*",
}
NOTHING = "(?!)"
PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|(.)", re.DOTALL)
FRACTION_IN_YEAR = re.compile(r"(?<!y)(?:y|yyy+)(?:(?<!M)MM?(?!M)|[dHhms])*SS")


class Fields(NamedTuple):
    """What a text says about an instant; `zone` None: it names no zone."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    micros: int
    zone: str | None


def fields_reader(pattern: str) -> Callable[[str], Fields | None]:
    """A function that reads texts of this pattern; TidemarkError for a letter that it does not support."""
    pieces = [_expression(pattern, piece) for piece in PIECE.finditer(pattern)]
    # Spark never finds a fraction that nothing divides from a year: that may be longer than its letters.
    never = NOTHING if FRACTION_IN_YEAR.search(pattern) else ""
    expression = re.compile(never + "".join(pieces), re.IGNORECASE | re.ASCII)

    def read(text: str) -> Fields | None:
        match = expression.fullmatch(text)
        return None if match is None else _fields(match.groupdict())

    return read


def _expression(pattern: str, piece: re.Match[str]) -> str:
    quoted, letter, literal = piece.groups()
    if literal is not None:
        return {"[": "(?:", "]": ")?"}.get(literal) or re.escape(literal)
    if letter is None:
        return re.escape(quoted.replace("''", "'") or "'")
    width = len(piece[0])
    expressions = {
        "y": "(?P<short>[0-9]{2})" if width == 2 else f"(?P<year>-?[0-9]{{{width if width > 1 else '1,4'}}})",
        "M": f"(?P<name>{'|'.join(_names(width))})" if width > 2 else f"(?P<month>{_digits(width)})",
        **{
            key: f"(?P<{name}>{_digits(width)})"
            for key, name in {"d": "day", "H": "hour", "h": "half", "m": "minute", "s": "second"}.items()
        },
        "S": f"(?P<fraction>[0-9]{{1,{width}}})",
        "a": "(?P<noon>AM|PM)",
    }
    expression = expressions.get(letter) or (f"(?P<zone>{ZONED[piece[0]]})" if piece[0] in ZONED else None)
    if expression is None:
        letters = " ".join(SUPPORTED)
        raise TidemarkError(f"conf/sources.yml: time format '{pattern}' cannot be verified: {piece[0]} is not understood; use {letters}")
    return expression


def _digits(width: int) -> str:
    return "[0-9]{2}" if width > 1 else "[0-9]{1,2}"


def _names(width: int) -> list[str]:
    return [name if width > 3 else name[:3] for name in MONTHS]


def _fields(texts: dict[str, str | None]) -> Fields | None:
    def whole(name: str, default: int = 0) -> int:
        return int(texts.get(name) or default)

    hour = _hour(whole("hour"), texts.get("half"), texts.get("noon"))
    month = _names(3).index(str(texts["name"])[:3].title()) + 1 if texts.get("name") else whole("month", 1)
    year = 2000 + whole("short") if texts.get("short") else whole("year")
    micros = int((texts.get("fraction") or "")[:6].ljust(6, "0"))
    if hour is None:
        return None
    return Fields(year, month, whole("day", 1), hour, whole("minute"), whole("second"), micros, texts.get("zone"))


def _hour(hour: int, half: str | None, noon: str | None) -> int | None:
    """Of a clock with 24 hours, or with 12 and a word for the half of the day."""
    if half is None:
        return hour
    if not 1 <= int(half) <= 12:
        return None
    return int(half) % 12 + (12 if (noon or "").upper() == "PM" else 0)
