"""Marts hold what silver and gold give, after the first build, late rows and a kill; readers see one snapshot; history loses no row."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from pyspark.sql import SparkSession

from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.serving.dbt.project import shipped
from orchestration.serving.dbt.sources import pinned, queries
from orchestration.storage import registry
from orchestration.storage.marts import MARTS, Build
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import all_snapshots, find_snapshot
from tests.built import copy_of
from tests.chaos.plants import Plant
from tests.lakes import assert_same, run
from tests.orchestration.serving.dbt import expected
from tests.orchestration.serving.dbt.plant import NAME, Said, change_devices, dbt, files, killed, land_what_comes_late, rows

pytestmark = pytest.mark.lakes
JOINED = """
select sum(marts.readings) as of_marts, sum(gold.count) as of_gold, max(marts.amended) as amended
from (
  select sum(readings) as readings, sum(amended) as amended from marts.daily where device_group = 'building' and metric = 'power'
) as marts
cross join (select sum(count) as count from gold.building_aggregates where metric = 'power') as gold
"""
Devices = Mapping[str, Any]
AtBuild = tuple[Build, Snapshot, Devices]
"""With the devices as they were then."""


NUMBERS = [pytest.param(0, id="first build"), pytest.param(1, id="second build", marks=pytest.mark.slow)]


@dataclass(frozen=True)
class First:
    """A plant whose marts were built once."""

    plant: Plant
    devices: Devices

    @property
    def conf(self) -> Conf:
        return self.plant.opened().conf


@dataclass(frozen=True)
class Second:
    """It was built again, and what was seen on the way."""

    said: Said
    devices: Devices
    joined_before: dict[str, Any]
    joined: dict[str, Any]


def devices(lake: Path) -> Devices:
    return registry.newest(registry.versions(Location(lake)))


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> First:
    plant = Plant.opened_at(copy_of("marts", tmp_path_factory.mktemp("marts")) / NAME)
    return First(plant, devices(plant.lake))


@pytest.fixture(scope="module")
def second(first: First, spark: SparkSession) -> Second:
    """The second build meets amendments, a new device, two versions of an old one, a snapshot newer than the marts', and a killed build."""
    plant, conf = first.plant, first.conf
    change_devices(plant, datetime.now(UTC))
    land_what_comes_late(plant)
    run(conf, spark)
    joined_before = Lake(conf, spark).sql(JOINED).toArrow().to_pylist()[0]
    assert killed(plant, r"marts/hourly/part-[^/]*\.parquet$") is not None  # rows of a merge, which no commit names
    said = dbt(plant, "build")
    assert said.code == 0, said.out + said.err
    joined = Lake(conf, spark).sql(JOINED).toArrow().to_pylist()[0]
    return Second(said, devices(conf.lake.local), joined_before, joined)


@pytest.fixture
def at_build(first: First, number: int, request: pytest.FixtureRequest) -> AtBuild:
    registered = request.getfixturevalue("second").devices if number else first.devices
    build = MARTS.rows(first.conf.lake)[number]
    snapshot = find_snapshot(first.conf.lake, build.snapshot_id)
    assert snapshot is not None
    return build, snapshot, registered


@pytest.mark.slow
def test_each_build_is_recorded_with_its_snapshot_and_the_second_continues_the_first(first: First, second: Second) -> None:
    snapshots, (before, after) = all_snapshots(first.conf.lake), MARTS.rows(first.conf.lake)
    assert (before.snapshot_id, after.snapshot_id) == (snapshots[0].snapshot_id, snapshots[-1].snapshot_id)
    assert snapshots[-1].bronze_batch > snapshots[0].bronze_batch
    assert before.versions.keys() == after.versions.keys()
    assert "are rebuilt" not in second.said.err


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("mart", ["hourly", "daily", "hourly_by_group", "daily_by_group"])
def test_windows_are_rolled_up_as_gold_has_them_at_the_snapshot(first: First, at_build: AtBuild, mart: str, number: int) -> None:
    build, snapshot, _ = at_build
    period = expected.HOUR if mart.startswith("hourly") else expected.DAY
    keys = ["device_group", "metric"] if mart.endswith("by_group") else ["device_group", "device_id", "metric"]
    wanted = expected.rolled_up(first.conf, snapshot, period, keys)
    key = [*keys, "hour_at" if period == expected.HOUR else "day"]
    assert_same(rows(first.conf.lake.local, f"marts.{mart}", build.versions[f"marts.{mart}"]), wanted, key, list(wanted.columns))
    assert (wanted["amended"].sum() > 0) == (number == 1)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    ("mart", "key"), [("arrivals", ["device_id", "metric", "hour_at"]), ("late_arrivals", ["metric", "day"])], ids=["arrivals", "late"]
)
def test_what_came_and_how_late_is_as_silver_has_it_at_the_snapshot(
    first: First, at_build: AtBuild, mart: str, key: list[str], number: int
) -> None:
    build, snapshot, _ = at_build
    wanted = getattr(expected, mart)(first.conf, snapshot)
    assert_same(rows(first.conf.lake.local, f"marts.{mart}", build.versions[f"marts.{mart}"]), wanted, key, list(wanted.columns))
    assert (wanted["late"].sum() > 0) == (number == 1)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    ("mart", "key"),
    [("uptime", ["device_id", "day"]), ("completeness", ["device_group", "device_id", "metric", "day"]), ("worst_devices", ["rank"])],
    ids=["uptime", "completeness", "worst"],
)
def test_what_should_have_been_there_is_counted_hour_by_hour_and_window_by_window(
    first: First, at_build: AtBuild, mart: str, key: list[str]
) -> None:
    build, snapshot, registered = at_build
    wanted = getattr(expected, mart)(first.conf, snapshot, registered)
    assert_same(rows(first.conf.lake.local, f"marts.{mart}", build.versions[f"marts.{mart}"]), wanted, key, list(wanted.columns))


@pytest.mark.parametrize("number", NUMBERS)
def test_the_noisiest_alerts_are_those_that_fired_most_often(first: First, at_build: AtBuild) -> None:
    build, snapshot, _ = at_build
    wanted = expected.noisiest_alerts(first.conf, snapshot)
    mart_rows = rows(first.conf.lake.local, "marts.noisiest_alerts", build.versions["marts.noisiest_alerts"])
    assert_same(mart_rows, wanted, ["rank"], list(wanted.columns))


def test_a_lake_without_alerts_has_their_source_without_rows(first: First, spark: SparkSession) -> None:
    snapshot = find_snapshot(first.conf.lake)
    assert snapshot is not None
    tables = pinned(first.conf, snapshot)
    of_alerts, without = (
        spark.sql(queries(first.conf, of, snapshot, None)["alerts"])
        for of in (tables, {name: view for name, view in tables.items() if name != "gold.alerts"})
    )
    assert (of_alerts.count() > 0, without.count()) == (True, 0)
    assert without.dtypes == of_alerts.dtypes
    assert spark.sql(queries(first.conf, tables, snapshot, None)["acknowledgements"]).count() == 0


@pytest.mark.slow
def test_the_history_of_devices_holds_versions_that_came_and_went_between_two_builds(first: First, second: Second) -> None:
    mart_rows = rows(first.conf.lake.local, "marts.device_history")
    columns = ["device_id", "zone", "is_known", "origin", "registered_at", "dbt_valid_from", "dbt_valid_to"]
    wanted = pd.DataFrame(expected.history(first.conf.lake.local))
    assert_same(mart_rows, wanted, ["device_id", "registered_at"], columns)
    assert list(mart_rows[mart_rows["device_id"] == "oven-01"].sort_values("registered_at")["zone"]) == ["hall-1", "hall-2", "hall-3"]


@pytest.mark.slow
def test_a_query_over_marts_and_gold_is_of_the_cut_of_the_marts_though_a_run_has_taken_a_newer_one(second: Second) -> None:
    assert second.joined_before["of_marts"] == second.joined_before["of_gold"]
    assert second.joined["of_marts"] == second.joined["of_gold"] > second.joined_before["of_gold"]
    assert (second.joined_before["amended"], second.joined["amended"] > 0) == (0, True)


def test_a_group_without_a_row_is_no_error_and_has_none(first: First) -> None:
    assert "attic" not in set(rows(first.conf.lake.local, "marts.hourly")["device_group"])


def test_every_column_of_every_mart_is_described_and_none_is_described_that_is_not_there(first: First) -> None:
    described: dict[str, dict[str, str]] = {}
    for file in [*shipped().glob("models/*/*.yml"), *shipped().glob("snapshots/*.yml")]:
        content = yaml.safe_load(file.read_text())
        for node in [*content.get("models", ()), *content.get("snapshots", ())]:
            assert node["description"].strip(), node["name"]
            described[node["name"]] = {column["name"]: column["description"] for column in node["columns"]}
    marts = [name.removeprefix("marts.") for name in MARTS.rows(first.conf.lake)[-1].versions]
    assert {name: sorted(described[name]) for name in marts} == {
        name: sorted(rows(first.conf.lake.local, f"marts.{name}").columns) for name in marts
    }
    assert [(name, column) for name, columns in described.items() for column, text in columns.items() if not text.strip()] == []


def test_nothing_of_dbt_lies_outside_of_the_lake_and_nobody_is_told_anything(first: First) -> None:
    assert files(first.conf.folder.parent / "dbt") == []
    assert (first.conf.lake / "dbt" / "target" / "manifest.json").exists()
    assert not list((first.conf.lake.local / "dbt").rglob(".user.yml"))  # the name under which dbt's telemetry would know us
