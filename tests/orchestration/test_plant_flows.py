"""Flows of flows.yml end to end: what a lake holds of them equals verify's own answer, however the events came, and after a replay."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from gold.flow_spec import By, Counter, Distance, DutyCycle, FlowSpec, Join, Kind, Pairs, Sessions, Silence, StateMachine, Transition
from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot, pinned_snapshot
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.storage.snapshots import find_snapshot
from orchestration.storage.tables import LakeStore
from silver.aggregation import Aggregation
from silver.spec import Metric
from tests.cuts import run_in_cuts
from tests.declared_flow import flow_of
from tests.lakes import KITCHEN, conf, copied, event, land, recorded, rewrite, run, table
from tests.orchestration.supervisor.test_replay import replay
from tests.rows import at

START = at("2026-01-05T00:00:00")
KINDS: dict[str, Kind] = {
    "baking": Sessions(20, "power"),
    "busy": Sessions(15),
    "answered": Pairs("command", "power", 20, -5, By.DEVICE, Join.FULL, "value > 3", "value < 8"),
    "nearby": Pairs("command", "command", 30, 1, By.ZONE, Join.LEFT),
    "oven_state": StateMachine(
        "power",
        "idle",
        (Transition("idle", "hot", "value > 6"), Transition("hot", "idle", "value < 3"), Transition("hot", "stuck", None, 60)),
    ),
    "quiet": Silence(20),
    "travel": Distance("temperature", "vibration", 120),
    "use": DutyCycle("power", "value > 4", 60, 90),
    "energy": Counter("power", 120, 10),
}
FLOWS = {name: flow_of(name, kind, "kitchen" if name == "busy" else None) for name, kind in KINDS.items()}
METRICS = {name: Metric(name, Aggregation.AVERAGE, 600) for name in ("power", "command", "temperature", "vibration")}
GROUP = replace(KITCHEN, metrics=("temperature", "power"), vector=None, lateness_seconds=60)


def plant(folder: Path, **changes: Any) -> Conf:
    made = conf(folder)
    policy = replace(made.policy, lateness_seconds=60)
    return replace(made, **{"policy": policy, "metrics": METRICS, "groups": {"kitchen": GROUP}, "flows": FLOWS, **changes})


def events() -> list[str]:
    """About half an hour of two ovens, in order of time, a minute of which some are duplicates."""
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


def ran(folder: Path, cuts: int, spark: SparkSession) -> Conf:
    return run_in_cuts(plant(folder), events(), cuts, START, spark)


def differences(made: Conf) -> list[str]:
    return [str(difference) for outcome in verify(latest_snapshot(made), made).outcomes for difference in outcome.first]


def rows_of(made: Conf) -> dict[str, list[str]]:
    """Of each kind of table, without lineage, which tells of the cuts."""
    names = {f"gold.{flow.table}" for flow in FLOWS.values()}
    return {name: sorted(map(str, _plain(table(made, name)))) for name in sorted(names)}


def _plain(rows: Any) -> Iterator[Any]:
    rows = rows[[name for name in rows.columns if not name.endswith(("bronze_batch", "bronze_row", "part"))]]
    yield from rows.round(6).fillna("-").to_numpy().tolist()


@pytest.fixture(scope="module")
def in_two(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Conf:
    return ran(tmp_path_factory.mktemp("in_two"), 2, spark)


def test_every_kind_of_flow_has_rows_and_verify_gives_the_same_ones(in_two: Conf) -> None:
    assert differences(in_two) == []
    store = LakeStore(in_two)
    assert {name: len(table(in_two, store.stored(f"gold.{name}")).query(f"flow == '{name}'")) > 3 for name in FLOWS} == dict.fromkeys(
        FLOWS, True
    )
    outcomes = {outcome.table: outcome.rows for outcome in verify(pinned_snapshot(in_two, find_snapshot(in_two.lake)), in_two).outcomes}  # type: ignore[arg-type]
    assert all(outcomes[f"gold.{name}"] > 3 for name in FLOWS)


@pytest.mark.parametrize("cuts", [1, 7])
def test_rows_are_the_same_in_one_batch_and_in_seven(cuts: int, in_two: Conf, spark: SparkSession, tmp_path: Path) -> None:
    made = ran(tmp_path, cuts, spark)
    assert rows_of(made) == rows_of(in_two)
    assert differences(made) == []


def test_a_replay_holds_the_same_rows_and_goes_on_alike(in_two: Conf, spark: SparkSession, tmp_path: Path) -> None:
    made = plant(tmp_path, **{name: getattr(copied(in_two, tmp_path), name) for name in ("devices",)})
    before = rows_of(made)
    replay(made, spark)
    assert rows_of(made) == before
    land(tmp_path, "later.json", [event("oven", "power", 1, START + timedelta(seconds=second)) for second in (1900, 2000, 2200)])
    run(made, spark)
    assert rows_of(made) != before
    assert differences(made) == []
    assert Lake(made, spark).sql("select count(*) as n from gold.baking").collect()[0].n > 3


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("sessions", {"count": pa.scalar(99)}),
        ("pairs", {"right_value": pa.scalar(99.0)}),
        ("states", {"state": pa.scalar("odd")}),
        ("measures", {"value": pa.scalar(99.0)}),
    ],
)
def test_verify_finds_a_row_that_is_wrong_and_one_that_is_missing(
    name: str, change: dict[str, pa.Scalar], in_two: Conf, tmp_path: Path
) -> None:
    copied(in_two, tmp_path)
    made, store = plant(tmp_path), LakeStore(plant(tmp_path))
    rows = recorded(store, f"gold.{name}")
    (column, value), whole = next(iter(change.items())), rows
    wrong = pa.chunked_array([pa.array([value.as_py()], rows.schema.field(column).type), rows[column].combine_chunks()[1:]])
    rewrite(store, f"gold.{name}", whole.set_column(rows.schema.get_field_index(column), rows.schema.field(column), wrong))
    assert differences(made)
    rewrite(store, f"gold.{name}", whole[1:])
    assert any("missing" in difference for difference in differences(made))


def test_a_flow_that_has_changed_is_refused_and_under_another_name_begins_with_the_first_reading(
    in_two: Conf, spark: SparkSession, tmp_path: Path
) -> None:
    copied(in_two, tmp_path)
    changed = FlowSpec("baking", sessions=Sessions(30, "power"))
    with pytest.raises(TidemarkError, match=r"flow baking .* was Sessions .*20.* is .*30.*\n.*another name"):
        run(plant(tmp_path, flows={"baking": changed}), spark)
    made = plant(tmp_path, flows={**FLOWS, "baking_30": replace(changed, name="baking_30")})
    run(made, spark)
    assert differences(made) == []
    assert len(table(made, "gold.sessions").query("flow == 'baking_30'")) > 3
