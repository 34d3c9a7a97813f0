"""Event times: texts to microseconds since 1970 in UTC; None where a text is no instant of the years 1 to 9999 in the declared format.

Reading raises nothing. A format may be a pattern, as conf/sources.yml writes it (yyyy-MM-dd HH:mm:ss).
"""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from orchestration.audit.verify.numerals import number, rounded
from orchestration.errors import TidemarkError
from silver.spec import Time

MICROS = 1_000_000
MICROS_PER = {"epoch_s": MICROS, "epoch_ms": 1_000, "epoch_us": 1}
YEAR_1, YEAR_10000 = -62_135_596_800 * MICROS, 253_402_300_800 * MICROS
EPOCH_DAY = date(1970, 1, 1).toordinal()
DAYS_IN_400_YEARS = 146_097
ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2})"
    r"(?::([0-9]{2})(?:\.([0-9]+))?(?: ?(Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?)?"
)
"""A day and a minute are required, a second before a zone; digits of a fraction beyond the sixth are cut off."""
OFFSET = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})?:?([0-9]{2})?")
LARGEST_OFFSET_SECONDS = 18 * 3600

DAY = "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
"""Of any year, so without a February 29."""
PLAIN = {
    "iso": rf"[1-9][0-9]{{3}}-{DAY}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?Z",
    "epoch_s": "[1-9][0-9]{0,9}",
    "epoch_ms": "[1-9][0-9]{0,12}",
    "epoch_us": "[1-9][0-9]{0,14}|[1-8][0-9]{15}",  # as many microseconds as a float can hold
}
"""By format: texts that Arrow reads as this module does."""

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

Reader = Callable[[str], int | None]


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


def reader(time: Time) -> Reader:
    """What reads texts in this format; a pattern that cannot be checked is refused with a TidemarkError."""
    if time.format in MICROS_PER:
        return _epoch_reader(MICROS_PER[time.format])
    zone = ZoneInfo(time.time_zone)
    fields_of = _iso_fields if time.format == "iso" else _fields_reader(time.format)

    @lru_cache(maxsize=65_536)  # devices that measure together send the same text
    def read(text: str) -> int | None:
        fields = fields_of(text)
        return None if fields is None else _instant(fields, zone)

    return read


def instants_of(texts: pa.Array, time: Time) -> pa.Array:
    """What `reader` makes of each text."""
    is_plain = pc.match_substring_regex(texts, rf"\A(?:{PLAIN[time.format]})\z") if time.format in PLAIN else pa.repeat(False, len(texts))
    plain = _plain_instants(pc.if_else(is_plain, texts, None), time)
    others = texts.filter(plain.is_null())
    return pc.replace_with_mask(plain, plain.is_null(), pa.array(map(reader(time), others.to_pylist()), pa.int64()))


def _plain_instants(texts: pa.Array, time: Time) -> pa.Array:
    if time.format in MICROS_PER:
        return pc.multiply(texts.cast(pa.int64()), MICROS_PER[time.format])
    return texts.cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def _epoch_reader(micros_per_unit: int) -> Reader:
    def read(text: str) -> int | None:
        amount = number(text)
        micros = None if amount is None else rounded(amount * float(micros_per_unit))
        return micros if micros is not None and 0 <= micros < YEAR_10000 else None

    return read


def _iso_fields(text: str) -> Fields | None:
    match = ISO.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    return Fields(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), micros, zone)


def _instant(fields: Fields, declared: ZoneInfo) -> int | None:
    if fields.hour > 23 or fields.minute > 59 or fields.second > 59:
        return None
    try:
        # The calendar repeats every 400 years; Python's begins in the year 1 and ends in 9999.
        day = date(fields.year % 400 + 400, fields.month, fields.day).toordinal() + (fields.year // 400 - 1) * DAYS_IN_400_YEARS
    except ValueError:
        return None
    seconds = (day - EPOCH_DAY) * 86_400 + fields.hour * 3600 + fields.minute * 60 + fields.second
    offset = _offset_at(fields, declared) if fields.zone is None else _named_offset(fields, fields.zone)
    micros = None if offset is None else (seconds - offset) * MICROS + fields.micros
    return micros if micros is not None and YEAR_1 <= micros < YEAR_10000 else None


def _named_offset(fields: Fields, zone: str) -> int | None:
    """Seconds ahead of UTC that a text names; None where there is no such place on earth."""
    match = OFFSET.fullmatch(zone)
    if match is not None:
        return _offset(match)
    if zone.upper() in {"Z", "UTC", "GMT"}:
        return 0
    try:
        return _offset_at(fields, ZoneInfo(zone))
    except (KeyError, ValueError, OSError):
        return None


def _offset(match: re.Match[str]) -> int | None:
    sign, hours, minutes, seconds = match[1], *(int(match[n] or 0) for n in (2, 3, 4))
    offset = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or offset > LARGEST_OFFSET_SECONDS:
        return None
    return -offset if sign == "-" else offset


def _offset_at(fields: Fields, zone: ZoneInfo) -> int:
    """Of a local time: in the hour that a change to winter time repeats, of the earlier; in the hour that is skipped, of before."""
    year = fields.year if 1 <= fields.year <= 9999 else 400
    local = datetime(year, fields.month, fields.day, fields.hour, fields.minute, fields.second, tzinfo=zone)
    return round((local.utcoffset() or timedelta()).total_seconds())


def _fields_reader(pattern: str) -> Callable[[str], Fields | None]:
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
