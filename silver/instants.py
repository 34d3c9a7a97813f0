"""Event times and numbers, as devices write them. What cannot be read becomes null, for the rules to catch: nothing can fail a query."""

import re

from pyspark.sql import Column
from pyspark.sql import functions as F

from silver.spec import Time

MICROS_PER = {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1}
YEAR_1_MICROS, YEAR_10000_MICROS = -62_135_596_800_000_000, 253_402_300_800_000_000
ISO = r"\A\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?(?: ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?)?\z"
ISO_WITH_ZONE = r"(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)\z"
"""A day and a minute are required. A cast alone reads '12:30' as today, '2015' as its first of January, and zones by name."""


def to_instant(text: Column, time: Time) -> Column:
    """An instant; null where `text` is not one in the format of `time`.

    A local time in the hour that a change to winter time repeats is read as the earlier of the two.
    """
    if time.format in MICROS_PER:
        return _from_epoch(text, MICROS_PER[time.format])
    if time.format == "iso":
        return _from_local(F.when(text.rlike(ISO), text.try_cast("timestamp")), text.rlike(ISO_WITH_ZONE), time.time_zone)
    names_its_zone = re.search("[zZXxVO]", re.sub("'[^']*'", "", time.format)) is not None
    return _from_local(F.try_to_timestamp(text, F.lit(time.format)), F.lit(names_its_zone), time.time_zone)


def to_number(text: Column) -> Column:
    """A double; null where `text` is no decimal. A cast alone also reads 1d, 1f and hexadecimals, as Java does."""
    return F.when(~text.rlike(r"(?i)[0-9.][df][\x00-\x20]*\z|0x"), text.try_cast("double"))


def in_four_digits(instant: Column) -> Column:
    """Null for an instant outside of the years 1 to 9999, in UTC.

    Spark has such instants, and an offset is enough to get there: 0001-01-01T00:00:00+01:00. Python and others that read the tables have
    none, and end, not only over the rows: over the log, whose statistics tell of them.
    """
    micros = F.unix_micros(instant)
    return F.when((micros >= F.lit(YEAR_1_MICROS)) & (micros < F.lit(YEAR_10000_MICROS)), instant)


def _from_epoch(text: Column, micros_per_unit: int) -> Column:
    """Fractions count; before 1970 and after 9999 is null, because the conversion would overflow and end the query."""
    micros = F.round(to_number(text) * F.lit(float(micros_per_unit)))
    return F.when((micros >= 0) & (micros < F.lit(float(YEAR_10000_MICROS))), F.timestamp_micros(micros.cast("bigint")))


def _from_local(instant: Column, names_its_zone: Column, zone: str) -> Column:
    """`instant` was read as if in UTC (the session's zone); move it, unless the text named its own zone."""
    if zone == "UTC":
        return instant
    return F.when(names_its_zone, instant).otherwise(F.to_utc_timestamp(instant, zone))
