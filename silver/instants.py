"""Event times, as devices write them: texts to instants, of Arrow. What cannot be read becomes null, for the rules to catch.

What a pattern means is in time_patterns.py.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bronze.schema import INSTANT
from silver.numbers import CONTROLS, to_numbers
from silver.spec import Time
from silver.time_patterns import MONTHS, time_expression

MICROS_PER = {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1, "epoch_ns": 0.001, "filetime": 0.1}
SECOND, DAY, LARGEST_OFFSET = 1_000_000, 86_400, 18 * 3600
YEAR_1, YEAR_10000 = -62_135_596_800 * SECOND, 253_402_300_800 * SECOND
DAYS_IN_400_YEARS = 146_097
OF_ARROW = (
    r"\A[1-9][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
    r"(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])\z"
)
"""Most of them, as Arrow reads them too: 0.1 us a text instead of 1.3 us."""
OFFSET = re.compile(r"([+-])([0-9]{2}):?([0-9]{2})?:?([0-9]{2})?")
LETTERS = (
    "Z+0 UT+0 UTC+0 GMT+0 WET+0 WEST+1 CET+1 CEST+2 EET+2 EEST+3 MSK+3 SAST+2 JST+9 KST+9 AEST+10 AEDT+11 NZST+12 NZDT+13"
    " EDT-4 EST-5 CDT-5 CST-6 MDT-6 MST-7 PDT-7 PST-8 AKDT-8 AKST-9 HST-10"
)
HOURS_AHEAD = {name: int(hours) for name, hours in re.findall(r"([A-Z]+)([+-][0-9]+)", LETTERS)}
"""Hours ahead of UTC, all year round; CST and the like as in RFC 822. Letters of several zones, such as BST and IST, are not among them."""
MICROS_OF = {
    "epoch_ns": r"\A(?P<micros>[0-9]{0,18}?)[0-9]{1,3}(?:\.[0-9]*)?\z",
    "filetime": r"\A(?P<micros>[0-9]{0,18}?)[0-9](?:\.[0-9]*)?\z",
}
"""Digits of what is finer than microseconds, which are cut off."""
DAY_0_OF_FILETIME = -134_774
"""1601-01-01, in days since 1970."""
NUMBER_FORMATS = (*MICROS_PER, "excel")
EXCEL, DAY_0_OF_EXCEL = "excel", -25_569
"""Days since 1899-12-30, as a spreadsheet counts them; in days since 1970."""
EXACT_DAYS = r"\.[0-9]{9}"
"""Digits of a day that tell milliseconds apart; with fewer of them a whole second is meant."""

Whole = NDArray[np.int64]


def to_instants(texts: pa.Array, time: Time, is_second: pa.Array | None = None) -> tuple[pa.Array, pa.Array]:
    """Instants of the years 1 to 9999, null where a text is not one in the format of `time`; and whether a local time is there only once.

    Others that read the tables have no other years, and an offset is enough to get there: 0001-01-01T00:00:00+01:00.
    A local time that its zone has twice is read as the earlier of the two, one that it skips with the offset of before; neither is there
    only once, unless `time.repeated_hour` chooses, or by the order of rows `is_second` does: null where that says nothing.
    """
    if time.repeated_hour == "in_order":
        first, is_unique = to_instants(texts, replace(time, repeated_hour=None))
        second, _ = to_instants(texts, replace(time, repeated_hour="second"))
        is_second = pa.nulls(len(texts), pa.bool_()) if is_second is None else is_second
        is_known = pc.or_(is_unique, pc.or_(is_second.is_valid(), pc.fill_null(pc.equal(first, second), True)))
        return pc.if_else(pc.fill_null(is_second, False), second, first), is_known
    encoded = texts.dictionary_encode()  # devices that measure together send the same text
    distinct = encoded.dictionary
    micros, is_unique = (_epochs(distinct, time.format), None) if time.format in MICROS_PER else _dates(distinct, time)
    in_range = pc.and_(pc.greater_equal(micros, YEAR_1), pc.less(micros, YEAR_10000))
    instants = pc.if_else(in_range, micros, None).cast(INSTANT).take(encoded.indices)
    if is_unique is None:
        return instants, pa.repeat(True, len(texts))
    return instants, pc.or_kleene(is_unique.take(encoded.indices), instants.is_null())


def _epochs(texts: pa.Array, unit: str) -> pa.Array:
    """Fractions count, but units below a microsecond are cut to it: from their digits, as a double has too few, unless they have an
    exponent; below zero is null."""
    zero = DAY_0_OF_FILETIME * DAY * SECOND if unit == "filetime" else 0
    if unit in MICROS_OF:
        digits = pc.struct_field(pc.extract_regex(pc.utf8_trim(texts, CONTROLS), MICROS_OF[unit]), "micros")
        whole = pc.binary_join_element_wise("0", digits, "").cast(pa.int64())
        with_exponent = pc.if_else(pc.match_substring(texts, "e", ignore_case=True), texts, None)
        micros = pc.floor(pc.divide(to_numbers(with_exponent), float(round(1 / MICROS_PER[unit]))))
    else:
        whole = pa.nulls(len(texts), pa.int64())
        micros = pc.round(pc.multiply(to_numbers(texts), MICROS_PER[unit]), round_mode="half_towards_infinity")
    is_sound = pc.and_(pc.greater_equal(micros, 0.0), pc.less(micros, float(YEAR_10000 - zero)))
    since_zero = pc.coalesce(whole, pc.if_else(is_sound, micros, None).cast(pa.int64()))
    return pc.add(since_zero, zero) if zero else since_zero


def _serials(texts: pa.Array, time: Time) -> tuple[pa.Array, pa.Array]:
    """Read days of a spreadsheet, of local time: to the nearest second, or millisecond (EXACT_DAYS)."""
    per_second = pc.if_else(pc.match_substring_regex(texts, EXACT_DAYS), 1_000.0, 1.0)
    units = pc.round(pc.multiply(to_numbers(texts), pc.multiply(per_second, float(DAY))), round_mode="half_towards_infinity")
    millis = pc.multiply(units, pc.divide(1_000.0, per_second))
    is_sound = pc.fill_null(pc.and_(pc.greater_equal(millis, 0.0), pc.less(millis, YEAR_10000 / 1_000)), False)
    whole = _whole(pc.if_else(is_sound, millis, 0.0).cast(pa.int64()))
    seconds = whole // 1_000 + DAY_0_OF_EXCEL * DAY
    offsets, _, is_unique = _offsets(None, seconds, time)
    micros = pa.array((seconds - offsets) * SECOND + whole % 1_000 * 1_000)
    return pc.if_else(is_sound, micros, None), pa.array(is_unique)


def _dates(texts: pa.Array, time: Time) -> tuple[pa.Array, pa.Array | None]:
    """Return microseconds and uniqueness; the latter is None if no local time can be there twice."""
    if time.format == EXCEL:
        return _serials(texts, time)
    if time.format != "iso":
        return _of_pattern(texts, time)
    plain = pc.if_else(pc.match_substring_regex(texts, OF_ARROW), texts, None).cast(INSTANT).cast(pa.int64())
    is_missing = plain.is_null()
    if plain.null_count == 0:
        return plain, None
    micros, is_unique = _of_pattern(texts.filter(is_missing), time)
    return pc.replace_with_mask(plain, is_missing, micros), pc.replace_with_mask(plain.is_valid(), is_missing, is_unique)


def _of_pattern(texts: pa.Array, time: Time) -> tuple[pa.Array, pa.Array]:
    groups = pc.extract_regex(texts, time_expression(time.format))
    is_found = groups.is_valid()
    fields = {field.name: groups.field(n).filter(is_found) for n, field in enumerate(groups.type)}
    micros_of_second = _micros(fields, pc.sum(is_found).as_py() or 0)
    seconds, is_date = _local_seconds(fields, micros_of_second)
    offsets, is_zone, is_unique = _offsets(fields.get("zone"), seconds, time)
    micros = pa.array((seconds - offsets) * SECOND + micros_of_second, mask=~(is_date & is_zone))
    places = np.cumsum(is_found.to_numpy(zero_copy_only=False)) - 1
    at = pa.array(places, mask=~is_found.to_numpy(zero_copy_only=False))
    return micros.take(at), pa.array(is_unique).take(at)


def _local_seconds(fields: dict[str, pa.Array], micros_of_second: Whole) -> tuple[Whole, NDArray[np.bool_]]:
    """Seconds since 1970 of the date and the time of day, in whatever zone they are; and whether there is such a date and time. 24:00 ends
    its day."""
    count = len(next(iter(fields.values())))

    def whole(name: str, default: int) -> Whole:
        if name not in fields:
            return np.full(count, default)
        texts = fields[name]
        return _whole(pc.fill_null(pc.if_else(pc.equal(texts, ""), None, texts).cast(pa.int64()), default))

    year = 2000 + whole("short", 0) if "short" in fields else whole("year", 1970)
    month = _months(fields["name"]) if "name" in fields else whole("month", 1)
    day, minute, second = whole("day", 1), whole("minute", 0), whole("second", 0)
    half, day_of_year = whole("half", 0), whole("day_of_year", 1)
    of_noon = (
        pc.starts_with(pc.ascii_upper(fields["noon"]), "P").to_numpy(zero_copy_only=False) if "noon" in fields else np.zeros(count, bool)
    )
    hour = half % 12 + 12 * of_noon if "half" in fields else whole("hour", 0)
    january = (year - 1970) * 12
    first_day, last_day_of_year = _first_day(january + month - 1), _first_day(january + 12) - _first_day(january)
    is_midnight = (hour == 24) & (minute == 0) & (second == 0) & (micros_of_second == 0)
    is_sound = ((hour < 24) | is_midnight) & (minute < 60) & (second < 60) & (month >= 1) & (month <= 12)
    is_sound &= (day >= 1) & (day <= _first_day(january + month) - first_day) & (day_of_year >= 1) & (day_of_year <= last_day_of_year)
    if "half" in fields:
        is_sound &= (half >= 1) & (half <= 12)
    days = first_day + day + day_of_year - 2
    if "week" in fields and (is_week := (week := whole("week", -1)) >= 0).any():
        monday, next_monday = _first_monday(_first_day(january)), _first_monday(_first_day(january + 12))
        days = np.where(is_week, monday + 7 * (week - 1) + whole("weekday", 1) - 1, days)
        is_sound &= ~is_week | ((week >= 1) & (monday + 7 * week <= next_monday))
    return days * DAY + hour * 3600 + minute * 60 + second, is_sound


def _first_monday(january_1: Whole) -> Whole:
    """Days from 1970 to the Monday of the week that holds 4 January."""
    return january_1 + 3 - (january_1 + 6) % 7


def _months(names: pa.Array) -> Whole:
    short = pc.utf8_slice_codeunits(pc.ascii_lower(names), 0, 3)
    return _whole(pc.fill_null(pc.index_in(short, pa.array(MONTHS)), -1)) + 1


def _first_day(months: Whole) -> Whole:
    """Days from 1970 to the first one of a month, which is counted from January 1970, in the Gregorian calendar, for years before 1 too."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _micros(fields: dict[str, pa.Array], count: int) -> Whole:
    """Read the fraction of a second; digits of `parts_3` are a number of thousandths."""
    name = next((name for name in fields if name.startswith(("fraction", "parts"))), None)
    if name is None:
        return np.zeros(count, np.int64)
    texts, width = pc.fill_null(fields[name], ""), int(name.partition("_")[2] or 0)
    digits = pc.utf8_rpad(pc.utf8_slice_codeunits(pc.utf8_lpad(texts, width, "0") if width else texts, 0, 6), 6, "0")
    return _whole(digits.cast(pa.int64()))


def _whole(numbers: pa.Array) -> Whole:
    return np.asarray(numbers, np.int64)


def _offsets(zones: pa.Array | None, seconds: Whole, time: Time) -> tuple[Whole, NDArray[np.bool_], NDArray[np.bool_]]:
    """Seconds ahead of UTC of each local time, whether its zone is one, and whether the zone has the time once. The zone is the one that a
    text names, else the declared one."""
    offsets, is_zone, is_unique = np.zeros(len(seconds), np.int64), np.ones(len(seconds), bool), np.ones(len(seconds), bool)
    encoded = (pa.repeat("", len(seconds)) if zones is None else pc.fill_null(zones, "")).dictionary_encode()
    indices = encoded.indices.to_numpy()
    for index, name in enumerate(encoded.dictionary.to_pylist()):
        is_named = indices == index
        zone = ZoneInfo(time.time_zone) if name == "" else _zone(name)
        if zone is None:
            is_zone[is_named] = False
        elif isinstance(zone, int):
            offsets[is_named] = zone
        elif zone.key != "UTC":
            offsets[is_named], is_unique[is_named] = _offsets_in(zone, seconds[is_named], time.repeated_hour)
    return offsets, is_zone, is_unique


@cache
def _zone(name: str) -> ZoneInfo | int | None:
    """Read a zone in a text: its seconds ahead of UTC, or the zone if these change; None if there is no such zone. Without a slash only
    letters of HOURS_AHEAD are a zone: as names of the time zone database, CET and EST5EDT have a summer time."""
    if match := OFFSET.fullmatch(name):
        hours, minutes, seconds = (int(match[n] or 0) for n in (2, 3, 4))
        offset = hours * 3600 + minutes * 60 + seconds
        return None if minutes > 59 or seconds > 59 or offset > LARGEST_OFFSET else (-offset if match[1] == "-" else offset)
    if "/" not in name:
        hours_ahead = HOURS_AHEAD.get(name.upper())
        return None if hours_ahead is None else hours_ahead * 3600
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _offsets_in(zone: ZoneInfo, seconds: Whole, repeated_hour: str | None) -> tuple[Whole, NDArray[np.bool_]]:
    """Return the offsets of local times; and whether the zone has the time once, or `repeated_hour` says which of two it is."""
    starts, places = np.unique(seconds // 3600 * 3600, return_inverse=True)
    ends = np.array([_offsets_at(zone, start) + _offsets_at(zone, start + 3599) for start in starts.tolist()], np.int64)
    of_hour = ends.reshape(-1, 4)[places]
    both = of_hour[:, :2]
    for at in np.flatnonzero(of_hour.min(axis=1) != of_hour.max(axis=1)):  # the clock is changed in this hour
        both[at] = _offsets_at(zone, int(seconds[at]))
    return both.min(axis=1) if repeated_hour == "second" else both[:, 0], (both[:, 0] == both[:, 1]) | (repeated_hour is not None)


def _offsets_at(zone: ZoneInfo, second: int) -> list[int]:
    """Return two offsets of a local time. If a change repeats it: the earlier and the later one; if a change skips it: those before and
    after it."""
    if not YEAR_1 <= second * SECOND < YEAR_10000:  # the calendar repeats: as in the first years of Python, or the last
        second = second % (DAYS_IN_400_YEARS * DAY) + DAYS_IN_400_YEARS * DAY * (-4 if second < 0 else 19)
    local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)).replace(tzinfo=zone)
    return [round((local.replace(fold=fold).utcoffset() or timedelta()).total_seconds()) for fold in (0, 1)]
