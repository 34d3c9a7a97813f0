"""Flows of flows.yml and alerts of alerts.yml end to end: what a lake holds of them equals verify's own answer, however the events came."""

import random
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from gold.alerts.spec import Alert, NoData, Signal
from gold.flows.spec import By, Counter, Distance, DutyCycle, FlowSpec, Join, Kind, Pairs, Sessions, Silence, StateMachine, Transition
from gold.windows.spec import Vector
from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot, pinned_snapshot
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.jobs import maintenance
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.tables import LakeStore
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.conf_under_test import CHANGES, assert_conf_tests_compute_the_same
from tests.declared_flow import flow_of
from tests.lakes import (
    KITCHEN,
    SHAPE,
    conf,
    copied,
    differences,
    event,
    land,
    recorded,
    replay,
    rewrite,
    run,
    table,
    with_batches_of,
)
from tests.rows import at

START = at("2026-01-05T00:00:00")
KINDS: dict[str, Kind] = {
    "baking": Sessions(20, "power"),
    "busy": Sessions(15),
    "runs": Sessions(30, "power", "value > 4"),
    "answered": Pairs("command", "power", 20, -5, By.DEVICE, Join.FULL, "value > 3", "value < 8"),
    "nearby": Pairs("command", "command", 30, 1, By.ZONE, Join.LEFT),
    "by_request": Pairs("command", "power", 60, -10, By.DEVICE, Join.FULL, key="request"),
    "oven_state": StateMachine(
        "power",
        "idle",
        (Transition("idle", "hot", "value > 6"), Transition("hot", "idle", "value < 3"), Transition("hot", "stuck", None, 60)),
    ),
    "quiet": Silence(20),
    "travel": Distance("temperature", "vibration", 120, 20_000.0),
    "use": DutyCycle("power", "value > 4", 60, 90),
    "energy": Counter(metric="power", every_seconds=120, wraps_at=10),
}
FLOWS = {name: flow_of(name, kind, "kitchen" if name == "busy" else None) for name, kind in KINDS.items()}
TABLES = sorted({f"gold.{flow.table}" for flow in FLOWS.values()})
ALERTS = {
    alert.name: alert
    for alert in (
        Alert("hot", Signal("reading", "power"), "value > 7", "value < 3", for_seconds=20),
        Alert("jump", Signal("reading", "power", "kitchen"), "abs(change) > 6", for_times=2, keep_firing_seconds=30),
        Alert("warm_window", Signal("window", "power", "kitchen"), "value > 5"),
        Alert("odd_vector", Signal("vector", group="kitchen", features=("power", "command")), "power > 5 or missing_share > 0.4"),
        Alert("few", Signal("count", "power", every_seconds=60, by="device"), "readings < 4"),
        Alert("rubbish", Signal("account", every_seconds=1), "quarantined_share > 0.001"),
        Alert(
            "quiet", Signal("reading", "command"), "value > 100", no_data=NoData(1, "fire")
        ),  # by arrival: a tick at the end of a run tells it
        Alert("zero", Signal("reading", "power"), "1 / (value - value) > 0"),
    )
}
METRICS = {
    name: Metric(name, Aggregation.AVERAGE, seconds)
    for name, seconds in (("power", 60), ("command", 120), ("temperature", 600), ("vibration", 600))
}
GROUP = replace(KITCHEN, metrics=("temperature", "power", "command"), vector=Vector("device", ("power", "command"), 0), lateness_seconds=60)


def plant(folder: Path, **changes: Any) -> Conf:
    made = conf(folder)
    policy = replace(made.policy, lateness_seconds=60)
    source = replace(made.sources["plant"], payload_format=replace(SHAPE, attributes={"request": "value"}))
    declared: dict[str, Any] = {"policy": policy, "metrics": METRICS, "groups": {"kitchen": GROUP}, "flows": FLOWS, "alerts": ALERTS}
    declared["sources"] = {"plant": source}
    return replace(made, **(declared | changes))


def events() -> list[str]:
    """About half an hour of two ovens, in order of time."""
    chance, lines = random.Random(7), []
    for second in range(0, 1800, 5):
        now = START + timedelta(seconds=second)
        for device in ("oven", "fridge"):
            if chance.random() < 0.4 and not 600 < second < 800:
                lines.append(event(device, "power", chance.randrange(10), now))
            if chance.random() < 0.1:
                lines.append(event(device, "command", chance.randrange(10), now))
            if chance.random() < 0.2:
                lines += [event(device, metric, chance.random(), now) for metric in ("temperature", "vibration")]
    return lines


def ran(folder: Path, cuts: int, spark: SparkSession, *, has_a_run_each: bool = False) -> Conf:
    """A batch for each file. A file has its lines in disorder, one twice and a broken one, and but for the first one that is late."""
    made, lines, chance = with_batches_of(plant(folder), 1), events(), random.Random(cuts)
    size = -(-len(lines) // cuts)
    for number, begin in enumerate(range(0, len(lines), size)):
        part = [*lines[begin : begin + size]]
        chance.shuffle(part)
        late = [event("oven", "power", 9, START - timedelta(hours=1))] if number else []
        land(made.folder, f"{number}.json", [*part, part[0], "{broken", *late])
        if has_a_run_each:
            run(made, spark)
    run(made, spark)
    return made


def rows_of(made: Conf) -> dict[str, list[str]]:
    """By table, without lineage, which tells of the cuts."""
    tables = {name: table(made, name).pipe(lambda rows: rows[_but_lineage(rows)]).round(6) for name in TABLES}
    tables["gold.alerts"] = table(made, "gold.alerts")[CHANGES]
    return {name: sorted(map(str, rows.fillna("-").to_numpy().tolist())) for name, rows in tables.items()}


def _but_lineage(rows: Any) -> list[str]:
    return [name for name in rows.columns if not name.endswith(("bronze_batch", "bronze_row", "part"))]


def land_later(folder: Path) -> None:
    land(folder, "later.json", [event("oven", "power", 9, START + timedelta(seconds=second)) for second in (1900, 1950, 2200)])


@pytest.fixture(scope="module")
def in_two(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    """Two runs, so that the account of the first batch is over when the second one comes."""
    return ran(tmp_path_factory.mktemp("in_two"), 2, spark, has_a_run_each=True)


@pytest.fixture
def copy_of_two(in_two: Conf, tmp_path: Path) -> Conf:
    copied(in_two, tmp_path)
    return plant(tmp_path)


def test_every_flow_and_alert_has_rows_but_one_that_divides_by_zero_and_verify_gives_the_same_ones(in_two: Conf) -> None:
    store, changes = LakeStore(in_two), table(in_two, "gold.alerts").groupby("alert").size().to_dict()
    assert all(len(table(in_two, store.stored(f"gold.{name}")).query(f"flow == '{name}'")) > 3 for name in FLOWS)
    least = dict.fromkeys(ALERTS, 2) | {"rubbish": 1}  # of two batches the account of the second is not over
    assert {name: changes.get(name, 0) >= least[name] for name in ALERTS} == {name: name != "zero" for name in ALERTS}, changes
    pinned = find_snapshot(in_two.lake)
    assert pinned is not None
    for snapshot in (latest_snapshot(in_two), pinned_snapshot(in_two, pinned)):
        outcomes = {outcome.table: outcome for outcome in verify(snapshot, in_two).outcomes}
        assert [outcome.first for outcome in outcomes.values() if outcome.differences] == []
        assert all(outcomes[f"gold.{name}"].rows > 3 for name in FLOWS)
        assert {name: outcomes[f"gold.alerts/{name}"].rows for name in ALERTS} == {name: changes.get(name, 0) for name in ALERTS}


def test_tests_of_a_conf_compute_what_a_run_does(in_two: Conf) -> None:
    assert_conf_tests_compute_the_same(in_two)


def test_a_visit_to_a_state_that_is_over_is_a_row_with_its_start_end_and_seconds(in_two: Conf) -> None:
    changes = table(in_two, "gold.states").query("flow == 'oven_state'").sort_values(["device_id", "changed_at"])
    query = "select * from gold.oven_state_visits order by device_id, visit_end"
    visits = [*DuckDbEngine(in_two, Limits(seconds=60, rows=10_000)).ask(Question(query)).rows.to_pylist()]
    assert [(row["device_id"], row["state"], row["visit_end"]) for row in visits] == [
        *changes[["device_id", "previous", "changed_at"]].itertuples(index=False, name=None)
    ]
    assert all(row["visit_end"] - row["visit_start"] == timedelta(seconds=row["seconds"]) for row in visits)
    of_oven = [row for row in visits if row["device_id"] == "oven"]
    assert all(before["visit_end"] == after["visit_start"] for before, after in pairwise(of_oven))


@pytest.mark.parametrize("cuts", [1, 5])
def test_rows_are_the_same_in_one_batch_and_in_five(cuts: int, in_two: Conf, spark: SparkSession, tmp_path: Path) -> None:
    made = ran(tmp_path, cuts, spark)
    rows, of_two = rows_of(made), rows_of(in_two)
    assert {name: rows[name] for name in TABLES} == {name: of_two[name] for name in TABLES}  # alerts judge what has come with each batch
    assert differences(made) == []
    assert_conf_tests_compute_the_same(made)


def test_a_replay_holds_the_same_rows_and_goes_on_alike(copy_of_two: Conf, spark: SparkSession) -> None:
    made = copy_of_two
    before = rows_of(made)
    replay(made, spark)
    assert rows_of(made) == before
    assert differences(made) == []
    land_later(made.folder)
    run(made, spark)
    assert rows_of(made) != before
    assert differences(made) == []
    [*maintenance.maintain(Lake(made, spark), at("2026-01-05T10:00:00"), lambda _: pytest.MonkeyPatch.context())]
    counts = """select (select count(*) from gold.baking) as sessions, (select count(*) from gold.alerts) as changes,
      (select count(*) from gold.oven_state_visits where visit_start < visit_end) as visits"""
    (counted,) = Lake(made, spark).sql(counts).collect()
    assert counted.sessions > 3
    assert counted.visits > 3
    assert counted.changes > len(before["gold.alerts"])


def test_verify_finds_in_each_table_a_row_that_is_wrong_and_one_that_is_missing(copy_of_two: Conf) -> None:
    wrong: dict[str, tuple[str, Any]] = {"sessions": ("count", 99), "pairs": ("right_value", 99.0)}
    wrong |= {"states": ("state", "odd"), "measures": ("value", 99.0)}
    store = LakeStore(copy_of_two)
    rows = {name: recorded(store, f"gold.{name}") for name in wrong}
    for name, (column, value) in wrong.items():
        declared, cells = rows[name].schema.field(column), rows[name][column].combine_chunks()
        changed = pa.chunked_array([pa.array([value], declared.type), cells[1:]])
        rewrite(store, f"gold.{name}", rows[name].set_column(rows[name].schema.get_field_index(column), declared, changed))
    assert {FLOWS[difference.table.removeprefix("gold.")].table for difference in differences(copy_of_two)} == rows.keys()
    for name in rows:
        rewrite(store, f"gold.{name}", rows[name][1:])
    missing = [difference.table for difference in differences(copy_of_two) if "missing" in str(difference)]
    assert {FLOWS[name.removeprefix("gold.")].table for name in missing} == rows.keys()


def test_verify_takes_a_vector_that_is_filled_from_an_amended_window_as_it_was_first_emitted(spark: SparkSession, tmp_path: Path) -> None:
    group = replace(GROUP, vector=Vector("device", ("power", "command"), 3600))
    alert = Alert("odd", Signal("vector", group="kitchen", features=("power", "command")), "'command' in filled and command > 50")
    made = plant(tmp_path, groups={"kitchen": group}, alerts={"odd": alert}, flows={})
    of_power = [event("oven", "power", 1, START + timedelta(seconds=second)) for second in range(0, 1200, 20)]
    command, late = (event("oven", "command", value, START + timedelta(seconds=second)) for value, second in ((1, 10), (1000, 20)))
    for name, lines in (("1.json", [command, *of_power[:30]]), ("2.json", [late]), ("3.json", of_power[30:])):
        land(tmp_path, name, lines)
        run(made, spark)
    assert differences(made) == []
    (fired,) = table(made, "gold.alerts").to_dict("records")
    assert (fired["state"], fired["value"]) == ("firing", 500.5)  # the value is that of the feature, not of a text that names one


def test_a_changed_flow_is_refused_and_begins_anew_under_another_name_and_a_changed_alert_ends_what_it_began_and_goes_on(
    copy_of_two: Conf, spark: SparkSession
) -> None:
    folder, before = copy_of_two.folder, table(copy_of_two, "gold.alerts").query("alert == 'hot'")
    changed = FlowSpec("baking", sessions=Sessions(30, "power"))
    with pytest.raises(TidemarkError, match=r"flow baking was Sessions .*20.* is .*30.*\n.*another name"):
        run(plant(folder, flows={"baking": changed}), spark)
    hot = replace(ALERTS["hot"], when="value > 100")
    made = plant(folder, flows={**FLOWS, "baking_30": replace(changed, name="baking_30")}, alerts={**ALERTS, "hot": hot})
    land_later(folder)
    run(made, spark)
    assert differences(made) == []
    assert len(table(made, "gold.sessions").query("flow == 'baking_30'")) > 3
    rows = table(made, "gold.alerts").query("alert == 'hot'").sort_values("changed_at")
    assert [*rows.groupby("entity").tail(1).state] == ["normal"] * 2
    assert len(rows) <= len(before) + 2
