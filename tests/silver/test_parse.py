"""Payload shapes: what a user can declare, and what becomes of payloads that do not have the shape."""

import json
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silver.csv_rows import LONGEST_HEADER
from silver.spec import Origin, PayloadFormat, Time
from tests.rows import INGESTED_AT, at, events, silver

GOOD = '{"device":"oven","metric":"temperature","value":1.5,"ts":"2026-01-01T00:00:01Z"}'


def taken(readings: list[Any]) -> list[tuple[Any, ...]]:
    return [(row.bronze_row, row.part, row.metric, row.value, row.event_time) for row in readings]


def test_long_rows_give_one_reading_an_event_with_zone_unit_and_lineage() -> None:
    (reading,), quarantined = silver(events([GOOD]))
    assert quarantined == []
    assert reading.asDict() == {
        "device_id": "oven",
        "metric": "temperature",
        "event_time": at("00:00:01"),
        "value": 1.5,
        "unit": "degC",
        "aggregation": "average",
        "step_seconds": 60,
        "zone": "hall",
        "groups": ["kitchen"],
        "attributes": None,
        "source": "plant",
        "ingested_at": INGESTED_AT,
        "bronze_batch": 0,
        "bronze_row": 0,
        "part": 0,
        "parts": 1,
    }


def test_nested_wide_rows_give_one_reading_a_metric_and_a_blank_is_no_measurement() -> None:
    shape = PayloadFormat("json", Origin(field="d.id"), Time("at", "epoch_ms"), metrics={"temperature": "v.t", "humidity": "v.h"})
    payloads = [
        '{"d":{"id":"oven"},"at":1767225601000,"v":{"t":1,"h":2}}',
        '{"d":{"id":"oven"},"at":"1767225602000","v":{"t":null,"h":"3"}}',
        '{"d":{"id":"oven"},"at":1767225603000,"v":{"t":"broken","h":4}}',  # one of two broken: the other one is good
        '{"d":{"id":"oven"},"at":1767225604000,"v":{}}',
    ]
    readings, quarantined = silver(events(payloads), shape)
    assert taken(readings) == [
        (0, 0, "temperature", 1.0, at("00:00:01")),
        (0, 1, "humidity", 2.0, at("00:00:01")),
        (1, 1, "humidity", 3.0, at("00:00:02")),
        (2, 1, "humidity", 4.0, at("00:00:03")),
    ]
    assert [(row.bronze_row, row.part, row.broken_rules) for row in quarantined] == [
        (2, 0, ["value_is_a_number"]),
        (3, 0, ["something_is_measured"]),
    ]


def test_a_list_gives_one_reading_an_element_each_with_its_own_time() -> None:
    shape = PayloadFormat(
        "json", Origin(field="device"), Time("each.t", "epoch_s"), metric=Origin(field="each.n"), value=Origin("each.v"), each="data.list"
    )
    payloads = [
        '{"device":"oven","data":{"list":[{"n":"temperature","v":1,"t":1767225601.5},{"n":"humidity","v":true,"t":1767225602}]}}',
        '{"device":"oven","data":{"list":[]}}',
    ]
    readings, quarantined = silver(events(payloads), shape)
    assert taken(readings) == [(0, 0, "temperature", 1.0, at("00:00:01.5")), (0, 1, "humidity", 1.0, at("00:00:02"))]
    assert [row.bronze_row for row in quarantined] == [1]


def test_csv_takes_its_names_from_the_header_of_its_own_file_and_its_device_from_the_file_name() -> None:
    """As the room's real files: quoted and not, row numbers without a name, local times without a zone."""
    shape = PayloadFormat(
        "csv",
        Origin(file_name=r"^(.+)\.txt$"),
        Time("date", time_zone="Europe/Brussels"),
        metrics={"temperature": "Temperature", "humidity": "Humidity"},
        has_header=True,
    )
    lines = ['"1","2025-12-31 14:19:00",23.7,26', '"2",2025-12-31 14:20:00,,"27"\r', "3,2025-12-31 14:21:00", "2025-12-31 14:22:00,23.7,26"]
    lines.append("5,2025-12-31 14:22:00,23.7,26,1")
    more = "," * (LONGEST_HEADER - len("Humidity,date,Temperature"))
    rows = [events(lines, header=',"date","Temperature","Humidity"')]
    for row, end in ((10, ""), (11, f"{more},")):
        rows.append(events(["26,2025-12-31 14:23:00,23.7"], header=f"Humidity,date,Temperature{end}", first=row))
    readings, quarantined = silver(pa.concat_tables(rows), shape)
    assert [row.device_id for row in readings] == ["room"] * 5
    assert taken(readings) == [
        (0, 0, "temperature", 23.7, at("2025-12-31T13:19:00")),
        (0, 1, "humidity", 26.0, at("2025-12-31T13:19:00")),
        (1, 1, "humidity", 27.0, at("2025-12-31T13:20:00")),
        (10, 0, "temperature", 23.7, at("2025-12-31T13:23:00")),
        (10, 1, "humidity", 26.0, at("2025-12-31T13:23:00")),
    ]
    assert [(row.bronze_row, row.broken_rules) for row in quarantined] == [(n, ["payload_is_readable"]) for n in (2, 3, 4, 11)]


def test_csv_without_header_takes_its_names_from_conf() -> None:
    shape = PayloadFormat(
        "csv",
        Origin(field="dev"),
        Time("t", "dd.MM.yyyy HH:mm:ss"),
        metric=Origin(constant="temperature"),
        value=Origin("v"),
        columns=("dev", "t", "v"),
        separator=";",
    )
    readings, quarantined = silver(events(["oven;01.01.2026 00:00:01;1.5", "oven;soon;1", "oven;01.01.2026 00:00:01"]), shape)
    assert taken(readings) == [(0, 0, "temperature", 1.5, at("00:00:01"))]
    assert [row.broken_rules for row in quarantined] == [["event_time_is_valid"], ["payload_is_readable"]]


@pytest.mark.parametrize(
    ("time_format", "zone", "text", "instant"),
    [
        ("iso", "UTC", "2026-01-01T00:00:01.250Z", "00:00:01.25"),
        ("iso", "Europe/Brussels", "2026-01-01T02:00:00+02:00", "00:00:00"),  # names its own zone
        ("iso", "Europe/Brussels", "2026-01-01 01:00:00", "00:00:00"),
        ("iso", "UTC", "12:30:00", None),  # a cast alone makes it today
        ("iso", "UTC", "2026", None),
        ("epoch_us", "UTC", "1767225600000001", "00:00:00.000001"),
        ("yyyyDDDHHmmssSSS", "UTC", "2026001000001250", "00:00:01.25"),
        ("epoch_ms", "UTC", "99999999999999999999", None),  # would overflow
        ("epoch_s", "UTC", "-1", None),
        ("epoch_s", "UTC", "NaN", None),
    ],
)
def test_event_times_are_read_in_the_declared_format_and_zone(time_format: str, zone: str, text: str, instant: str | None) -> None:
    shape = PayloadFormat("json", Origin(constant="oven"), Time("t", time_format, zone), metrics={"humidity": "h"})
    readings, quarantined = silver(events([json.dumps({"t": text, "h": 1})]), shape)
    found = [row.event_time for row in readings]
    assert found == ([at(instant)] if instant else [])
    assert [row.broken_rules for row in quarantined] == ([] if instant else [["event_time_is_valid"]])


@pytest.mark.parametrize(
    ("time_format", "first", "last", "beyond"),
    [
        (
            "iso",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999Z",
            ["0000-01-01T00:00:00Z", "0000-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"],
        ),
        (
            "yyyy-MM-dd HH:mm:ss.SSSSSS XXX",
            "0001-01-01 00:00:00.000000 Z",
            "9999-12-31 23:59:59.999999 Z",
            ["0001-01-01 00:00:00.000000 +01:00", "9999-12-31 23:59:59.000000 -01:00"],
        ),
        ("epoch_s", "0", "253402300799", ["-1", "-62135596800", "-62135600400", "253402300800", "253402300799.9999999"]),
        ("epoch_ms", "0", "253402300799999", ["-1", "-62135600400000", "253402300800000"]),
        ("epoch_us", "0", "253402300799999968", ["-1", "-62135600400000000", "253402300800000000"]),  # as near as a float comes
    ],
)
@pytest.mark.parametrize("shape_format", ["json", "csv"])
def test_the_first_and_the_last_instant_are_those_of_others_and_what_is_beyond_is_in_quarantine_with_its_payload(
    shape_format: Literal["json", "csv"], time_format: str, first: str, last: str, beyond: list[str]
) -> None:
    time, device, metrics = Time("t", time_format), Origin(constant="oven"), {"humidity": "h"}
    shape = PayloadFormat(shape_format, device, time, metrics=metrics, columns=("t", "h") if shape_format == "csv" else ())
    texts = [first, last, *beyond]
    payloads = [json.dumps({"t": text, "h": 1}) if shape_format == "json" else f"{text},1" for text in texts]
    readings, quarantined = silver(events(payloads), shape)
    assert [row.event_time.isoformat()[:19] for row in readings] == ["1970-01-01T00:00:00" if first == "0" else "0001-01-01T00:00:00"]
    assert [(bytes(row.payload).decode(), row.broken_rules) for row in quarantined] == [
        (payloads[1], ["event_time_is_not_in_the_future"]),
        *((payload, ["event_time_is_valid"]) for payload in payloads[2:]),
    ]
    assert [row.event_time and row.event_time.year for row in quarantined] == [9999, *[None] * len(beyond)]


def test_each_hostile_payload_is_in_quarantine_byte_for_byte_with_its_reason_and_its_neighbours_go_through() -> None:
    hostile = {
        GOOD.replace("2026-01-01", "2099-01-01").encode(): ["event_time_is_not_in_the_future"],
        GOOD.replace("1.5", "1..5").encode(): ["payload_is_readable"],
        GOOD.replace("1.5", '"twelve"').encode(): ["value_is_a_number"],
        GOOD.replace("1.5", "NaN").encode(): ["value_is_a_number"],
        GOOD.replace("1.5", "1e999").encode(): ["value_is_a_number"],
        b"": ["something_is_measured"],
        (GOOD + GOOD).encode(): ["payload_is_readable"],
        (GOOD + "," + GOOD).encode(): ["payload_is_readable"],
        (GOOD + "],[" + GOOD).encode(): ["payload_is_readable"],
        GOOD.encode().replace(b"{", b'{"note":"\xff",'): ["payload_is_utf8"],
        ('{"device":' * 90 + "1" + "}" * 90).encode(): ["something_is_measured"],
        ("[" * 900).encode(): ["payload_is_readable"],
        b"x" * 5000: ["payload_is_small_enough"],
        b"null": ["something_is_measured"],
        GOOD.replace("1.5", '1.5,"unit":"furlong"').encode(): ["unit_is_known"],
        GOOD.replace("1.5", "700").encode(): ["value_is_in_range"],
        GOOD.replace("oven", "nobody").encode(): ["device_is_known"],
        GOOD.replace("temperature", "mood").encode(): ["metric_is_known"],
        GOOD.replace("temperature", "mood").replace("oven", "nobody").encode(): ["device_is_known", "metric_is_known"],
    }
    payloads = [payload for n, bad in enumerate(hostile) for payload in (bad, GOOD.replace(":01Z", f":{n:02d}Z"))]
    readings, quarantined = silver(events(payloads))
    assert {row.bronze_row for row in readings} == set(range(1, len(payloads), 2))
    assert {bytes(row.payload): sorted(row.broken_rules) for row in quarantined} == {bad: sorted(rules) for bad, rules in hostile.items()}


TEXT = st.text(st.characters(blacklist_characters="\n"), max_size=60)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=8,
)
EVENT = st.fixed_dictionaries({}, optional={"device": JSON, "metric": JSON, "value": JSON, "ts": JSON, "unit": JSON}).map(json.dumps)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.data_too_large, HealthCheck.too_slow])
@given(
    st.lists(
        st.binary(max_size=200).filter(lambda b: b"\n" not in b) | TEXT.map(lambda t: t.encode(errors="replace")) | EVENT.map(str.encode),
        min_size=30,
        max_size=60,
    )
)
def test_any_bytes_at_all_are_a_reading_or_in_quarantine_and_never_both(payloads: list[bytes]) -> None:
    numbered = [payload + b" " * (n % 7) for n, payload in enumerate(payloads)]
    readings, quarantined = silver(events([*numbered, GOOD]))
    accepted, rejected = ({row.bronze_row for row in side} for side in (readings, quarantined))
    assert accepted.isdisjoint(rejected)
    assert accepted | rejected == set(range(len(numbered) + 1))
    assert all(bytes(row.payload) == numbered[row.bronze_row] for row in quarantined)
