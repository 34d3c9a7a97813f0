"""Event times: text to UTC instants. What cannot be read becomes null, for the rules to catch; nothing here can fail a query."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from silver.spec import Time

MICROS_PER = {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1}
YEAR_10000_MICROS = 253_402_300_800_000_000


def to_instant(text: Column, time: Time) -> Column:
    """An instant; null where `text` is not one in the format of `time`.

    A local time in the hour that a change to winter time repeats is read as the earlier of the two.
    """
    if time.format in MICROS_PER:
        return _from_epoch(text, MICROS_PER[time.format])
    if time.format == "iso":
        return _from_iso(text, time.time_zone)
    return _from_local(F.try_to_timestamp(text, F.lit(time.format)), text, time.time_zone)


def _from_epoch(text: Column, micros_per_unit: int) -> Column:
    """Fractions count; before 1970 and after 9999 is null, because the conversion would overflow and end the query."""
    micros = F.round(text.try_cast("double") * F.lit(float(micros_per_unit)))
    return F.when((micros >= 0) & (micros < F.lit(float(YEAR_10000_MICROS))), F.timestamp_micros(micros.cast("bigint")))


def _from_iso(text: Column, zone: str) -> Column:
    """A cast alone would read '12:30' as today and '2015' as its first of January: a day and a minute are required."""
    has_day_and_minute = (F.length(text) >= 16) & (F.substring(text, 5, 1) == "-") & (F.substring(text, 8, 1) == "-")
    return _from_local(F.when(has_day_and_minute, text.try_cast("timestamp")), text, zone)


def _from_local(instant: Column, text: Column, zone: str) -> Column:
    """`instant` was read as if in UTC (the session's zone); move it, unless the text names its own zone."""
    if zone == "UTC":
        return instant
    names_its_zone = text.rlike(r"(?:[zZ]|[+-]\d\d:?\d\d|UTC|GMT)$")
    return F.when(names_its_zone, instant).otherwise(F.to_utc_timestamp(instant, zone))
