"""Event times: which texts are instants, and which ones."""

from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.audit.verify.instants import PLAIN, instants_of, reader
from orchestration.errors import TidemarkError
from silver.spec import Time
from tests.rows import at

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OFFSETS = st.integers(-17 * 60, 17 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes().filter(lambda time: 2 < time.year < 9998)


def instant(text: str, time_format: str = "iso", zone: str = "UTC") -> datetime | None:
    found = reader(Time("t", time_format, zone))(text)
    return None if found is None else EPOCH + timedelta(microseconds=found[0])


@given(TIMES, OFFSETS, st.sampled_from("T "))
def test_iso_texts_with_an_offset_are_read_as_python_reads_them(time: datetime, offset: timezone, separator: str) -> None:
    aware = time.replace(tzinfo=offset)
    assert instant(aware.isoformat(separator)) == aware


@given(st.datetimes(), OFFSETS)
def test_only_instants_of_the_years_1_to_9999_in_utc_are_read(time: datetime, offset: timezone) -> None:
    aware = time.replace(tzinfo=offset)
    try:
        assert instant(aware.isoformat()) == aware.astimezone(UTC)
    except OverflowError:
        assert instant(aware.isoformat()) is None


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("0000-01-01T00:00:00Z", None),
        ("0000-12-31T23:59:59.999999Z", None),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00"),
        ("0001-01-01T00:00:00-01:00", "0001-01-01T01:00:00"),
        ("0001-01-01T00:00:00+01:00", None),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999"),
        ("9999-12-31T23:59:59-01:00", None),
    ],
)
def test_the_first_and_the_last_instant(text: str, utc: str | None) -> None:
    assert instant(text) == (at(utc) if utc else None)


@given(st.sampled_from([*PLAIN, "dd.MM.yyyy HH:mm"]), st.data())
def test_many_texts_are_read_as_each_is(time_format: str, data: st.DataObject) -> None:
    plain = st.from_regex(rf"\A(?:{PLAIN.get(time_format, '[0-9.: ]{16}')})\Z", alphabet=st.characters(max_codepoint=0x7E))
    texts = data.draw(st.lists(plain | TIMES.map(datetime.isoformat) | TIMES.map("{:%Y-%m-%dT%H:%M:%SZ}".format) | st.text(max_size=20)))
    time = Time("t", time_format)
    columns = (column.to_pylist() for column in instants_of(pa.array(texts, pa.string()), time))
    assert [*zip(*columns, strict=True)] == [found or (None, True) for found in map(reader(time), texts)]


@given(st.text(max_size=40), st.sampled_from(["iso", "epoch_s", "epoch_us", "dd.MM.yyyy HH:mm", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"]))
def test_any_text_is_an_instant_or_none(text: str, time_format: str) -> None:
    found = reader(Time("t", time_format))(text)
    assert found is None or isinstance(found[0], int)


@pytest.mark.parametrize(
    "text",
    [
        *("2026-01-01", "2026-01-01T12", "2026-01-01T1:02:03", "2026-01-01_00:00:00Z", "2026-01-01T00:00:00y", "2026-01-01T24:00:01Z"),
        *(
            "2026-01-01T23:59:60Z",
            "2026-02-29T00:00:00Z",
            "10000-01-01T00:00:00Z",
            "2026-01-01T00:00:00+18:01",
            "2026-01-01T00:00:00+02:60",
        ),
        *("2026-01-01T00:00:00 Europe/Brussels", " 2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z ", "2026-01-01T00:00:00.Z", "12:30:00"),
    ],
)
def test_what_is_no_iso_instant_is_none(text: str) -> None:
    assert instant(text) is None


def test_digits_beyond_the_microsecond_are_cut_off() -> None:
    assert instant("2026-01-01T00:00:01.1234569Z") == at("00:00:01.123456")


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-01-01T01:00:00", "2026-01-01T00:00:00"),
        ("2026-01-01T01:00:00Z", "2026-01-01T01:00:00"),
        ("2026-01-01T01:00:00+02", "2025-12-31T23:00:00"),  # names its own zone
        ("2026-03-29T02:30:00", "2026-03-29T01:30:00"),  # skipped
        ("2025-10-26T02:30:00", "2025-10-26T00:30:00"),  # there twice: the earlier
    ],
)
def test_a_local_time_is_in_the_declared_zone_unless_it_names_one(text: str, utc: str) -> None:
    assert instant(text, zone="Europe/Brussels") == at(utc)


@pytest.mark.parametrize(
    ("time_format", "text", "utc"),
    [
        ("dd.MM.yyyy HH:mm", "05.01.2026 12:30", "2026-01-05T12:30:00"),
        ("d.M.yy H:m", "5.1.26 1:2", "2026-01-05T01:02:00"),
        ("yyyyMMddHHmmss", "20260105123045", "2026-01-05T12:30:45"),
        ("yyyy-MM-dd HH:mm:ss.SSS", "2026-01-05 12:30:45.5", "2026-01-05T12:30:45.5"),
        ("yyyyMMdd'T'HHmmssSSS", "20260105T123045123", "2026-01-05T12:30:45.123"),
        ("'20'yyMMddHHmmssSSS", "20260105123045123", "2026-01-05T12:30:45.123"),
        ("yyyyMMddHHmmssSSS", "20260105123045123", "2026-01-05T12:30:45.123"),
        ("yyyyDDDHH", "202436612", "2024-12-31T12:00:00"),
        ("yyyy-DDD HH:mm", "2026-060 12:30", "2026-03-01T12:30:00"),
        ("yyyy D", "2026 5", "2026-01-05T00:00:00"),
        ("yyyy-MM-dd'T'HH:mm:ssxxx", "2026-01-05T12:30:45+02:00", "2026-01-05T10:30:45"),
        ("MMM d, yyyy hh:mm a", "jan 5, 2026 12:30 AM", "2026-01-05T00:30:00"),
        ("d MMMM yyyy", "5 January 2026", "2026-01-05T00:00:00"),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-01-05T12:30:45+02:00", "2026-01-05T10:30:45"),
        ("yyyy-MM-dd HH:mm:ssZ", "2026-01-05 12:30:45-0230", "2026-01-05T15:00:45"),
        ("yyyy-MM-dd HH:mm:ss z", "2026-01-05 12:30:45 UTC", "2026-01-05T12:30:45"),
        ("yyyy-MM-dd[ HH:mm]", "2026-01-05", "2026-01-05T00:00:00"),
        ("h 'o''clock' d/M/yyyy", "7 o'clock 5/1/2026", "2026-01-05T07:00:00"),
    ],
)
def test_patterns_are_read(time_format: str, text: str, utc: str) -> None:
    assert instant(text, time_format) == at(utc)


@pytest.mark.parametrize(
    ("time_format", "text"),
    [
        ("dd.MM.yyyy HH:mm", "5.1.2026 12:30"),
        ("dd.MM.yyyy HH:mm", "31.02.2026 12:30"),
        ("dd.MM.yyyy HH:mm", "05.01.2026 24:01"),
        ("yyyy-MM-dd hh:mm a", "2026-01-05 13:30 PM"),
        ("yyyy-MM-dd HH:mm:ss.SSS", "2026-01-05 12:30:45.1234"),
        ("yyyyDDDHH", "202636612"),  # no leap year
        ("yyyyDDDHH", "202600012"),
        ("yyyy-MM-dd'T'HH:mm:ssxxx", "2026-01-05T12:30:45Z"),
        ("yyyy-MM-dd HH:mm:ssX", "2026-01-05 12:30:45+02:00"),
    ],
)
def test_what_does_not_fit_its_pattern_is_none(time_format: str, text: str) -> None:
    assert instant(text, time_format) is None


def test_a_local_pattern_that_ends_like_an_offset_is_still_local() -> None:
    assert instant("12:30 01-01-2026", "HH:mm dd-MM-yyyy", "Europe/Brussels") == at("11:30:00")


def test_a_letter_without_a_known_meaning_is_refused_in_one_sentence() -> None:
    with pytest.raises(TidemarkError, match="time format 'YYYY-ww' cannot be verified: YYYY is not understood"):
        reader(Time("t", "YYYY-ww"))


@pytest.mark.parametrize(
    ("unit", "text", "utc"),
    [
        ("epoch_s", "1767225601.5", "00:00:01.5"),
        ("epoch_ms", "1767225600001", "00:00:00.001"),
        ("epoch_us", "1767225600000001", "00:00:00.000001"),
        ("epoch_s", "-0.0000004", "1970-01-01T00:00:00"),
    ],
)
def test_numbers_since_1970_are_read(unit: str, text: str, utc: str) -> None:
    assert instant(text, unit) == at(utc)


@pytest.mark.parametrize("text", ["-1", "253402300800", "NaN", "Infinity", "1d", "0x10", "", "soon"])
def test_numbers_outside_of_1970_to_9999_are_none(text: str) -> None:
    assert instant(text, "epoch_s") is None
