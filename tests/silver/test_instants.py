"""Event times: silver and verify, which share no line that reads a time, agree on every pattern and text; and local times that a zone has
twice or never."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bronze.schema import INSTANT
from orchestration.audit.verify.instants import FIXED_ZONES, instants_of
from silver.aggregation import Aggregation
from silver.enrich import ReferenceData
from silver.instants import HOURS_AHEAD, to_instants
from silver.judging import judged
from silver.metric import Metric
from silver.policy import Policy, SilverConfig
from silver.spec import Origin, PayloadFormat, Time
from silver.time_patterns import time_expression
from tests.rows import INGESTED_AT, at

DATES = [["yyyy", "MM", "dd"], ["d", "M", "yy"], ["MMM", "d", "y"], ["dd", "MMMM", "yyyy"], ["yyyy", "DDD"], ["D", "yyyy"]]
TIMES = [[], ["HH"], ["H", "m"], ["hh", "mm", "a"], ["HH", "mm", "ss"], ["HH", "mm", "ss", "SSS"]]
ZONES = [*("", "z", "x", "xx", "xxx", "X", "XX", "XXX", "Z")]
SAMPLES = {
    "y": ["2024", "2025", "2026", "1900", "9999", "0001", "0000", "25", "0"],
    "M": ["03", "3", "10", "Oct", "March", "13"],
    "d": ["26", "29", "30", "9", "00"],
    "D": ["366", "365", "299", "088", "88", "0", "000", "367"],
    "H": ["02", "2", "00", "23", "24"],
    "h": ["02", "2", "12", "00", "13"],
    "m": ["30", "05", "5", "60"],
    "s": ["00", "59", "60"],
    "S": ["1", "12", "123", "1234"],
    "a": ["AM", "pm", "noon"],
    "z": ["Z", "cet", "CEST", "IST", "EST5EDT", "Cuba", "+02", "+02:00", "-0930", "+02:60", "Europe/Berlin", "Mars/Base"],
}
ENERGY = {"energy": Metric("energy", Aggregation.MAX, 3600)}


@st.composite
def patterns(draw: st.DrawFn) -> str:
    letters = draw(st.sampled_from(DATES)) + draw(st.sampled_from(TIMES)) + [draw(st.sampled_from(ZONES))]
    return "".join(run + draw(st.sampled_from(["", "-", " ", "'T'"])) for run in letters)


def text_of(draw: Callable[..., str], pattern: str) -> str:
    return re.sub(r"'(T)'|([A-Za-z])\2*", lambda run: run[1] or draw(st.sampled_from(SAMPLES.get(run[2], SAMPLES["z"]))), pattern)


@given(st.data(), patterns(), st.sampled_from(["UTC", "Europe/Berlin", "America/Sao_Paulo"]), st.sampled_from([None, "first", "second"]))
def test_each_pattern_that_conf_may_hold_is_read_as_verify_reads_it(data: st.DataObject, pattern: str, zone: str, hour: Any) -> None:
    time = Time("t", pattern, zone, hour)
    try:
        time_expression(pattern)
    except ValueError:
        return
    texts = pa.array([text_of(data.draw, pattern) for _ in range(8)])
    instants, is_unique = to_instants(texts, time)
    assert [instants.cast(pa.int64()).to_pylist(), is_unique.to_pylist()] == [column.to_pylist() for column in instants_of(texts, time)]


@given(st.from_regex(r"\A ?-?[0-9]{0,23}(\.5|e3)?\Z") | st.text(max_size=5), st.sampled_from(["epoch_ns", "filetime"]))
def test_nanoseconds_are_read_as_verify_reads_them(text: str, format: str) -> None:
    time = Time("t", format)
    assert to_instants(pa.array([text]), time)[0].cast(pa.int64()).equals(instants_of(pa.array([text]), time)[0])


def test_the_letters_of_zones_are_those_of_verify_and_mean_the_same_all_year_round() -> None:
    assert HOURS_AHEAD == FIXED_ZONES
    texts = [f"2026-{month}-01 12:00 {zone}" for month in ("01", "07") for zone in ("CET", "cest", "EST", "GMT", "Europe/Berlin")]
    read = to_instants(pa.array(texts), Time("t", "yyyy-MM-dd HH:mm z"))[0].to_pylist()
    assert [instant.hour for instant in read] == [11, 10, 17, 12, 11, 11, 10, 17, 12, 10]


@pytest.mark.parametrize("name", ["BST", "IST", "AST", "EST5EDT", "Cuba", "Japan", "GB", "GMT0", "Mars/Base", "A"])
def test_letters_that_mean_several_zones_or_none_are_no_instant(name: str) -> None:
    assert to_instants(pa.array([f"2026-07-01 12:00 {name}"]), Time("t", "yyyy-MM-dd HH:mm z"))[0].null_count == 1


def test_nanoseconds_are_cut_to_microseconds_without_losing_a_digit() -> None:
    instants, _ = to_instants(pa.array(["1767225600123456789", "999", "1.7e18", "-1000", "253402300799999999999"]), Time("t", "epoch_ns"))
    assert instants.to_pylist() == [
        at("00:00:00.123456"),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        None,
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ]


def of_meter(texts: list[str], **more: Any) -> list[tuple[str | None, list[str]]]:
    """Event time and broken rules of rows of a meter in Berlin."""
    time = Time("t", "dd.MM.yyyy HH:mm", "Europe/Berlin", **more)
    shape = PayloadFormat("csv", Origin(constant="meter"), time, metrics={"energy": "kwh"}, columns=("t", "kwh"), separator=";")
    count = len(texts)
    events = {"payload": pa.array([f"{text};{n}".encode() for n, text in enumerate(texts)], pa.binary()), "source": ["meter"] * count}
    events |= {"header": pa.nulls(count, pa.string()), "position": ["meter.csv/0"] * count, "ingested_at": [INGESTED_AT] * count}
    config = SilverConfig({"meter": shape}, Policy(600, 300, 1000), ENERGY)
    known = pa.Table.from_pylist([{"device_id": "meter", "groups": [], "is_known": True, "registered_at": at("1970-01-01")}], registry())
    tables = judged(pa.table(events | {"bronze_batch": [0] * count, "bronze_row": range(count)}), ReferenceData(known), config)
    rows = sorted((row for piece in tables for row in piece.to_pylist()), key=lambda row: row["bronze_row"])
    return [(row["event_time"] and f"{row['event_time']:%H:%M}", row["broken_rules"]) for row in rows]


def registry() -> pa.Schema:
    types = {"device_id": pa.string(), "zone": pa.string(), "groups": pa.list_(pa.string()), "label": pa.string()}
    return pa.schema([*types.items(), ("is_known", pa.bool_()), ("origin", pa.string()), ("registered_at", INSTANT)])


def test_times_of_the_hour_that_comes_twice_break_a_rule_of_their_own_and_their_neighbours_are_readings() -> None:
    twice = [f"26.10.2025 02:{minute}" for minute in ("00", "15", "30", "45")] * 2
    rows = of_meter(["26.10.2025 01:45", *twice, "26.10.2025 03:00"])
    assert [broken for _, broken in rows] == [[], *[["local_time_is_unique"]] * 8, []]
    assert [rows[0][0], rows[-1][0]] == ["23:45", "02:00"]


@pytest.mark.parametrize(("hour", "instants"), [("first", ["00:30", "01:30"]), ("second", ["01:30", "01:30"])])
def test_conf_may_choose_one_of_the_two_and_then_a_skipped_time_is_read_by_the_clock_of_before(hour: str, instants: list[str]) -> None:
    assert of_meter(["26.10.2025 02:30", "30.03.2025 02:30"], repeated_hour=hour) == [(instant, []) for instant in instants]


def test_a_time_that_is_skipped_breaks_the_same_rule_and_one_that_is_none_only_that_of_valid_times() -> None:
    assert of_meter(["30.03.2025 02:30", "26.10.2025 01:75", "26.10.2025 02:75", ""]) == [
        ("01:30", ["local_time_is_unique"]),
        *[(None, ["event_time_is_valid"])] * 3,
    ]


def test_a_text_that_names_its_offset_is_unique_and_one_that_names_a_region_is_not() -> None:
    texts = pa.array([f"2025-10-26 02:30 {zone}" for zone in ("+02:00", "CET", "Europe/Berlin", "Asia/Tokyo")])
    assert to_instants(texts, Time("t", "yyyy-MM-dd HH:mm z", "Europe/Berlin"))[1].to_pylist() == [True, True, False, True]


def test_offsets_up_to_18_hours_are_read_as_python_reads_them_and_others_are_none() -> None:
    zones = ("Z", "+00:00", "-17:59", "+05:45", "-00:30")
    texts = [f"2025-10-26T02:30:00{fraction}{zone}" for fraction in ("", ".000001") for zone in zones]
    instants, is_unique = to_instants(pa.array([*texts, "2025-10-26T02:30:00+18:30", "2025-10-26T02:30:00+05:60"]), Time("t"))
    assert instants.to_pylist() == [*map(datetime.fromisoformat, texts), None, None]
    assert is_unique.to_pylist() == [True] * (len(texts) + 2)
