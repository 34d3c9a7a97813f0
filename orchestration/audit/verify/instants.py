"""Event times: texts to microseconds since 1970 in UTC; None where a text is no instant of the years 1 to 9999 in the declared format.

Nothing here raises.
"""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from orchestration.audit.verify.numerals import number, rounded
from orchestration.audit.verify.time_patterns import Fields, fields_reader
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

Reader = Callable[[str], int | None]


def reader(time: Time) -> Reader:
    """What reads texts in this format; a pattern that cannot be checked is refused with a TidemarkError."""
    if time.format in MICROS_PER:
        return _epoch_reader(MICROS_PER[time.format])
    zone = ZoneInfo(time.time_zone)
    fields_of = _iso_fields if time.format == "iso" else fields_reader(time.format)

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
