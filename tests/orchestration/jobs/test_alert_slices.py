"""The job of alerts, slice by slice, without Spark: kills, changes of conf, and a million readings."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from gold.alerts.spec import Alert, Signal
from gold.flows.slices import instants
from orchestration.crash import Point
from orchestration.engine.lake import Lake
from orchestration.jobs.gold import slices
from orchestration.jobs.gold.exact_alerts import ExactAlert
from orchestration.jobs.gold.prefix import Prefix
from orchestration.storage.commit import append_rows
from orchestration.storage.ops_tables import LEDGER, LEDGER_SCHEMA
from orchestration.utc import from_micros, to_micros
from tests.lakes import conf, recorded, write
from tests.orchestration.jobs.killed import killed
from tests.rows import at

START = to_micros(at("2026-01-05T00:00:00"))
SECOND = 1_000_000


def readings(lake: Lake, value: np.ndarray, devices: int, batch: int, since: int = 0) -> None:
    """A bronze batch in silver.readings: values of devices in turn, a second apart for each of them."""
    place, schema = np.arange(len(value)), lake.tables["silver.readings"].schema
    time = instants(START + (since + place // devices) * SECOND)
    columns = {
        "device_id": pa.array(np.char.add("device-", (place % devices).astype(str))),
        "metric": pa.repeat("temperature", len(value)),
        "value": pa.array(value),
        "event_time": time,
        "ingested_at": time,
        "bronze_row": pa.array(place),
        "groups": pa.repeat(pa.scalar(["kitchen"]), len(value)),
        **{name: pa.repeat(number, len(value)) for name, number in (("bronze_batch", batch), ("part", 0))},
    }
    rows = [columns[field.name].cast(field.type) if field.name in columns else pa.nulls(len(value), field.type) for field in schema]
    append_rows(lake.table_path("silver.readings"), pa.table(rows, schema), f"planted-{batch}", 0)


def follow(lake: Lake, batch: int) -> None:
    for alert in lake.conf.alerts.values():
        for _ in slices.follow(lake, ExactAlert(alert), Prefix(batch, {})):
            pass


def changes(lake: Lake, name: str = "hot") -> list[tuple[str, str, int]]:
    """Entity, state and seconds since START."""
    rows = [row for row in recorded(lake, "gold.alerts").to_pylist() if row["alert"] == name]
    return sorted((row["entity"], row["state"], (to_micros(row["changed_at"]) - START) // SECOND) for row in rows)


HOT = Alert("hot", Signal("reading", "temperature"), "value > 280", "value < 260", for_seconds=10)
VALUES = np.repeat([200.0, 290.0, 270.0, 200.0, 290.0, 290.0], 400)  # of two devices, 200 s each


def declared(folder: Path, *alerts: Alert) -> Lake:
    return Lake(replace(conf(folder), alerts={alert.name: alert for alert in alerts}), None)


def followed(lake: Lake, batches: Sequence[int]) -> None:
    """Bronze batches of 1,200 s, each in a slice of its own but for the last 600 s, which wait."""
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
    followed(other, [1])
    of_oven = [(state, second) for entity, state, second in changes(other) if entity == "device-0"]
    assert sorted(of_oven, key=lambda change: change[1]) == [("pending", 200), ("firing", 210), ("normal", 599)]


def test_a_count_over_a_long_time_without_readings_comes_in_slices_that_fit_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = Alert("few", Signal("count", every_seconds=60), "readings = 0", for_times=3)

    def judged(slice_rows: int) -> tuple[list[tuple[str, str, int]], int]:
        lake = declared(tmp_path / str(slice_rows), few)
        for batch, (rows, since) in enumerate(((2, 0), (600, 20_000), (2, 40_000))):
            readings(lake, np.full(rows, 200.0), 2, batch, since)
        monkeypatch.setattr(slices, "SLICE_ROWS", slice_rows)
        count_of_slices = sum(1 for _ in slices.follow(lake, ExactAlert(few), Prefix(2, {})))
        return changes(lake, "few"), count_of_slices

    (whole, one), (cut, several) = judged(1_000_000), judged(100)
    assert (cut, one) == (whole, 1)
    assert len([state for _, state, _ in whole if state == "firing"]) == 4
    assert several > 2 * 40_000 / 60 / 100


BROKEN = Alert("broken", Signal("account", every_seconds=60), "quarantined_share > 0.1")


def accounted(folder: Path, seconds: Sequence[float], slices: Sequence[int]) -> list[tuple[str, str, int]]:
    """Bronze batches that began then, of which each third is broken; the alert looks behind some of them."""
    lake = declared(folder, BROKEN)
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
