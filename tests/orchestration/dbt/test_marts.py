"""Marts hold what silver and gold give, after the first build, what came late and a kill; readers see one cut; history loses no row."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from pyspark.sql import SparkSession

from orchestration import registry
from orchestration.conf.model import Conf
from orchestration.dbt.project import shipped
from orchestration.lake import Lake
from orchestration.marts import Build, builds
from orchestration.snapshot import Snapshot
from orchestration.snapshots import all_snapshots, chosen
from tests.chaos.plants import Plant
from tests.lakes import assert_same, run
from tests.orchestration.dbt import expected
from tests.orchestration.dbt.plant import Said, change_devices, dbt, killed, land_the_first_day, land_what_comes_late, made, rows

JOINED = """
select sum(marts.readings) as of_marts, sum(gold.count) as of_gold, max(marts.amended) as amended
from (
  select sum(readings) as readings, sum(amended) as amended from marts.daily where device_group = 'building' and metric = 'power'
) as marts
cross join (select sum(count) as count from gold.building_aggregates where metric = 'power') as gold
"""
Known = Mapping[str, Any]


@dataclass(frozen=True)
class Told:
    """A plant whose marts were built twice, and what was seen on the way."""

    conf: Conf
    first: Said
    second: Said
    registry: tuple[Known, Known]
    joined_before: dict[str, Any]
    joined: dict[str, Any]


def devices(lake: Path) -> Known:
    return registry.newest(registry.versions(lake))


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Told:
    """The second build meets amendments, a new device, two versions of an old one, a snapshot newer than the marts', and a killed build."""
    plant: Plant = made(tmp_path_factory.mktemp("marts") / "a plant's")  # such a path must be quoted everywhere
    conf, of_project = plant.opened().conf, files(shipped())
    land_the_first_day(plant)
    run(conf, spark)
    first, before = dbt(plant, "build"), devices(conf.lake)
    change_devices(plant, datetime.now(UTC))
    land_what_comes_late(plant)
    run(conf, spark)
    joined_before = Lake(conf, spark).sql(JOINED).toArrow().to_pylist()[0]
    assert killed(plant, r"marts/hourly/part-[^/]*\.parquet$") is not None  # rows of a merge, which no commit names
    second = dbt(plant, "build")
    joined = Lake(conf, spark).sql(JOINED).toArrow().to_pylist()[0]
    assert files(shipped()) == of_project  # dbt writes below the lake, and nothing into the project
    return Told(conf, first, second, (before, devices(conf.lake)), joined_before, joined)


def at_build(told: Told, number: int) -> tuple[Build, Snapshot, Known]:
    build = builds(told.conf.lake)[number]
    cut = chosen(told.conf.lake, build.snapshot_id)
    assert cut is not None
    return build, cut, told.registry[number]


def test_each_build_is_recorded_with_its_snapshot_and_the_second_goes_on_from_the_first(told: Told) -> None:
    assert (told.first.code, told.second.code) == (0, 0), told.first.out + told.first.err + told.second.out + told.second.err
    snapshots, (first, second) = all_snapshots(told.conf.lake), builds(told.conf.lake)
    assert (first.snapshot_id, second.snapshot_id) == (snapshots[0].snapshot_id, snapshots[-1].snapshot_id)
    assert snapshots[-1].bronze_batch > snapshots[0].bronze_batch
    assert first.versions.keys() == second.versions.keys()
    assert "made anew" not in told.second.err


@pytest.mark.parametrize("number", [0, 1], ids=["first build", "second build"])
@pytest.mark.parametrize("mart", ["hourly", "daily", "hourly_by_group", "daily_by_group"])
def test_windows_are_rolled_up_as_gold_has_them_at_the_cut(told: Told, mart: str, number: int) -> None:
    build, cut, _ = at_build(told, number)
    period = expected.HOUR if mart.startswith("hourly") else expected.DAY
    keys = ["device_group", "metric"] if mart.endswith("by_group") else ["device_group", "device_id", "metric"]
    wanted = expected.rolled_up(told.conf, cut, period, keys)
    key = [*keys, "hour_at" if period == expected.HOUR else "day"]
    assert_same(rows(told.conf.lake, f"marts.{mart}", build.versions[f"marts.{mart}"]), wanted, key, list(wanted.columns))
    assert (wanted["amended"].sum() > 0) == (number == 1)


@pytest.mark.parametrize("number", [0, 1], ids=["first build", "second build"])
@pytest.mark.parametrize(
    ("mart", "key"), [("arrivals", ["device_id", "metric", "hour_at"]), ("late_arrivals", ["metric", "day"])], ids=["arrivals", "late"]
)
def test_what_came_and_how_late_is_as_silver_has_it_at_the_cut(told: Told, mart: str, key: list[str], number: int) -> None:
    build, cut, _ = at_build(told, number)
    wanted = getattr(expected, mart)(told.conf, cut)
    assert_same(rows(told.conf.lake, f"marts.{mart}", build.versions[f"marts.{mart}"]), wanted, key, list(wanted.columns))
    assert (wanted["late"].sum() > 0) == (number == 1)


@pytest.mark.parametrize("number", [0, 1], ids=["first build", "second build"])
@pytest.mark.parametrize(
    ("mart", "key"),
    [("uptime", ["device_id", "day"]), ("completeness", ["device_group", "device_id", "metric", "day"]), ("worst_devices", ["rank"])],
    ids=["uptime", "completeness", "worst"],
)
def test_what_should_have_been_there_is_counted_hour_by_hour_and_window_by_window(
    told: Told, mart: str, key: list[str], number: int
) -> None:
    build, cut, known = at_build(told, number)
    wanted = getattr(expected, mart)(told.conf, cut, known)
    assert_same(rows(told.conf.lake, f"marts.{mart}", build.versions[f"marts.{mart}"]), wanted, key, list(wanted.columns))


def test_the_history_of_devices_holds_versions_that_came_and_went_between_two_builds(told: Told) -> None:
    found = rows(told.conf.lake, "marts.device_history")
    columns = ["device_id", "zone", "is_known", "origin", "registered_at", "dbt_valid_from", "dbt_valid_to"]
    wanted = pd.DataFrame(expected.history(told.conf.lake))
    assert_same(found, wanted, ["device_id", "registered_at"], columns)
    assert list(found[found["device_id"] == "oven-01"].sort_values("registered_at")["zone"]) == ["hall-1", "hall-2", "hall-3"]


def test_a_query_over_marts_and_gold_is_of_the_cut_of_the_marts_though_a_run_has_taken_a_newer_one(told: Told) -> None:
    assert told.joined_before["of_marts"] == told.joined_before["of_gold"]
    assert told.joined["of_marts"] == told.joined["of_gold"] > told.joined_before["of_gold"]
    assert (told.joined_before["amended"], told.joined["amended"] > 0) == (0, True)


def test_a_group_without_a_row_is_no_error_and_has_none(told: Told) -> None:
    assert "attic" not in set(rows(told.conf.lake, "marts.hourly")["device_group"])


def test_every_column_of_every_mart_is_described_and_none_is_described_that_is_not_there(told: Told) -> None:
    described: dict[str, dict[str, str]] = {}
    for file in [*shipped().glob("models/*/*.yml"), *shipped().glob("snapshots/*.yml")]:
        content = yaml.safe_load(file.read_text())
        for node in [*content.get("models", ()), *content.get("snapshots", ())]:
            assert node["description"].strip(), node["name"]
            described[node["name"]] = {column["name"]: column["description"] for column in node["columns"]}
    marts = [name.removeprefix("marts.") for name in builds(told.conf.lake)[-1].versions]
    assert {name: sorted(described[name]) for name in marts} == {
        name: sorted(rows(told.conf.lake, f"marts.{name}").columns) for name in marts
    }
    assert [(name, column) for name, columns in described.items() for column, text in columns.items() if not text.strip()] == []


def test_nothing_of_dbt_lies_outside_of_the_lake_and_nobody_is_told_anything(told: Told) -> None:
    assert files(told.conf.folder.parent / "dbt") == []
    assert (told.conf.lake / "dbt" / "target" / "manifest.json").exists()
    assert not list((told.conf.lake / "dbt").rglob(".user.yml"))  # the name under which dbt's telemetry would know us
