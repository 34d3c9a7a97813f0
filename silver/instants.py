"""Event times, as devices write them: texts to instants, of Arrow. What cannot be read becomes null, for the rules to catch.

A format is a pattern of Spark (yyyy-MM-dd HH:mm:ss); iso is one too. A pattern becomes one regular expression, whose groups are numbers.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from silver.numbers import to_numbers
from silver.spec import Time

INSTANT = pa.timestamp("us", "UTC")
MICROS_PER = {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1}
SECOND, DAY, LARGEST_OFFSET = 1_000_000, 86_400, 18 * 3600
YEAR_1, YEAR_10000 = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND
DAYS_IN_400_YEARS = 146_097
ISO = (
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})[ T](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?(?: ?(?P<zone>Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?))?)?"
)
"""A day and a minute are required, a second before a zone; digits of a fraction beyond the sixth are cut off."""
OF_ARROW = r"\A[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?Z\z"
"""Most of them, as Arrow reads them too: 0.1 us a text instead of 1.3 us."""
OFFSET = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})?:?([0-9]{2})?")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
FULL_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
ONE_OR_TWO, TWO = "[0-9]{1,2}", "[0-9]{2}"
ZONES = {
    "X": r"Z|[+-][0-9]{2}(?:[0-9]{2})?",
    "XX": r"Z|[+-][0-9]{4}",
    "XXX": r"Z|[+-][0-9]{2}:[0-9]{2}",
    **dict.fromkeys(("Z", "ZZ", "ZZZ"), r"[+-][0-9]{4}"),
    "z": r"Z|UTC|GMT|[+-][0-9]{2}:[0-9]{2}(?::[0-9]{2})?|[A-Za-z]+(?:[/_+-][A-Za-z0-9]+)*",
}
TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.DOTALL)
RUN_TOGETHER = re.compile(r"(?<!y)(?:y|yyy+)(?:(?<!M)MM?(?!M)|[dHhms])*SS")
"""A year with a fraction and nothing between them: Java lets the year take all digits, so Spark reads no such text."""

Whole = NDArray[np.int64]


def to_instants(texts: pa.Array, time: Time) -> pa.Array:
    """Instants of the years 1 to 9999; null where a text is not one in the format of `time`.

    Others that read the tables have no other years, and an offset is enough to get there: 0001-01-01T00:00:00+01:00.
    A local time in the hour that a change to winter time repeats is read as the earlier of the two.
    """
    encoded = texts.dictionary_encode()  # devices that measure together send the same text
    distinct = encoded.dictionary
    micros = _epochs(distinct, MICROS_PER[time.format]) if time.format in MICROS_PER else _dates(distinct, time)
    in_range = pc.and_(pc.greater_equal(micros, YEAR_1), pc.less(micros, YEAR_10000))
    return pc.if_else(in_range, micros, None).cast(INSTANT).take(encoded.indices)


def _epochs(texts: pa.Array, micros_per_unit: int) -> pa.Array:
    """Fractions count; before 1970 is null."""
    micros = pc.round(pc.multiply(to_numbers(texts), float(micros_per_unit)), round_mode="half_towards_infinity")
    is_sound = pc.and_(pc.greater_equal(micros, 0.0), pc.less(micros, float(YEAR_10000)))
    return pc.if_else(is_sound, micros, None).cast(pa.int64())


def _dates(texts: pa.Array, time: Time) -> pa.Array:
    if time.format != "iso":
        return _of_pattern(texts, time)
    plain = pc.if_else(pc.match_substring_regex(texts, OF_ARROW), texts, None).cast(INSTANT).cast(pa.int64())
    is_missing = plain.is_null()
    return plain if plain.null_count == 0 else pc.replace_with_mask(plain, is_missing, _of_pattern(texts.filter(is_missing), time))


def _of_pattern(texts: pa.Array, time: Time) -> pa.Array:
    found = pc.extract_regex(texts, _expression(time.format))
    is_found = found.is_valid()
    fields = {field.name: found.field(n).filter(is_found) for n, field in enumerate(found.type)}
    seconds, is_date = _local_seconds(fields)
    offsets, is_zone = _offsets(fields.get("zone"), seconds, ZoneInfo(time.time_zone))
    micros = pa.array((seconds - offsets) * SECOND + _micros(fields.get("fraction"), len(seconds)), mask=~(is_date & is_zone))
    places = np.cumsum(is_found.to_numpy(zero_copy_only=False)) - 1
    return micros.take(pa.array(places, mask=~is_found.to_numpy(zero_copy_only=False)))


def _local_seconds(fields: dict[str, pa.Array]) -> tuple[Whole, NDArray[np.bool_]]:
    """Seconds since 1970 of the date and the time of day, in whatever zone they are; and whether there is such a date and time."""
    count = len(next(iter(fields.values())))

    def whole(name: str, default: int) -> Whole:
        if name not in fields:
            return np.full(count, default)
        texts = fields[name]
        return _whole(pc.fill_null(pc.if_else(pc.equal(texts, ""), None, texts).cast(pa.int64()), default))

    year = 2000 + whole("short", 0) if "short" in fields else whole("year", 1970)
    month = _months(fields["name"]) if "name" in fields else whole("month", 1)
    day, minute, second = whole("day", 1), whole("minute", 0), whole("second", 0)
    half = whole("half", 0)
    of_noon = pc.equal(pc.ascii_upper(fields["noon"]), "PM").to_numpy(zero_copy_only=False) if "noon" in fields else np.zeros(count, bool)
    hour = half % 12 + 12 * of_noon if "half" in fields else whole("hour", 0)
    is_sound = (hour < 24) & (minute < 60) & (second < 60) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= _last_day(year, month))
    if "half" in fields:
        is_sound &= (half >= 1) & (half <= 12)
    return _days(year, month, day) * DAY + hour * 3600 + minute * 60 + second, is_sound


def _months(names: pa.Array) -> Whole:
    short = pc.utf8_slice_codeunits(pc.ascii_lower(names), 0, 3)
    return _whole(pc.fill_null(pc.index_in(short, pa.array(MONTHS)), -1)) + 1


def _last_day(year: Whole, month: Whole) -> Whole:
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    return np.where(month == 2, 28 + is_leap, np.where(np.isin(month, (4, 6, 9, 11)), 30, 31))


def _days(year: Whole, month: Whole, day: Whole) -> Whole:
    """Days since 1970 in the Gregorian calendar, for years before 1 too. The year begins in March here, so that its last day leaps."""
    march_year = year - (month <= 2)
    era, of_era = march_year // 400, march_year % 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * DAYS_IN_400_YEARS + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _micros(fractions: pa.Array | None, count: int) -> Whole:
    if fractions is None:
        return np.zeros(count, np.int64)
    digits = pc.utf8_rpad(pc.utf8_slice_codeunits(pc.fill_null(fractions, ""), 0, 6), 6, "0")
    return _whole(digits.cast(pa.int64()))


def _whole(numbers: pa.Array) -> Whole:
    return np.asarray(numbers, np.int64)


def _offsets(zones: pa.Array | None, seconds: Whole, declared: ZoneInfo) -> tuple[Whole, NDArray[np.bool_]]:
    """Seconds ahead of UTC of each local time, and whether its zone is one: the zone that it names, else the declared one."""
    offsets, is_zone = np.zeros(len(seconds), np.int64), np.ones(len(seconds), bool)
    encoded = (pa.repeat("", len(seconds)) if zones is None else pc.fill_null(zones, "")).dictionary_encode()
    indices = encoded.indices.to_numpy()
    for place, name in enumerate(encoded.dictionary.to_pylist()):
        is_named = indices == place
        zone = declared if name == "" else _zone(name)
        if zone is None:
            is_zone[is_named] = False
        else:
            offsets[is_named] = zone if isinstance(zone, int) else _offsets_in(zone, seconds[is_named])
    return offsets, is_zone


@cache
def _zone(name: str) -> ZoneInfo | int | None:
    """Of a zone in a text: its seconds ahead of UTC, or the zone where they change; None where there is no such zone on earth."""
    if match := OFFSET.fullmatch(name):
        hours, minutes, seconds = (int(match[n] or 0) for n in (2, 3, 4))
        offset = hours * 3600 + minutes * 60 + seconds
        return None if minutes > 59 or seconds > 59 or offset > LARGEST_OFFSET else (-offset if match[1] == "-" else offset)
    if name.upper() in {"Z", "UTC", "GMT"}:
        return 0
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _offsets_in(zone: ZoneInfo, seconds: Whole) -> Whole:
    """Of local times: in the hour that a change to winter time repeats, of the earlier; in the hour that is skipped, of before."""
    if zone.key == "UTC":
        return np.zeros(len(seconds), np.int64)
    distinct, places = np.unique(seconds, return_inverse=True)
    return np.fromiter((_offset_at(zone, second) for second in distinct.tolist()), np.int64, len(distinct))[places]


def _offset_at(zone: ZoneInfo, second: int) -> int:
    within = second % (DAYS_IN_400_YEARS * DAY) if not -62_135_596_800 <= second < 253_402_300_800 else second
    local = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=within)
    return round((local.replace(tzinfo=zone).utcoffset() or timedelta()).total_seconds())


@cache
def _expression(pattern: str) -> str:
    """The regular expression of Arrow for a pattern of Spark; ValueError names a letter that is not understood."""
    if pattern == "iso":
        return rf"\A{ISO}\z"
    never = "[^\\x00-\\x{10FFFF}]" if RUN_TOGETHER.search(pattern) else ""
    return rf"(?is)\A{never}{''.join(_parts(pattern))}\z"


def _parts(pattern: str) -> Iterator[str]:
    for token in TOKEN.finditer(pattern):
        quoted, letter = token.groups()
        if quoted is not None:
            yield re.escape(quoted.replace("''", "'") or "'")
        elif letter is not None:
            yield _group(token[0], pattern)
        else:
            yield {"[": "(?:", "]": ")?"}.get(token[0]) or re.escape(token[0])


def _group(letters: str, pattern: str) -> str:
    letter, width = letters[0], len(letters)
    numbers = {"d": "day", "H": "hour", "h": "half", "m": "minute", "s": "second"}
    if letter in numbers:
        return f"(?P<{numbers[letter]}>{TWO if width > 1 else ONE_OR_TWO})"
    if letter == "y":
        return f"(?P<short>{TWO})" if width == 2 else f"(?P<year>-?[0-9]{{{width if width > 1 else '1,4'}}})"
    if letter == "M":
        names = FULL_MONTHS if width > 3 else "|".join(MONTHS)
        return f"(?P<name>{names})" if width > 2 else f"(?P<month>{TWO if width > 1 else ONE_OR_TWO})"
    others = {"S": f"(?P<fraction>[0-9]{{1,{width}}})", "a": "(?P<noon>AM|PM)"}
    if letter in others:
        return others[letter]
    if letters in ZONES:
        return f"(?P<zone>{ZONES[letters]})"
    raise ValueError(f"time format '{pattern}': {letters} is not understood; use y M d H h m s S a z X Z")
