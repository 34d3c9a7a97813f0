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

from orchestration.audit.verify.epochs import MICROS, MICROS_PER, PER_MICRO, YEAR_10000, Instant, Reader, epoch_reader, fine_reader
from orchestration.audit.verify.numerals import number, rounded
from orchestration.errors import TidemarkError
from silver.spec import Time

NUMBER_FORMATS = (*MICROS_PER, *PER_MICRO, "excel")
YEAR_1 = -62_135_596_800 * MICROS
EPOCH_DAY = date(1970, 1, 1).toordinal()
DAYS_IN_400_YEARS = 146_097
SPREADSHEET, DAY_0_OF_SPREADSHEET = "excel", date(1899, 12, 30).toordinal() - EPOCH_DAY
ISO = re.compile(
    r"([0-9]{4})-([0-9]{2}-[0-9]{2}|W[0-9]{2}-[1-7]|[0-9]{3})[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
    r"(?: ?([Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?"
)
"""A day and a minute are required; digits of a fraction beyond the sixth are cut off."""
OFFSET = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})?:?([0-9]{2})?")
LARGEST_OFFSET_SECONDS = 18 * 3600

DAY = "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
"""Month and day in any year, so without a February 29."""
PLAIN = {
    "iso": rf"[1-9][0-9]{{3}}-{DAY}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?Z",
    "epoch_s": "[1-9][0-9]{0,9}",
    "epoch_ms": "[1-9][0-9]{0,12}",
    "epoch_us": "[1-9][0-9]{0,14}|[1-8][0-9]{15}",  # as many microseconds as a float can hold
}
"""Texts by format that Arrow reads as this module does."""

MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
SUPPORTED = ["y", "M", "d", "D", "H", "h", "m", "s", "S", "a", "z", "x", "X", "Z"]
ZONED = dict.fromkeys(("xx", "Z", "ZZ", "ZZZ"), r"[+-]\d{4}") | {"x": r"[+-]\d\d(?:\d\d)?", "xxx": r"[+-]\d\d:\d\d"}
ZONED |= {"X": rf"Z|{ZONED['x']}", "XX": rf"Z|{ZONED['xx']}", "XXX": rf"Z|{ZONED['xxx']}"}
ZONED |= {"z": r"Z|UTC|GMT|[+-]\d\d:\d\d(?::\d\d)?|[A-Za-z]+(?:[/_+-][A-Za-z0-9]+)*"}
ABBREVIATIONS = (
    "Z 0,UT 0,UTC 0,GMT 0,WET 0,WEST 1,CET 1,CEST 2,EET 2,EEST 3,SAST 2,MSK 3,JST 9,KST 9,AEST 10,AEDT 11,NZST 12,NZDT 13,"
    "EST -5,EDT -4,CST -6,CDT -5,MST -7,MDT -6,PST -8,PDT -7,AKST -9,AKDT -8,HST -10"
)
FIXED_ZONES = {name: int(hours) for name, hours in map(str.split, ABBREVIATIONS.split(","))}
"""Hours ahead of UTC of the letters that mean one zone, in summer and in winter."""
PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|(.)", re.DOTALL)


class Fields(NamedTuple):
    """The fields of a text for an instant; `zone` None: it names no zone."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    micros: int
    zone: str | None


def reader(time: Time) -> Reader:
    """Return a function that reads texts in this format; TidemarkError for a pattern that cannot be checked."""
    if time.format in MICROS_PER:
        return epoch_reader(MICROS_PER[time.format])
    if time.format in PER_MICRO:
        return fine_reader(*PER_MICRO[time.format])
    zone = ZoneInfo(time.time_zone)
    if time.format == SPREADSHEET:
        return _spreadsheet_reader(zone, time.repeated_hour)
    fields_of = _iso_fields if time.format == "iso" else _fields_reader(time.format)

    @lru_cache(maxsize=65_536)  # devices that measure together send the same text
    def read(text: str) -> Instant | None:
        fields = fields_of(text)
        return None if fields is None else _instant(fields, zone, time.repeated_hour)

    return read


def instants_of(texts: pa.Array, time: Time) -> tuple[pa.Array, pa.Array]:
    """Apply `reader` to each text: return its microseconds, and whether it is unique; texts that are no instants are unique."""
    is_plain = pc.match_substring_regex(texts, rf"\A(?:{PLAIN[time.format]})\z") if time.format in PLAIN else pa.repeat(False, len(texts))
    plain = pc.if_else(is_plain, texts, None)
    if time.format in MICROS_PER:
        plain = pc.multiply(plain.cast(pa.int64()), MICROS_PER[time.format])
    else:
        plain = plain.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    others = texts.filter(plain.is_null())
    read = [instant or (None, True) for instant in map(reader(time), others.to_pylist())]
    micros, is_unique = (pa.array([instant[n] for instant in read], type) for n, type in enumerate((pa.int64(), pa.bool_())))
    return pc.replace_with_mask(plain, plain.is_null(), micros), pc.replace_with_mask(plain.is_valid(), plain.is_null(), is_unique)


def _spreadsheet_reader(zone: ZoneInfo, repeated_hour: str | None) -> Reader:
    """Days of local time: to the second, or with nine decimals to the millisecond."""

    def read(text: str) -> Instant | None:
        days, per_second = number(text), 1_000 if re.search(r"\.[0-9]{9}", text) else 1
        units = None if days is None else rounded(days * (86_400.0 * per_second))
        if units is None or not 0 <= units * MICROS // per_second < YEAR_10000:
            return None
        seconds, rest = divmod(units, per_second)
        day = date.fromordinal(EPOCH_DAY) + timedelta(days=DAY_0_OF_SPREADSHEET + seconds // 86_400)
        hour, minute, second = seconds % 86_400 // 3600, seconds % 3600 // 60, seconds % 60
        fields = Fields(day.year, day.month, day.day, hour, minute, second, rest * MICROS // per_second, None)
        return _instant(fields, zone, repeated_hour)

    return read


def _iso_fields(text: str) -> Fields | None:
    match = ISO.fullmatch(text)
    if match is None:
        return None
    year, day, hour, minute, second, fraction, zone = match.groups()
    micros = int(fraction[:6].ljust(6, "0")) if fraction else 0
    if day.startswith("W"):
        ymd = _of_week(int(year), int(day[1:3]), int(day[4]))
    elif day.isdigit():
        ymd = _of_year(int(year), int(day))
    else:
        ymd = int(year), int(day[:2]), int(day[3:])
    return None if ymd is None else Fields(*ymd, int(hour), int(minute), int(second or 0), micros, zone)


def _instant(fields: Fields, declared: ZoneInfo, repeated_hour: str | None) -> Instant | None:
    is_end_of_day = (fields.hour, fields.minute, fields.second, fields.micros) == (24, 0, 0, 0)
    if (fields.hour > 23 and not is_end_of_day) or fields.minute > 59 or fields.second > 59:
        return None
    try:
        # The calendar repeats every 400 years; Python's begins in the year 1 and ends in 9999.
        day = date(fields.year % 400 + 400, fields.month, fields.day).toordinal() + (fields.year // 400 - 1) * DAYS_IN_400_YEARS
    except ValueError:
        return None
    seconds = (day - EPOCH_DAY) * 86_400 + fields.hour * 3600 + fields.minute * 60 + fields.second
    offsets = _offsets_at(fields, declared) if fields.zone is None else _named_offsets(fields, fields.zone)
    if offsets is None:
        return None
    offset = min(offsets) if repeated_hour == "second" else offsets[0]
    micros = (seconds - offset) * MICROS + fields.micros
    return (micros, repeated_hour is not None or offsets[0] == offsets[1]) if YEAR_1 <= micros < YEAR_10000 else None


def _named_offsets(fields: Fields, zone: str) -> tuple[int, int] | None:
    """Return the offsets in a zone that a text names, like `_offsets_at`; None if there is no such zone."""
    match = OFFSET.fullmatch(zone)
    if match is not None:
        offset = _offset(match)
        return None if offset is None else (offset, offset)
    if zone.upper() in FIXED_ZONES:
        return (FIXED_ZONES[zone.upper()] * 3600,) * 2
    try:
        return _offsets_at(fields, ZoneInfo(zone)) if "/" in zone else None
    except (KeyError, ValueError, OSError):
        return None


def _offset(match: re.Match[str]) -> int | None:
    sign, hours, minutes, seconds = match[1], *(int(match[n] or 0) for n in (2, 3, 4))
    offset = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or offset > LARGEST_OFFSET_SECONDS:
        return None
    return -offset if sign == "-" else offset


def _offsets_at(fields: Fields, zone: ZoneInfo) -> tuple[int, int]:
    """Seconds ahead of UTC of a local time, twice the same where it is there once. In the hour that a change to winter time repeats, of the
    earlier and of the later; in the hour that is skipped, of before and of after."""
    year = fields.year if 1 <= fields.year < 9999 else fields.year % 400 + (400 if fields.year < 1 else 9200)
    start = datetime(year, fields.month, fields.day, fields.hour % 24, fields.minute, fields.second, tzinfo=zone)
    local = start + timedelta(days=fields.hour // 24)
    before, after = local.utcoffset(), local.replace(fold=1).utcoffset()
    return round((before or timedelta()).total_seconds()), round((after or timedelta()).total_seconds())


def _fields_reader(pattern: str) -> Callable[[str], Fields | None]:
    """A function that reads texts of this pattern; TidemarkError for a letter that it does not support."""
    pieces = [_expression(pattern, piece) for piece in PIECE.finditer(pattern)]
    expression = re.compile("".join(pieces), re.IGNORECASE | re.ASCII)

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
    width, is_fraction = len(piece[0]), pattern[: piece.start()].rstrip("'[").endswith((".", ",", "s"))
    expressions = {
        "y": "(?P<short>[0-9]{2})" if width == 2 else f"(?P<year>-?[0-9]{{{width if width > 1 else '1,4'}}})",
        "M": f"(?P<name>{'|'.join(_names(width))})" if width > 2 else f"(?P<month>{_digits(width)})",
        **{
            key: f"(?P<{name}>{_digits(width)})"
            for key, name in {"d": "day", "H": "hour", "h": "half", "m": "minute", "s": "second"}.items()
        },
        "S": f"(?P<{'fraction' if is_fraction else f'number_{width}'}>[0-9]{{1,{width}}})",
        "a": r"(?P<noon>[AP](?:M|\.M\.|\.M|M\.|\.)?)",
        "D": f"(?P<day_of_year>[0-9]{{{'3' if width == 3 else '1,3'}}})",
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
    for name in texts:
        if name.startswith("number_"):
            micros = whole(name) * MICROS // 10 ** int(name.removeprefix("number_"))
    ymd = _of_year(year, whole("day_of_year")) if texts.get("day_of_year") else (year, month, whole("day", 1))
    if hour is None or ymd is None:
        return None
    return Fields(*ymd, hour, whole("minute"), whole("second"), micros, texts.get("zone"))


def _of_year(year: int, day_of_year: int) -> tuple[int, int, int] | None:
    """Year, month and day; None for day 366 of a year that has 365, and for day 0."""
    alike = year % 400 + 400
    day = date(alike, 1, 1) + timedelta(days=day_of_year - 1)
    return (year, day.month, day.day) if day.year == alike else None


def _of_week(year: int, week: int, weekday: int) -> tuple[int, int, int] | None:
    """Year, month and day of a day of an ISO week; None for a week that the year does not have. Weeks repeat every 400 years too."""
    alike = year % 400 + 400
    try:
        day = date.fromisocalendar(alike, week, weekday)
    except ValueError:
        return None
    return year + day.year - alike, day.month, day.day


def _hour(hour: int, half: str | None, noon: str | None) -> int | None:
    """Convert an hour of a clock with 24 hours, or with 12 and a word for the half of the day."""
    if half is None:
        return hour
    if not 1 <= int(half) <= 12:
        return None
    return int(half) % 12 + (12 if (noon or "").upper().startswith("P") else 0)
