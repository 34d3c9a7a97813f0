"""The shipped suites on rows: healthy ones pass, and each planted defect fails the expectation that is about it, and no other."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bronze.schema import EVENTS
from gold.schema import AGGREGATES, CARRY, VECTORS
from orchestration.quality.outcome import Outcome
from orchestration.quality.store import copy_rows, create_suite_view, open_store
from orchestration.quality.suites import packaged
from orchestration.quality.validation import outcomes
from silver.schema import QUARANTINE, READINGS
from tests.rows import INGESTED_AT, at

PARAMETERS = {"max_future_seconds": 300, "max_payload_bytes": 100, "sources": ["plant"], "aggregations": ["average", "median"]}
INFINITY = float("inf")
NAN = float("nan")
SUITES = {shipped.name: shipped for shipped in packaged()}
SCHEMAS = {
    "bronze_events": EVENTS,
    "silver_readings": READINGS,
    "silver_quarantine": QUARANTINE,
    "gold_aggregates": AGGREGATES.append(CARRY),
    "gold_vectors": VECTORS,
}
IDENTITY = {"bronze_batch": 0, "bronze_row": 0}
OF_EVENT = {"payload": b"{}", "header": None, "position": "a.jsonl", "received_at": INGESTED_AT}
ARRIVED = {"source": "plant", "ingested_at": INGESTED_AT} | IDENTITY
WINDOW = {"window_start": at("12:00"), "window_end": at("12:01"), "revision": 0, "gold_batch": 0}
MEASURED = {"device_id": "oven", "metric": "temperature", "event_time": at("11:59:00"), "value": 181.5, "part": 0}
CATALOGUED = {"unit": "degC", "aggregation": "average", "step_seconds": 60, "zone": None, "groups": ["kitchen"]}
HEALTHY: dict[str, dict[str, Any]] = {
    "bronze_events": OF_EVENT | ARRIVED | {"ingested_on": INGESTED_AT.date()},
    "silver_readings": MEASURED | CATALOGUED | ARRIVED,
    "silver_quarantine": OF_EVENT | ARRIVED | dict.fromkeys(MEASURED) | {"part": 0, "broken_rules": ["value_is_a_number"]},
    "gold_aggregates": WINDOW
    | {"device_id": "oven", "metric": "temperature", "value": 2.0, "count": 3, "min": 1.0, "max": 3.0, "sum": 6.0, "latest": 2.0}
    | {"carry": None},
    "gold_vectors": WINDOW | {"entity": "oven", "vector": [1.0, None], "missing": ["humidity"], "filled": []},
}
ALSO_HEALTHY: dict[str, list[dict[str, Any]]] = {
    "silver_readings": [{"aggregation": None, "step_seconds": None, "unit": None}],
    "gold_aggregates": [
        {"value": None, "count": 1, "min": 5.0, "max": 5.0, "sum": 5.0, "latest": 5.0},  # stddev of one reading
        {"value": 3.0, "min": -9.0, "max": -1.0, "sum": -15.0, "latest": -5.0},  # count, or stddev
        {"value": 0.30000000000000004, "min": 0.1, "max": 0.1, "sum": 0.30000000000000004, "latest": 0.1},  # sums of floats
        {"value": 1550.0, "count": 2, "min": 4.0, "max": 14.0, "sum": 18.0, "latest": 14.0, "carry": [14.0, 0.0]},  # wraps at 65536
        {"value": 7.0, "count": 0, "carry": [7.0, 0.0]} | dict.fromkeys(("min", "max", "sum", "latest")),  # carried in
        {"value": -100.0, "count": 1, "min": -100.0, "max": -100.0, "sum": -100.0, "latest": -100.0},
    ],
}
DEFECTS: dict[str, list[tuple[dict[str, Any], str]]] = {
    "bronze_events": [
        ({"payload": None}, "Every event has its payload."),
        ({"bronze_row": None}, "Every event has an identity (bronze_row)."),
        ({"ingested_on": INGESTED_AT.date() + timedelta(days=1)}, "Every event lies in the partition of the day on which it was ingested."),
        ({"source": "gone"}, "Every event is of a source that conf still names."),
        ({"received_at": at("13:00:00")}, "No event was received more than a minute after it was ingested."),
        ({"payload": bytearray(101)}, "At most one payload in a thousand is longer than the policy allows."),
    ],
    "silver_readings": [
        ({"device_id": None}, "Every reading names its device."),
        ({"event_time": None}, "Every reading says when it was measured."),
        ({"value": INFINITY}, "Every value is a finite number."),
        ({"value": NAN}, "Every value is a finite number."),
        ({"event_time": at("12:05:01")}, "No reading is further ahead of its arrival than the policy allows."),
        ({"device_id": ""}, "No device has an empty name."),
        ({"aggregation": "mode"}, "Every aggregation type is one that gold can compute."),
        ({"part": -1}, "Measurements of an event are numbered from 0."),
        (
            {"event_time": datetime.fromisoformat("1970-01-01T00:00:05+00:00")},
            "At most one reading in a thousand was measured before 2001, by a device without a clock.",
        ),
    ],
    "silver_quarantine": [
        ({"broken_rules": None}, "Every row says which rules it breaks."),
        ({"broken_rules": []}, "No row is in quarantine without a broken rule."),
        ({"broken_rules": ["value_is_a_number", None]}, "Every broken rule has a name."),
        ({"payload": None}, "Every row still has its whole payload."),
    ],
    "gold_aggregates": [
        ({"device_id": None}, "Every window names its device."),
        ({"window_end": at("11:59")}, "Every window ends after it starts."),
        ({"count": -3, "sum": -6.0, "min": 2.0, "max": 2.0}, "Every window holds at least one reading, or a value that was carried in."),
        ({"value": None}, "A value is absent only where one reading has no standard deviation."),
        ({"latest": 9.0}, "Every latest value lies between the least and the greatest."),
        ({"sum": 60.0}, "Every sum is one that so many values between the least and the greatest can have."),
        ({"value": 42.0}, "Every value can be explained by the readings of its window."),
        ({"revision": -1}, "Revisions are numbered from 0."),
    ],
    "gold_vectors": [
        ({"entity": None}, "Every vector names its entity."),
        ({"window_end": at("12:00")}, "Every window ends after it starts."),
        ({"vector": None}, "Every row has a vector."),
        ({"vector": [INFINITY, None]}, "Every feature that has a value has a finite one."),
        ({"vector": [NAN, None]}, "Every feature that has a value has a finite one."),
        ({"missing": []}, "Exactly the features without a value are named as missing."),
        ({"filled": ["humidity"]}, "No feature is both missing and filled."),
        ({"vector": [], "missing": []}, "No vector is empty."),
        ({"vector": [1.0, None, 3.0]}, "All vectors of the group have the same length."),
    ],
}


@pytest.fixture(scope="module")
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(open_store()) as found:
        yield found


def run(store: duckdb.DuckDBPyConnection, name: str, rows: list[dict[str, Any]]) -> dict[str, Outcome]:
    """Outcomes by the sentence of their expectation."""
    suite = SUITES[name]
    found = outcomes(store, create_suite_view(store, suite, [table(store, name, rows)]), suite, PARAMETERS)
    return {each.description: outcome for each, outcome in zip(suite.expectations, found, strict=True)}


def table(store: duckdb.DuckDBPyConnection, name: str, rows: list[dict[str, Any]]) -> str:
    """By name: a column that the schema has gained since is null."""
    copy_rows(store, name, pa.Table.from_pylist([HEALTHY[name] | changes for changes in rows], SCHEMAS[name]))
    return name


def failed(found: dict[str, Outcome]) -> set[str]:
    return {sentence for sentence, outcome in found.items() if not outcome.is_success}


@pytest.mark.parametrize("name", SCHEMAS)
def test_healthy_rows_pass(store: duckdb.DuckDBPyConnection, name: str) -> None:
    found = run(store, name, [{}, *ALSO_HEALTHY.get(name, [])])
    assert {sentence: outcome for sentence, outcome in found.items() if not outcome.is_success} == {}


@pytest.mark.parametrize("name", SCHEMAS)
def test_planted_defects_fail_the_expectations_about_them_and_no_others(store: duckdb.DuckDBPyConnection, name: str) -> None:
    found = run(store, name, [{}, *(changes for changes, _ in DEFECTS[name])])
    assert failed(found) == {sentence for _, sentence in DEFECTS[name]}
    assert not any("could not be evaluated" in outcome.observed for outcome in found.values())


def test_what_failed_is_told_with_its_share_and_the_rows(store: duckdb.DuckDBPyConnection) -> None:
    outcome = run(store, "silver_readings", [{}, {}, {}, {"value": INFINITY, "bronze_row": 7}])["Every value is a finite number."]
    assert (outcome.observed, outcome.unexpected_percent) == ("1 of 4 rows", 25.0)
    assert [(row["device_id"], row["event_time"], row["value"], row["bronze_row"]) for row in outcome.samples] == [
        ("oven", "2026-01-01 11:59:00Z", "inf", "7")
    ]


@pytest.mark.parametrize(("quarantined", "broken"), [(1, 0), (2, 1), (6, 2)])
def test_a_quarantine_flood_is_a_warning_above_a_twentieth_and_critical_above_a_fifth(
    store: duckdb.DuckDBPyConnection, quarantined: int, broken: int
) -> None:
    suite = SUITES["silver_share"]
    views = [table(store, "silver_quarantine", [{}] * quarantined), table(store, "silver_readings", [{}] * (20 - (quarantined > 1)))]
    found = outcomes(store, create_suite_view(store, suite, views), suite, PARAMETERS)
    assert sum(not outcome.is_success for outcome in found) == broken
    assert found[0].samples[0]["broken_rules"] == "[value_is_a_number]"


def test_without_rows_only_the_table_itself_is_checked(store: duckdb.DuckDBPyConnection) -> None:
    found = run(store, "gold_vectors", [])
    assert failed(found) == set(found)
    assert {sentence for sentence, outcome in found.items() if outcome.is_success is False} == {"The group has a vector."}


def test_an_expectation_that_cannot_be_evaluated_has_failed_and_says_why(store: duckdb.DuckDBPyConnection) -> None:
    store.execute(f"alter table {table(store, 'silver_readings', [{}])} drop metric")
    suite = SUITES["silver_readings"]
    without_samples = replace(suite, sample=())
    answers = outcomes(store, create_suite_view(store, suite, ["silver_readings"]), without_samples, PARAMETERS)
    found = dict(zip((each.description for each in suite.expectations), answers, strict=True))
    assert failed(found) == {"Every reading names its metric."}
    assert "could not be evaluated" in found["Every reading names its metric."].observed
    assert "metric" in found["Every reading names its metric."].observed
