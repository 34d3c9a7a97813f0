"""The job of alerts, slice by slice, without Spark: kills, changes of conf, and a million readings."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gold.alerts.spec import Alert, Escalation, NoData, Signal
from gold.flows.slices import instants
from orchestration.crash import Point
from orchestration.engine.lake import Lake
from orchestration.jobs.gold import slices
from orchestration.jobs.gold.exact_alerts import ExactAlert, tick_if_due
from orchestration.jobs.gold.prefix import Prefix
from orchestration.storage import registry
from orchestration.storage.commit import append_rows, create
from orchestration.storage.ops_tables import CLOCK, LEDGER, LEDGER_SCHEMA
from orchestration.storage.tables import ensure
from orchestration.utc import from_micros, to_micros
from tests.lakes import conf, recorded, rewrite, write
from tests.orchestration.jobs.killed import killed
from tests.rows import at

START = to_micros(at("2026-01-05T00:00:00"))
SECOND = 1_000_000


def readings(  # noqa: PLR0917
    lake: Lake, value: np.ndarray, devices: int, batch: int, since: int = 0, table: str = "silver.readings", wall: float | None = None
) -> None:
    """A bronze batch in silver: values of devices in turn, a second apart for each; it began at `wall`, or with its last reading."""
    place, schema = np.arange(len(value)), lake.tables[table].schema
    time = instants(START + (since + place // devices) * SECOND)
    began = from_micros(START + round((since + (len(value) - 1) // devices if wall is None else wall) * SECOND))
    columns = {
        "device_id": pa.array(np.char.add("device-", (place % devices).astype(str))),
        "metric": pa.repeat("temperature", len(value)),
        "value": pa.array(value),
        "event_time": time,
        "ingested_at": pa.repeat(pa.scalar(began, schema.field("ingested_at").type), len(value)),
        "bronze_row": pa.array(place),
        "groups": pa.repeat(pa.scalar(["kitchen"]), len(value)),
        "cause": pa.repeat("late", len(value)),
        **{name: pa.repeat(number, len(value)) for name, number in (("bronze_batch", batch), ("part", 0))},
    }
    rows = [columns[field.name].cast(field.type) if field.name in columns else pa.nulls(len(value), field.type) for field in schema]
    append_rows(lake.table_path(table), pa.table(rows, schema), f"planted-{table}-{batch}", 0)
    write(lake, "bronze.events", {"bronze_batch": batch, "bronze_row": 0, "ingested_at": began, "ingested_on": began.date()})


def follow(lake: Lake, batch: int) -> None:
    for alert in lake.conf.alerts.values():
        for _ in slices.follow(lake, ExactAlert(alert), Prefix(batch, {})):
            pass


def changes(lake: Lake, name: str = "hot") -> list[tuple[str, str, int]]:
    """Entity, state and seconds since START."""
    return sorted((row["entity"], row["state"], (to_micros(row["changed_at"]) - START) // SECOND) for row in rows_of(lake, name))


def rows_of(lake: Lake, name: str = "hot") -> list[dict[str, Any]]:
    """In the order in which they were known."""
    rows = [row for row in recorded(lake, "gold.alerts").to_pylist() if row["alert"] == name]
    return sorted(rows, key=lambda row: (row["known_at"], row["changed_at"], row["entity"], row["state"]))


HOT = Alert("hot", Signal("reading", "temperature"), "value > 280", "value < 260", for_seconds=10)
VALUES = np.repeat([200.0, 290.0, 270.0, 200.0, 290.0, 290.0], 400)  # of two devices, 200 s each


def declared(folder: Path, *alerts: Alert) -> Lake:
    lake = Lake(replace(conf(folder), alerts={alert.name: alert for alert in alerts}), None)
    for table in lake.tables.values():
        ensure(table)
    return lake


def followed(lake: Lake, batches: Sequence[int]) -> None:
    """Bronze batches of 1,200 s, each in a slice of its own."""
    for batch in batches:
        readings(lake, VALUES, 2, batch, since=batch * 1200)
        follow(lake, batch)


@pytest.mark.parametrize("passing", [1, 2])
@pytest.mark.parametrize("at_point", [Point.FLOW_BEGUN, Point.FLOW_WRITTEN])
def test_a_kill_loses_no_change_and_doubles_none(at_point: Point, passing: int, tmp_path: Path) -> None:
    whole, lake = declared(tmp_path / "whole", HOT), declared(tmp_path / "killed", HOT)
    followed(whole, [0, 1, 2])
    with killed(at_point, passing):
        followed(lake, [0, 1, 2])
    followed(lake, range(passing, 3))
    assert changes(lake) == changes(whole)
    assert len(changes(whole)) > 10


def test_an_alert_that_is_removed_and_declared_again_has_missed_nothing(tmp_path: Path) -> None:
    whole, lake, without = declared(tmp_path / "whole", HOT), declared(tmp_path / "other", HOT), declared(tmp_path / "other")
    followed(whole, [0, 1, 2])
    followed(lake, [0])
    followed(without, [1])
    followed(lake, [2])
    assert changes(lake) == changes(whole)


@pytest.mark.parametrize("at_point", [Point.FLOW_BEGUN, Point.FLOW_WRITTEN])
def test_a_slice_that_a_kill_left_is_finished_as_it_was_begun_though_the_alert_is_another_one_now(at_point: Point, tmp_path: Path) -> None:
    before, other = declared(tmp_path, HOT), declared(tmp_path, replace(HOT, when="value > 1000"))
    with killed(at_point):
        followed(before, [0])
    follow(other, 0)
    of_oven = [(row["state"], row["reason"]) for row in rows_of(other) if row["entity"] == "device-0"]
    assert of_oven[:2] == [("pending", None), ("firing", None)]
    assert of_oven[-1] == ("normal", "condition changed")


@pytest.mark.parametrize("slices_end", [[6], [2, 6], [0, 1, 2, 3, 4, 5, 6]])
def test_rows_are_the_same_over_one_two_and_seven_cuts_at_batches_late_readings_included(slices_end: list[int], tmp_path: Path) -> None:
    def judged(folder: str, ends: Sequence[int]) -> list[dict[str, Any]]:
        lake, chance = declared(tmp_path / folder, HOT, FEW), np.random.default_rng(3)
        for batch in range(7):
            values = chance.choice([200.0, 270.0, 290.0], 200)
            readings(lake, values, 2, batch, since=batch * 100, wall=batch * 100 + 130)
            if batch % 3 == 2:
                readings(lake, values[::-1], 3, batch, since=batch * 100 - 250, table="silver.late", wall=batch * 100 + 130)
            if batch in ends:
                follow(lake, batch)
        return [*rows_of(lake), *rows_of(lake, "few")]

    whole = judged("whole", [6])
    assert judged("cut", slices_end) == whole
    assert {row["is_past"] for row in whole} == {True, False}
    assert {row["alert"] for row in whole} == {"hot", "few"}


def test_what_silver_calls_late_fires_when_it_comes_and_what_a_retry_re_admits_does_not(tmp_path: Path) -> None:
    lake = declared(tmp_path, replace(HOT, for_seconds=0))
    readings(lake, np.full(1, 200.0), 1, 0, since=20_000)
    follow(lake, 0)
    readings(lake, np.full(2, 290.0), 2, 1, since=10, table="silver.late", wall=20_010)  # device-1 is of a site that is hours behind
    of_late = recorded(lake, "silver.late")
    again = of_late.set_column(of_late.schema.get_field_index("device_id"), "device_id", pa.array(["retried"] * 2))
    append_rows(
        lake.table_path("silver.late"), again.set_column(again.schema.get_field_index("cause"), "cause", pa.array(["retried"] * 2)), "", 0
    )
    follow(lake, 1)
    of_sites = [(row["entity"], row["state"], row["is_past"]) for row in rows_of(lake)]
    assert of_sites == [("device-0", "firing", True), ("device-0", "normal", True), ("device-1", "firing", False)]
    assert {row["known_at"] for row in rows_of(lake)} == {now(20_010)}


SILENT = Alert("hot", Signal("reading", "temperature"), "value > 280", no_data=NoData(60, "fire"))
FEW = Alert("few", Signal("count", every_seconds=60), "readings < 30")


def now(seconds: float) -> datetime:
    return from_micros(START + round(seconds * SECOND))


def test_a_tick_is_recorded_only_where_the_clock_changes_a_state_and_a_generation_that_is_judged_anew_has_the_same_rows(
    tmp_path: Path,
) -> None:
    lake = declared(tmp_path, SILENT, FEW)
    readings(lake, np.full(10, 200.0), 2, 0)
    follow(lake, 0)
    assert [tick_if_due(lake, now(second)) for second in (10, 30, 59, 60)] == [False, False, False, True]
    follow(lake, 0)
    assert [tick_if_due(lake, now(second)) for second in (64.0, 64.1)] == [False, True]
    follow(lake, 0)
    assert not tick_if_due(lake, now(10_000))  # nothing is left that time changes, though intervals go on to be empty
    assert [tick.ticked_at for tick in CLOCK.rows(lake.conf.lake)] == [now(60), now(64.1)]
    assert [(row["entity"], row["state"], row["changed_at"], row["known_at"]) for row in rows_of(lake)] == [
        (f"device-{number}", "firing", now(64), now(64.1)) for number in range(2)
    ]
    assert {row["known_at"] for row in rows_of(lake, "few")} == {now(60)}
    readings(lake, np.full(10, 200.0), 2, 1, since=100)
    follow(lake, 1)
    live = [*rows_of(lake), *rows_of(lake, "few")]
    rewrite(lake, "gold.alerts", recorded(lake, "gold.alerts")[:0])
    shutil.rmtree(lake.checkpoint("gold.flows").local)
    other = Lake(replace(lake.conf, pipeline="other"), None)
    follow(other, 1)
    assert [*rows_of(other), *rows_of(other, "few")] == live
    assert [row["state"] for row in rows_of(other)] == ["firing"] * 2 + ["normal"] * 2


def test_another_summary_severity_or_escalation_ends_nothing(tmp_path: Path) -> None:
    lake = declared(tmp_path, replace(HOT, for_seconds=0))
    readings(lake, np.array([299.0, 291.0]), 2, 0)
    follow(lake, 0)
    edited = replace(HOT, for_seconds=0, summary="{entity} has {value:.0f} degC ({state})", severity="critical", escalate=())
    lake = declared(tmp_path, edited)
    readings(lake, np.array([299.0, 270.0]), 2, 1, since=60)
    follow(lake, 1)
    assert [(entity, state) for entity, state, _ in changes(lake)] == [("device-0", "firing"), ("device-1", "firing")]
    readings(lake, np.array([250.0, 250.0]), 2, 2, since=120)
    follow(lake, 2)
    ends = [row for row in rows_of(lake) if row["state"] == "normal"]
    assert [(row["summary"], row["severity"]) for row in ends] == [
        ("device-0 has 250 degC (normal)", "critical"),
        ("device-1 has 250 degC (normal)", "critical"),
    ]


def test_a_higher_severity_that_is_declared_while_an_alert_fires_comes_in_its_time(tmp_path: Path) -> None:
    for batch, escalate in enumerate([(), (Escalation(200, "page"),)]):
        lake = declared(tmp_path, replace(HOT, for_seconds=0, escalate=escalate))
        readings(lake, np.array([299.0]), 1, batch, since=300 * batch)
        follow(lake, batch)
    assert [(row["severity"], row["reason"]) for row in rows_of(lake)] == [("warning", None), ("page", None)]


def test_another_condition_is_judged_over_all_that_the_lake_holds_and_only_what_differs_is_written(tmp_path: Path) -> None:
    lake = declared(tmp_path, replace(HOT, for_seconds=0))
    readings(lake, np.array([299.0, 291.0, 250.0]), 3, 0)
    follow(lake, 0)
    lake = declared(tmp_path, replace(HOT, for_seconds=0, when="value > 295"))
    follow(lake, 0)  # at once, though nothing has come
    new = [row for row in rows_of(lake) if row["reason"]]
    assert [(row["entity"], row["previous_state"], row["state"], row["reason"]) for row in new] == [
        ("device-1", "firing", "normal", "condition changed")
    ]
    follow(lake, 0)
    readings(lake, np.array([270.0, 270.0, 270.0]), 3, 1, since=60)
    follow(lake, 1)
    assert len(rows_of(lake)) == 3


def test_a_device_that_leaves_devices_yml_ends_as_retired_and_one_that_never_sent_is_silent(tmp_path: Path) -> None:
    expecting = replace(SILENT, signal=Signal("reading", "temperature", "kitchen"), expected="devices.yml")
    lake = declared(tmp_path, expecting)
    registry.sync(lake.conf.lake, lake.conf.devices, now(0))  # oven and fridge of the kitchen, and a press
    readings(lake, np.full(1, 200.0), 1, 0)
    follow(lake, 0)
    assert tick_if_due(lake, now(61))
    follow(lake, 0)
    assert {(row["entity"], row["state"]) for row in rows_of(lake)} == {(name, "firing") for name in ("device-0", "fridge", "oven")}
    registry.sync(lake.conf.lake, {name: device for name, device in lake.conf.devices.items() if name != "oven"}, now(70))
    readings(lake, np.full(1, 200.0), 1, 1, since=80)
    follow(lake, 1)
    assert [(row["entity"], row["state"], row["reason"]) for row in rows_of(lake)[3:]] == [
        *(("oven", "normal", "retired"), ("device-0", "normal", None)),
    ]


BROKEN = Alert("broken", Signal("account", every_seconds=60), "quarantined_share > 0.1")


def accounted(folder: Path, seconds: Sequence[float], slices: Sequence[int]) -> list[tuple[str, str, int]]:
    """Bronze batches that began then, of which each third is broken; the alert looks behind some of them."""
    lake = declared(folder, BROKEN)
    create(lake.table_path(LEDGER), LEDGER_SCHEMA)
    for batch, second in enumerate(seconds):
        began = from_micros(START + round(second * SECOND))
        write(lake, "bronze.events", {"bronze_batch": batch, "bronze_row": 0, "ingested_at": began, "ingested_on": began.date()})
        quarantined = 5 if batch % 3 == 2 else 0
        counts = {"events": 10, "readings": 10 - quarantined, "quarantined": quarantined, "late": 0, "duplicates": 0, "conflicts": 0}
        row = {"bronze_batch": batch, "source": "plant", "without_measurements": 0, **counts}
        append_rows(lake.table_path(LEDGER), pa.Table.from_pylist([row], LEDGER_SCHEMA), "ledger", batch)
        if batch in slices:
            follow(lake, batch)
    return changes(lake, "broken")


@pytest.mark.parametrize("slices", [range(12), [0, 5, 6, 11], [3, 11]])
def test_an_account_counts_each_batch_once_however_batches_are_cut(slices: Sequence[int], tmp_path: Path) -> None:
    began = [0, 20, 59.999999, 59.999999, 70, 69, 130, 180, 180, 200, 260, 400]  # at one instant, and one before the batch before
    whole = accounted(tmp_path / "whole", began, [11])
    assert [second for _, state, second in whole if state == "firing"] == [60, 240]
    assert accounted(tmp_path / "cut", began, slices) == whole


@pytest.mark.slow
def test_each_of_5000_conditions_among_a_million_readings_fires_once_and_recovers_once(tmp_path: Path) -> None:
    lake = declared(tmp_path, HOT)
    value, chance = 200 + 10 * np.random.default_rng(7).random((1000, 1000)), np.random.default_rng(11)
    planted = set()
    for device in range(1000):  # five for each device, in 200 seconds each: too hot for 20, then between the thresholds for 10
        for begin in range(0, 1000, 200):
            second = begin + int(chance.integers(20, 150))
            value[second : second + 20, device], value[second + 20 : second + 30, device] = 290, 270
            planted.add((f"device-{device}", START + second * SECOND, START + (second + 30) * SECOND))
    for batch in range(4):
        readings(lake, value[batch * 250 : (batch + 1) * 250].reshape(-1), 1000, batch, since=batch * 250)
        follow(lake, batch)
    readings(lake, np.full(1, 200.0), 1, 4, since=2000)
    follow(lake, 4)
    rows = recorded(lake, "gold.alerts").select(["entity", "state", "since", "changed_at"]).to_pylist()
    began = sorted((row["entity"], to_micros(row["since"])) for row in rows if row["state"] == "firing")
    ended = sorted((row["entity"], to_micros(row["changed_at"])) for row in rows if row["state"] == "normal")
    assert began == sorted((device, since) for device, since, _ in planted)
    assert ended == sorted((device, until) for device, _, until in planted)
    assert len(rows) == 3 * 5000
