"""Measures on small tables: when each must stay quiet, and what it says with too little data."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from expectations.suite import Expectation, Severity
from gold.windows.spec import Group
from orchestration.conf.model import Conf, Device, Quality, Reference
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.quality.kinds import KINDS, evaluate_measure, is_measure
from orchestration.quality.measures.context import Context
from orchestration.quality.measures.drift import Shift, describe_change, psi
from orchestration.quality.outcome import Outcome
from orchestration.quality.store import copy_rows, open_store
from orchestration.quality.suites import packaged
from silver.aggregation import Aggregation
from silver.metric import Conversion, Metric
from silver.schema import DUPLICATES, LATE, QUARANTINE, READINGS
from tests.lakes import bare_conf
from tests.rows import at

METRICS = {"temperature": Metric("temperature", Aggregation.AVERAGE, 600, "degC", conversions={"degF": Conversion(5 / 9, -160 / 9)})}
GROUPS = {name: Group(name, ("temperature",), 600, name) for name in ("kitchen", "hall")}
DEVICES = {"oven": Device("oven", ("kitchen",), "z"), "fridge": Device("fridge", ("kitchen",), "z"), "lamp": Device("lamp", ("hall",), "z")}
SHIPPED = {each.type: each for suite in packaged() for each in suite.expectations if is_measure(each)}
NOW = at("2026-01-15T12:05:00")
# Ten days, three devices, six rows an hour, a different value in each.
TEN_DAYS = """
  select device_id, 'temperature' as metric, ts as event_time, 20 + sin(epoch(ts) / 3000) as value, ts + interval 1 minute as ingested_at,
    'degC' as unit, 'average' as aggregation, 600 as step_seconds, 'z' as zone, [if(device_id = 'lamp', 'hall', 'kitchen')] as groups,
    0 as bronze_batch
  from generate_series(timestamptz '2026-01-05 00:00Z', timestamptz '2026-01-15 12:00Z', interval 10 minute) as t(ts),
    (values ('oven'), ('fridge'), ('lamp')) as d(device_id)
"""
NIGHT = "hour(event_time) < 8"


def conf_of(lake: Path) -> Conf:
    return bare_conf(lake.parent, lake=Location(lake), metrics=METRICS, devices=DEVICES, groups=GROUPS)


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    """Over tables of ten healthy days."""
    with closing(open_store()) as store:
        tables = {"readings": READINGS, "late": LATE, "quarantine": QUARANTINE, "duplicates": DUPLICATES}
        for table, schema in tables.items():
            copy_rows(store, f"silver_{table}", schema.empty_table())
        store.execute(f"insert into silver_readings by name {TEN_DAYS}")
        yield Context(store, Lake(conf_of(tmp_path / "lake")), NOW, lambda table: table.replace(".", "_"), True, None)


def outcome(context: Context, kind: str, **kwargs: Any) -> Outcome:
    """As the shipped suite asks, but for some kwargs."""
    shipped = SHIPPED[kind]
    return evaluate_measure(replace(shipped, kwargs={**shipped.kwargs, **kwargs}), context, "silver.readings", {})


def without(context: Context, condition: str) -> None:
    context.store.execute(f"delete from silver_readings where {condition}")


def test_ten_healthy_days_pass_every_measure_of_readings(context: Context) -> None:
    few = {"tidemark_row_count_to_be_as_a_week_before": {"min_rows": 10}}
    found = {kind: outcome(context, kind, **few.get(kind, {})) for kind in SHIPPED if KINDS[kind].table == "silver.readings"}
    assert {kind: each.observed for kind, each in found.items() if not each.is_success} == {}


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("tidemark_row_count_to_be_as_a_week_before", "no hour with 100 rows a week before"),
        ("tidemark_days_to_be_whole", "there are 12 hours of readings, 96 are needed"),
        ("tidemark_devices_to_be_heard", "there are 12 hours of readings, 24 are needed"),
        ("tidemark_registered_devices_to_be_heard", "there are 12 hours of readings, 24 are needed"),
        ("tidemark_clocks_to_be_steady", "there are 12 hours of readings, 36 are needed"),
        ("tidemark_distribution_to_be_steady", "there are 12 hours of readings; 192 are needed"),
    ],
)
def test_with_half_a_day_of_history_a_measure_is_not_checked_and_says_why(context: Context, kind: str, reason: str) -> None:
    without(context, "event_time < '2026-01-15 00:00Z'")
    found = outcome(context, kind)
    assert (found.is_success, found.observed.startswith("not checked: ")) == (None, True)
    assert reason in found.observed


def test_without_a_row_nothing_fails(context: Context) -> None:
    without(context, "true")
    kinds = [kind for kind in SHIPPED if KINDS[kind].table == "silver.readings"]
    found = [outcome(context, kind) for kind in kinds]
    found += [evaluate_measure(SHIPPED["tidemark_share_to_be_usual"], context, f"silver.{table}", {}) for table in ("late", "quarantine")]
    assert [each.observed for each in found if each.is_success is False] == []


def test_a_plant_that_rests_at_night_and_on_sunday_has_no_truncated_day(context: Context) -> None:
    without(context, f"{NIGHT} or event_time::date = '2026-01-11'")
    assert outcome(context, "tidemark_days_to_be_whole").is_success


def test_a_day_that_ends_early_is_truncated_also_where_it_is_of_one_group(context: Context) -> None:
    without(context, "device_id = 'lamp' and event_time between '2026-01-12 15:00Z' and '2026-01-12 23:59Z'")
    found = outcome(context, "tidemark_days_to_be_whole")
    assert found.observed == "group hall: the day is truncated, 0 rows in 9 hours from 2026-01-12 15:00Z, 6 an hour are usual"


def test_a_device_that_rests_every_night_is_not_missing_in_the_morning(context: Context) -> None:
    without(context, "device_id = 'oven' and hour(event_time) < 13")
    assert outcome(context, "tidemark_devices_to_be_heard").is_success


def test_a_device_is_missed_although_the_whole_plant_rested_longer_before(context: Context) -> None:
    without(context, "event_time between '2026-01-10 00:00Z' and '2026-01-11 23:59Z'")
    without(context, "device_id = 'oven' and event_time > '2026-01-15 04:00Z'")
    found = outcome(context, "tidemark_devices_to_be_heard")
    assert found.observed == "device oven is missing: nothing for 8 hours, since 2026-01-15 04:00Z"
    assert found.samples[0]["what"] == found.observed


def test_a_device_with_an_endless_name_is_told_in_a_few_lines(context: Context) -> None:
    context.store.execute("update silver_readings set device_id = repeat('x', 20000) where device_id = 'oven'")
    without(context, "len(device_id) > 9 and event_time > '2026-01-15 04:00Z'")
    found = outcome(context, "tidemark_devices_to_be_heard")
    assert found.is_success is False
    assert len(found.observed) + sum(map(len, found.samples[0].values())) < 2000


def test_a_group_is_missed_as_a_whole_and_its_devices_are_not_named_again(context: Context) -> None:
    without(context, "device_id in ('oven', 'fridge') and event_time > '2026-01-15 04:00Z'")
    found = outcome(context, "tidemark_devices_to_be_heard")
    assert found.observed == "group kitchen (2 devices) is missing: nothing for 8 hours, since 2026-01-15 04:00Z"


def test_a_registered_device_that_never_spoke_is_named(context: Context) -> None:
    without(context, "device_id = 'lamp'")
    assert "device lamp is registered" in outcome(context, "tidemark_registered_devices_to_be_heard").observed


def test_a_switch_may_rest_and_a_sensor_may_not(context: Context) -> None:
    rest = "update silver_readings set value = 1.0 where device_id = '{}' and ({})"
    context.store.execute(rest.format("oven", "event_time > '2026-01-15 00:00Z'"))
    context.store.execute(rest.format("fridge", "hour(event_time) <> 9 or event_time > '2026-01-14 00:00Z'"))
    found = outcome(context, "tidemark_sensors_to_vary")
    assert found.observed == "temperature of device oven is stuck: 1 in all 61 rows since 2026-01-15 02:00Z"


def test_a_pipeline_that_was_behind_shifts_no_clock_and_a_device_that_held_readings_back_does_not(context: Context) -> None:
    behind = "update silver_readings set ingested_at = ingested_at + interval {}"
    context.store.execute(behind.format("2 hour where event_time > '2026-01-14 12:00Z'"))
    context.store.execute(behind.format("3 hour where device_id = 'oven' and minute(event_time) > 0 and event_time > '2026-01-14 12:00Z'"))
    assert outcome(context, "tidemark_clocks_to_be_steady").is_success


def test_a_clock_that_runs_ahead_is_named(context: Context) -> None:
    sooner = "update silver_readings set ingested_at = ingested_at - interval 5 minute"
    context.store.execute(f"{sooner} where device_id = 'oven' and event_time > '2026-01-14 12:00Z'")
    assert outcome(context, "tidemark_clocks_to_be_steady").observed == (
        "the clock of device oven has shifted: it is 5 minutes ahead of where it was"
    )


def test_event_times_are_not_compared_with_now_while_old_data_is_loaded(context: Context) -> None:
    assert outcome(context, "tidemark_rows_to_be_fresh", column="event_time").is_success
    context.store.execute("update silver_readings set ingested_at = ingested_at + interval 100 day")
    found = outcome(replace(context, now=NOW + timedelta(days=100)), "tidemark_rows_to_be_fresh", column="event_time")
    assert "this is the past, loaded" in found.observed


def test_a_day_without_anything_new_is_told_with_its_groups(context: Context) -> None:
    later = replace(context, now=NOW + timedelta(days=2))
    assert outcome(later, "tidemark_rows_to_be_fresh", column="event_time").observed == "the newest event_time is 2 days old"
    assert "group hall: nothing for 2 days" in outcome(later, "tidemark_groups_to_be_fresh").observed


def test_what_is_wrong_is_told_by_column_and_what_arrived_before_conf_changed_is_left_alone(context: Context) -> None:
    context.store.execute("update silver_readings set unit = 'K' where event_time < '2026-01-13 00:00Z'")
    assert outcome(context, "tidemark_readings_to_be_enriched_as_declared").is_success
    context.store.execute("update silver_readings set groups = ['hall'] where device_id = 'oven'")
    assert outcome(context, "tidemark_readings_to_be_enriched_as_declared").observed == (
        "wrong enrichment: groups of metric temperature and device oven is [hall], conf says [kitchen] (144 rows)"
    )


def test_what_conf_does_not_know_is_unassigned_and_not_wrong(context: Context) -> None:
    unknown = "unit = null, aggregation = null, step_seconds = null, groups = ['unassigned']"
    context.store.execute(f"update silver_readings set metric = 'colour', {unknown} where device_id = 'oven'")
    context.store.execute("update silver_readings set device_id = 'stranger', groups = ['unassigned'] where device_id = 'lamp'")
    assert outcome(context, "tidemark_readings_to_be_enriched_as_declared").is_success


def test_a_reference_is_pinned_once_and_what_came_later_is_compared_with_it(context: Context) -> None:
    path = context.lake.conf.lake / "quality" / "reference"
    assert outcome(context, "tidemark_distribution_to_be_steady").is_success
    assert len(DeltaTable(path.local).to_pyarrow_table()) == 3
    context.store.execute("update silver_readings set value = value * 1.8 + 32")
    found = outcome(replace(context), "tidemark_distribution_to_be_steady")
    assert "temperature of 3 of 3 devices, most of all" in found.observed
    assert "has drifted: its unit looks changed, to degF without being converted" in found.observed
    assert len(DeltaTable(path.local).to_pyarrow_table()) == 3


def test_the_reference_is_the_time_that_conf_names_and_another_one_once_it_names_another(context: Context) -> None:
    path, kind = context.lake.conf.lake / "quality" / "reference", "tidemark_distribution_to_be_steady"
    context.store.execute("update silver_readings set value = value + 10 where event_time >= '2026-01-08'")
    assert outcome(context, kind).is_success  # by the week before, most of which is so
    for first, last, is_steady in ((5, 7, False), (9, 13, True)):
        reference = Reference(at(f"2026-01-{first:02}T00:00:00"), at(f"2026-01-{last:02}T00:00:00"))
        lake = Lake(replace(context.lake.conf, quality=Quality(reference=reference)))
        assert outcome(replace(context, lake=lake), kind).is_success is is_steady
        pinned = DeltaTable(path.local).to_pyarrow_table().to_pylist()
        assert sum((row["from_at"], row["until_at"]) == (reference.from_at, reference.until_at) for row in pinned) == 3


def test_devices_with_few_rows_are_pooled_by_metric(context: Context) -> None:
    without(context, "minute(event_time) > 0")
    assert outcome(context, "tidemark_distribution_to_be_steady", min_rows=70).is_success
    context.store.execute("update silver_readings set value = value + 10 where event_time > '2026-01-13 12:00Z'")
    found = outcome(context, "tidemark_distribution_to_be_steady", min_rows=70)
    assert "temperature of 3 of 3 devices" in found.observed
    assert outcome(context, "tidemark_distribution_to_be_steady", min_rows=100).is_success is None


def test_a_device_that_works_from_monday_to_friday_has_a_reference(context: Context) -> None:
    without(context, "dayofweek(event_time) in (0, 6) or hour(event_time) < 8")
    context.store.execute("update silver_readings set value = value + 10 where device_id = 'oven' and event_time > '2026-01-14 12:00Z'")
    assert "temperature of device oven has drifted" in outcome(context, "tidemark_distribution_to_be_steady", min_rows=50).observed


def test_a_run_on_a_snapshot_pins_nothing(context: Context) -> None:
    assert outcome(replace(context, is_kept=False), "tidemark_distribution_to_be_steady").is_success
    assert not (context.lake.conf.lake / "quality").is_dir()


def test_psi_is_0_for_the_same_histogram_and_large_for_another() -> None:
    assert psi([10] * 10, [20] * 10) == pytest.approx(0, abs=0.001)
    assert psi([50, 50, 0, 0], [0, 0, 50, 50]) > 5


@pytest.mark.parametrize(
    ("moved", "told"),
    [
        (Shift(20.0, 1.0, 68.5), "its unit looks changed, to degF without being converted"),
        (Shift(68.0, 1.0, 20.2), "its unit looks changed, converted from degF once too often"),
        (Shift(20.0, 1.0, 20_100.0), "its unit looks changed, values are 1000 times as large"),
        (Shift(20.0, 1.0, 30.0), ""),
        (Shift(0.0, 0.0, 0.5), ""),
    ],
)
def test_a_change_is_named_after_the_unit_that_explains_it(moved: Shift, told: str) -> None:
    assert describe_change("oven", "temperature", {("oven", "temperature"): moved}, METRICS) == told


def test_shipped_measures_give_every_kwarg_that_their_kind_requires_and_no_other() -> None:
    for suite_ in packaged():
        for each in filter(is_measure, suite_.expectations):
            declared = KINDS[each.type].kwargs
            assert {name for name, kwarg in declared.items() if kwarg.default is kwarg.empty} <= each.kwargs.keys() <= declared.keys()
            for given, value in each.kwargs.items():
                assert isinstance(value, (int, float) if declared[given].annotation is float else declared[given].annotation)
    assert set(SHIPPED) == set(KINDS)


@pytest.mark.parametrize(
    ("kind", "kwargs", "why"),
    [
        ("tidemark_magic", {}, "tidemark_magic"),
        ("tidemark_days_to_be_whole", {"min_days": 3}, "min_share"),
        ("tidemark_windows_to_be_new", {"hours": 6}, "it is about gold.*_aggregates"),
        ("tidemark_rows_to_be_fresh", {"column": "colour", "max_seconds": 5}, "colour"),
    ],
)
def test_a_measure_that_cannot_be_evaluated_has_failed_and_says_why(context: Context, kind: str, kwargs: dict[str, Any], why: str) -> None:
    found = evaluate_measure(Expectation(kind, "It holds.", Severity.INFO, kwargs), context, "silver.readings", {})
    assert (found.is_success, found.observed.startswith("could not be evaluated: ")) == (False, True)
    assert why in found.observed


def test_a_parameter_stands_for_a_value_of_conf(context: Context) -> None:
    expectation = Expectation("tidemark_groups_to_be_fresh", "It is.", Severity.INFO, {"max_seconds": {"$PARAMETER": "lateness_seconds"}})
    assert (
        evaluate_measure(expectation, replace(context, now=NOW + timedelta(days=1)), "silver.readings", {"lateness_seconds": 60}).is_success
        is False
    )
