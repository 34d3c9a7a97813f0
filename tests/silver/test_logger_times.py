"""Times as loggers, PLCs and spreadsheets write them: each instant is right, and verify reads the same."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.audit.verify.instants import instants_of
from silver.instants import to_instants
from silver.spec import Time

EIGHT = "2026-03-02T08:00:00"
ISO, DAYS = "iso", "excel"
READ: list[tuple[str, str, str, str | None]] = [
    (ISO, "UTC", "2026-03-02T08:00:00,125Z", f"{EIGHT}.125"),
    *((ISO, "UTC", f"2026-03-02T09:00:00{offset}", EIGHT) for offset in ("+01", "+0100", "+01:00", " +01:00")),
    *((ISO, "UTC", f"2026-03-02{text}", EIGHT) for text in ("T08:00:00Z", "t08:00:00z", "T08:00Z", " 08:00:00 UTC")),
    *((ISO, "UTC", text, "2026-01-01T00:00:00") for text in ("2026-W01-4T00:00Z", "2026-001T00:00Z", "2025-12-31T24:00:00Z")),
    (ISO, "UTC", "2020-W53-7T00:00Z", "2021-01-03T00:00:00"),
    *((ISO, "UTC", text, None) for text in ("2021-W53-1T00:00Z", "2026-366T00:00Z", "2026-W00-1T00:00Z", "2026-01-01T24:00:01Z")),
    (ISO, "Europe/Madrid", "2026-03-01T24:00", "2026-03-01T23:00:00"),
    ("dd/MM/yyyy H[:mm]", "Europe/Madrid", "01/03/2026 24:00", "2026-03-01T23:00:00"),
    ("dd/MM/yyyy H[:mm]", "Europe/Madrid", "02/03/2026 1", "2026-03-02T00:00:00"),
    ("dd/MM/yyyy H[:mm]", "Europe/Madrid", "02/03/2026 25", None),
    ("yyyy-MM-dd HH:mm:ss SSS", "UTC", "2026-03-02 08:00:00 5", f"{EIGHT}.005"),
    ("yyyy-MM-dd HH:mm:ss:SSS", "UTC", "2026-03-02 08:00:00:125", f"{EIGHT}.125"),
    ("yyyy-MM-dd HH:mm:ss[.SSS]", "UTC", "2026-03-02 08:00:00.5", f"{EIGHT}.5"),
    *(("M/d/yy h:mma", "UTC", f"3/2/26 8:00{noon}", EIGHT) for noon in ("a", "A", "AM", "am", "a.m.")),
    *(("M/d/yy h:mma", "UTC", f"3/2/26 {text}", f"2026-03-02T{hour}:00:00") for text, hour in (("12:00a", "00"), ("12:00p", "12"))),
    *(("epoch_s", "UTC", text, EIGHT) for text in ("1.7724384E9", "1772438400.0", "1772438400")),
    *(("epoch_ns", "UTC", text, EIGHT) for text in ("1.7724384e18", "1772438400000000000.9", "1772438400000000999")),
    *(("filetime", "UTC", text, EIGHT) for text in ("134169120000000000", "134169120000000009.5", "1.3416912e17")),
    *(("filetime", "UTC", text, right) for text, right in (("134169120001250000", f"{EIGHT}.125"), ("0", "1601-01-01T00:00:00"))),
    *(("filetime", "UTC", text, None) for text in ("-1", "1e22", "999999999999999999999", "nan")),
    *((DAYS, "UTC", text, EIGHT) for text in ("46083.33333", "46083.3333333333", "46083.333333333336")),
    (DAYS, "UTC", "46083.333339120", f"{EIGHT}.500"),
    (DAYS, "Europe/Berlin", "46083.375", EIGHT),
    *((DAYS, "UTC", text, None) for text in ("-1", "nan", "1e9", "02/03/2026")),
]


def both(texts: list[str], time: Time) -> tuple[list[Any], list[Any]]:
    """Microseconds and uniqueness, of silver and of verify."""
    column = pa.array(texts, pa.string())
    micros, is_unique = to_instants(column, time)
    return [micros.cast(pa.int64()).to_pylist(), is_unique.to_pylist()], [one.to_pylist() for one in instants_of(column, time)]


@pytest.mark.parametrize(("format", "zone", "text", "right"), READ)
def test_a_time_of_a_logger_is_read_to_the_last_digit_by_silver_and_by_verify(format: str, zone: str, text: str, right: str | None) -> None:
    micros = None if right is None else (datetime.fromisoformat(right).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC))
    wanted = [[micros and micros.days * 86_400_000_000 + micros.seconds * 1_000_000 + micros.microseconds], [True]]
    assert both([text], Time("t", format, zone)) == (wanted, wanted)


DATES = st.sampled_from(["01-01", "12-31", "02-29", "10-25", "10-26", "03-29", "W01-1", "W53-4", "W53-7", "W52-7", "001", "365", "366"])
CLOCKS = st.sampled_from(
    ["00:00", "02:30", "24:00", "24:01", "23:59:60", "02:00:00,5", "24:00:00.0000001", "24:00:00.1", "02:59:59.9999999"]
)


@given(
    st.integers(0, 9999),
    DATES,
    CLOCKS,
    st.sampled_from(["", "Z", "z", "+01", " +0100", "-18:00"]),
    st.sampled_from(["UTC", "Europe/Berlin"]),
)
def test_dates_weeks_and_ends_of_days_are_read_as_verify_reads_them(year: int, date: str, clock: str, offset: str, zone: str) -> None:
    of_silver, of_verify = both([f"{year:04}-{date}T{clock}{offset}"], Time("t", "iso", zone))
    assert of_silver == of_verify


@given(st.floats(-1e3, 4e6) | st.floats(), st.integers(0, 17))
def test_days_of_a_spreadsheet_are_read_as_verify_reads_them(days: float, digits: int) -> None:
    of_silver, of_verify = both([f"{days:.{digits}f}", repr(days)], Time("t", "excel", "Europe/Berlin"))
    assert of_silver == of_verify
