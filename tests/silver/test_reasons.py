"""Why a measurement breaks a rule: the text that failed, and where; whatever the payload is, without raising."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expectations.rule import Rule
from silver.aggregation import Aggregation
from silver.metric import Metric
from silver.policy import Policy, SilverConfig
from silver.reasons import Reasons
from silver.rules import BUILT_IN
from silver.spec import Origin, PayloadFormat, Time

LONG = PayloadFormat(
    "json", Origin("d"), Time("t", "epoch_s"), metric=Origin("m"), value=Origin("v"), unit=Origin("u"), zone=Origin(topic=2)
)
WIDE = PayloadFormat("json", Origin(topic=2), Time("each.t"), metrics={"temp": "each.x.t", "hum": "each.h"}, each="list")
CSV = PayloadFormat("csv", Origin(file_name=r"(.+)\.csv$"), Time("t"), metrics={"temp": "x"}, has_header=True)
METRICS = {"temp": Metric("temp", Aggregation.AVERAGE, 60, unit="degC", minimum=-40.0, maximum=85.0)}
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def reason(rule: str, payload: bytes, shape: PayloadFormat = LONG, **more: Any) -> str:
    policy = Policy(lateness_seconds=600, max_future_seconds=300, max_payload_bytes=1_000)
    config = SilverConfig({"plant": shape}, policy, METRICS, (Rule("is_warm", "value > 20 or metric <> 'temp'"),))
    row: dict[str, Any] = {
        "source": "plant",
        "payload": payload,
        "header": None,
        "position": "line-1/0/1",
        "part": 0,
        "broken_rules": [rule],
    }
    row |= {"device_id": None, "metric": None, "event_time": None, "value": None, "ingested_at": NOON}
    return Reasons(config, ["oven-01", "oven-02"]).of(row | more)[rule]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", "it is empty"),
        (b'{"a": 1', "character 8: expecting ',' delimiter, found the end"),
        (b'{"a": 1} {"a": 2}', "character 10: extra data, found '{\"a\": 2}'"),
        (b"unavailable", "character 1: expecting value, found 'unavailable'"),
        (b"[1]", "Expected object, got array"),
        (b'{"list": 3}', "Expected array | null, got int - at $.list"),
        (b'{"list": [7]}', "Expected object, got int - at $.list[0]"),
        (b'{"a": "\xb0C"}', 'byte 8 (0xb0) is no UTF-8; as Latin-1 it is \'{"a": "°C"}\''),
    ],
)
def test_an_unreadable_object_is_told_by_place_and_reason(payload: bytes, expected: str) -> None:
    assert reason("payload_is_readable", payload, WIDE) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"1,2,3", "it has 3 values, and the header 2 names: '1,2,3'"),
        (b'1,"2', "a quote (\") is not closed, or stands inside a value: '1,\"2'"),
        (b" ", "it is empty"),
    ],
)
def test_an_unreadable_row_is_told_by_its_values_and_names(line: bytes, expected: str) -> None:
    assert reason("payload_is_readable", line, CSV, header="t,x") == expected
    assert reason("payload_is_readable", b"1,2,3", CSV, header="t,x,x") == "the header names x twice: 't,x,x'"


@pytest.mark.parametrize(
    ("rule", "payload", "more", "expected"),
    [
        ("value_is_a_number", b'{"v": "1015,0"}', {}, "v is '1015,0'"),
        ("value_is_a_number", b'{"v": {"a": [1]}}', {}, "v is '{\"a\":[1]}'"),
        ("value_is_a_number", b"{}", {}, "v is absent or null"),
        ("value_is_in_range", b"{}", {"metric": "temp", "value": 900.0}, "900.0 is not in -40.0 to 85.0"),
        ("event_time_is_valid", b'{"t": "2026-03-02T08:00:00Z"}', {}, "t is '2026-03-02T08:00:00Z' and not epoch_s; it may be iso"),
        ("event_time_is_valid", b'{"t": 1772438400950}', {}, "t is '1772438400950' and not epoch_s; it may be epoch_ms"),
        ("event_time_is_valid", b'{"t": "soon"}', {}, "t is 'soon' and not epoch_s"),
        ("event_time_is_valid", b'{"t": null}', {}, "t is absent or null"),
        ("event_time_is_not_in_the_future", b"{}", {"event_time": NOON}, f"event_time is {NOON}, ingested_at is {NOON}"),
        ("unit_is_known", b'{"u": "F"}', {"metric": "temp"}, "u is 'F' and temp is in degC"),
        ("something_is_measured", b"{}", {}, "v is absent or null"),
        ("device_is_known", b"{}", {"device_id": "Oven-01"}, "'Oven-01' is not in devices.yml; did you mean 'oven-01'?"),
        ("metric_is_known", b"{}", {"metric": "rain"}, "'rain' is not in metrics.yml"),
        ("is_warm", b"{}", {"metric": "temp", "value": 1.5}, "metric is temp, value is 1.5"),
    ],
)
def test_the_text_that_failed_is_shown(rule: str, payload: bytes, more: dict[str, Any], expected: str) -> None:
    assert reason(rule, payload, **more) == expected


def test_a_unit_that_conf_says_is_told_beside_that_of_the_metric() -> None:
    shape = replace(LONG, unit=Origin(constant="F"))
    assert reason("unit_is_known", b"{}", shape, metric="temp") == "conf says 'F' and temp is in degC"


def test_of_a_list_the_element_and_the_field_of_the_measurement_are_shown() -> None:
    payload = b'{"list": [{"h": 1, "x": {"t": 2}}, {"h": "wet", "x": {"t": "hot"}}]}'
    assert [reason("value_is_a_number", payload, WIDE, part=part) for part in (2, 3)] == ["each.x.t is 'hot'", "each.h is 'wet'"]
    assert reason("metric_is_present", payload, WIDE) == "none of each.x.t, each.h has a value"


def test_a_value_below_what_is_no_object_is_told_as_that() -> None:
    assert reason("value_is_a_number", b'{"list": [{"x": 7}]}', WIDE) == "something above each.x.t is no object"


def test_of_a_name_of_a_file_or_a_topic_the_name_is_shown() -> None:
    assert reason("device_is_present", b"1,2", CSV, position="oven.txt") == r"'oven.txt' does not match (.+)\.csv$"
    assert reason("device_is_present", b"{}", WIDE, position="line/0/1") == "'line/0/1' does not match level 2 of a topic"


def test_a_source_that_nobody_knows_has_no_reasons() -> None:
    config = SilverConfig({}, Policy(0, 0, 1), {})
    assert Reasons(config, []).of({"source": "gone", "broken_rules": ["device_is_known"], "payload": b""}) == {}


@given(
    st.binary(max_size=40) | st.text(alphabet='{}[]":,0aNe \\\ud7ff', max_size=40).map(str.encode),
    st.sampled_from([LONG, WIDE, CSV]),
    st.integers(0, 9),
)
def test_whatever_the_payload_is_each_rule_has_a_reason(payload: bytes, shape: PayloadFormat, part: int) -> None:
    for rule in BUILT_IN:
        assert reason(rule, payload, shape, device_id="x", metric="y", header="t,x", part=part)
