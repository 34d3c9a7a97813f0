"""Alerts of alerts.yml end to end: rows of gold.alerts do not depend on cuts, and a replay gives the same ones."""

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from gold.alert_spec import Alert, NoData, Signal
from gold.spec import Vector
from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot, pinned_snapshot
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.jobs import maintenance
from orchestration.storage.snapshots import find_snapshot
from silver.aggregation import Aggregation
from silver.spec import Metric
from tests.cuts import run_in_cuts
from tests.lakes import KITCHEN, conf, copied, event, land, run, table
from tests.orchestration.supervisor.test_replay import replay
from tests.rows import at

START = at("2026-01-05T00:00:00")
ALERTS = {
    alert.name: alert
    for alert in (
        Alert("hot", Signal("reading", "power"), "value > 7", "value < 3", for_seconds=20),
        Alert("jump", Signal("reading", "power", "kitchen"), "abs(change) > 6", for_times=2, keep_firing_seconds=30),
        Alert("warm_window", Signal("window", "power", "kitchen"), "value > 5"),
        Alert("odd_vector", Signal("vector", group="kitchen", features=("power", "command")), "power > 5 or missing_share > 0.4"),
        Alert("few", Signal("count", "power", every_seconds=60, by="device"), "readings < 4"),
        Alert("rubbish", Signal("account", every_seconds=1), "quarantined_share > 0.001"),
        Alert("quiet", Signal("reading", "command"), "value > 100", no_data=NoData(60, "fire")),
        Alert("zero", Signal("reading", "power"), "1 / (value - value) > 0"),
    )
}
METRICS = {"power": Metric("power", Aggregation.AVERAGE, 60), "command": Metric("command", Aggregation.AVERAGE, 120)}
GROUP = replace(KITCHEN, metrics=("power", "command"), vector=Vector("device", ("power", "command"), 0), lateness_seconds=60)


def plant(folder: Path, **changes: Any) -> Conf:
    made = conf(folder)
    policy = replace(made.policy, lateness_seconds=60)
    return replace(made, **{"policy": policy, "metrics": METRICS, "groups": {"kitchen": GROUP}, "alerts": ALERTS, **changes})


def ran(folder: Path, cuts: int, spark: SparkSession) -> Conf:
    """Half an hour of two ovens."""
    chance, lines = random.Random(7), []
    for second in range(0, 1800, 5):
        now = START + timedelta(seconds=second)
        for device in ("oven", "fridge"):
            if chance.random() < 0.4 and not 600 < second < 800:
                lines.append(event(device, "power", chance.randrange(10), now))
            if chance.random() < 0.1:
                lines.append(event(device, "command", chance.randrange(10), now))
    return run_in_cuts(plant(folder), lines, cuts, START, spark, ["{broken"])


def changes(made: Conf) -> list[str]:
    """Without what tells of cuts; an account is of batches."""
    rows = table(made, "gold.alerts")
    rows = rows[rows.alert != "rubbish"][
        ["alert", "entity", "state", "previous_state", "changed_at", "since", "severity", "value", "alert_id"]
    ]
    return sorted(map(str, rows.fillna("-").to_numpy().tolist()))


def differences(made: Conf) -> list[str]:
    return [str(difference) for outcome in verify(latest_snapshot(made), made).outcomes for difference in outcome.first]


@pytest.fixture(scope="module")
def in_two(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    return ran(tmp_path_factory.mktemp("in_two"), 2, spark)


def test_each_alert_changes_its_state_and_one_that_divides_by_zero_never_fires(in_two: Conf) -> None:
    counts = table(in_two, "gold.alerts").groupby("alert").size().to_dict()
    least = dict.fromkeys(ALERTS, 2) | {"rubbish": 1}  # of two batches the account of the second is not over
    assert {name: counts.get(name, 0) >= least[name] for name in ALERTS} == {name: name != "zero" for name in ALERTS}, counts
    pinned = find_snapshot(in_two.lake)
    assert pinned is not None
    for of in (latest_snapshot(in_two), pinned_snapshot(in_two, pinned)):
        outcomes = {outcome.table: outcome for outcome in verify(of, in_two).outcomes if outcome.table.startswith("gold.alerts/")}
        assert {name: (outcome.rows, outcome.differences) for name, outcome in outcomes.items()} == {
            f"gold.alerts/{name}": (counts.get(name, 0), 0) for name in ALERTS
        }


@pytest.mark.parametrize("cuts", [1, 5])
def test_rows_are_the_same_in_one_batch_and_in_five(cuts: int, in_two: Conf, spark: SparkSession, tmp_path: Path) -> None:
    made = ran(tmp_path, cuts, spark)
    assert changes(made) == changes(in_two)
    assert differences(made) == []


def test_a_replay_gives_the_same_rows_and_goes_on_alike(in_two: Conf, spark: SparkSession, tmp_path: Path) -> None:
    made = plant(tmp_path, devices=copied(in_two, tmp_path).devices)
    before = changes(made)
    replay(made, spark)
    assert changes(made) == before
    assert differences(made) == []
    land(tmp_path, "later.json", [event("oven", "power", 9, START + timedelta(seconds=second)) for second in (1900, 1950, 2200)])
    run(made, spark)
    assert len(changes(made)) > len(before)
    [*maintenance.maintain(Lake(made, spark), at("2026-01-05T10:00:00"), lambda _: pytest.MonkeyPatch.context())]
    assert Lake(made, spark).sql("select count(*) as n from gold.alerts").collect()[0].n > len(before)


def test_verify_takes_a_vector_that_is_filled_from_an_amended_window_as_it_was_first_emitted(spark: SparkSession, tmp_path: Path) -> None:
    group = replace(GROUP, vector=Vector("device", ("power", "command"), 3600))
    alert = Alert("odd", Signal("vector", group="kitchen", features=("power", "command")), "'command' in filled and command > 50")
    made = plant(tmp_path, groups={"kitchen": group}, alerts={"odd": alert})
    of_power = [event("oven", "power", 1, START + timedelta(seconds=second)) for second in range(0, 1200, 20)]
    command, late = (event("oven", "command", value, START + timedelta(seconds=second)) for value, second in ((1, 10), (1000, 20)))
    for name, lines in (("1.json", [command, *of_power[:30]]), ("2.json", [late]), ("3.json", of_power[30:])):
        land(tmp_path, name, lines)
        run(made, spark)
    assert differences(made) == []
    (fired,) = table(made, "gold.alerts").to_dict("records")
    assert (fired["state"], fired["value"]) == ("firing", 500.5)  # the value is that of the feature, not of a text that names one


def test_an_alert_that_is_declared_anew_ends_what_it_had_begun_and_goes_on_from_there(
    in_two: Conf, spark: SparkSession, tmp_path: Path
) -> None:
    copied(in_two, tmp_path)
    before = table(plant(tmp_path), "gold.alerts")
    made = plant(tmp_path, alerts={**ALERTS, "hot": replace(ALERTS["hot"], when="value > 100")})
    land(tmp_path, "later.json", [event("oven", "power", 9, START + timedelta(seconds=second)) for second in (1900, 1950, 2200)])
    run(made, spark)
    rows = table(made, "gold.alerts").query("alert == 'hot'").sort_values("changed_at")
    assert [*rows.groupby("entity").tail(1).state] == ["normal"] * 2
    assert len(rows) <= len(before.query("alert == 'hot'")) + 2
    assert differences(made) == []
