"""After a replay gold counts its batches anew: marts are rebuilt from the generation that serves, and again after a rollback."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.storage.marts import MARTS
from tests.chaos.plants import Plant
from tests.lakes import run
from tests.orchestration.serving.dbt.plant import content, dbt, land_the_first_day, land_what_comes_late, made

pytestmark = [pytest.mark.dbt, pytest.mark.slow]
READINGS = "select sum(readings) as n from marts.hourly where device_group = 'building' and metric = 'temperature'"
OF_GOLD = "select sum(count) as n from gold.building_aggregates where metric = 'temperature'"


def number(plant: Plant, spark: SparkSession, query: str) -> int:
    return int(Lake(plant.opened().conf, spark).sql(query).toArrow().to_pylist()[0]["n"])


def test_marts_are_of_the_generation_that_serves(spark: SparkSession, tmp_path: Path) -> None:
    plant = made(tmp_path / "plant")
    land_the_first_day(plant)
    run(plant.opened().conf, spark)
    assert dbt(plant, "build").code == 0
    assert plant.exit_code("replay", "--yes") == 0, plant.log_end()
    land_what_comes_late(plant)
    run(plant.opened().conf, spark)
    of_second = dbt(plant, "build")
    assert (of_second.code, "are rebuilt" in of_second.err) == (0, True), of_second.out + of_second.err
    of_both = number(plant, spark, READINGS)
    assert of_both == number(plant, spark, OF_GOLD)
    once_more = dbt(plant, "build")
    assert (once_more.code, "are rebuilt" in once_more.err) == (0, False)
    first, second, third = MARTS.rows(Location(plant.lake))
    assert (first.generation, second.generation, third.generation) == (1, 2, 2)
    for name in ("marts.hourly", "marts.daily_by_group", "marts.arrivals"):
        assert content(plant.lake, name, second.versions[name]) == content(plant.lake, name, third.versions[name])

    assert plant.exit_code("rollback") == 0, plant.log_end()
    before = number(plant, spark, READINGS)  # nobody has built since: readers see the marts of the first generation again
    rolled_back = dbt(plant, "build")
    assert (rolled_back.code, "are rebuilt" in rolled_back.err) == (0, True)
    assert number(plant, spark, READINGS) == number(plant, spark, OF_GOLD) == before < of_both
