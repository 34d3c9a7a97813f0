"""A build killed at any moment, JVM and all: the next process makes what a full rebuild makes, and the history of devices only grows."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.location import Location
from orchestration.storage.marts import MARTS
from tests.chaos.plants import Plant
from tests.lakes import copy_tree, run
from tests.orchestration.serving.dbt.plant import change_devices, content, dbt, killed, land_the_first_day, land_what_comes_late, made

pytestmark = [pytest.mark.dbt, pytest.mark.processes, pytest.mark.slow]
OF_THE_FIRST = (
    r"marts/arrivals/part-[^/]*\.parquet$",  # rows without a log
    r"marts/device_history/_delta_log/0{20}\.json$",  # created, its history not completed
    r"marts/daily_by_group/_delta_log/0{20}\.json$",
)
OF_THE_SECOND = (
    r"marts/hourly/part-[^/]*\.parquet$",  # rows of a merge
    r"marts/daily/_delta_log/0{19}[1-9]\.json$",  # the day is new, its group is not; killed builds may have made its first
    r"marts/device_history/_delta_log/0{19}[2-9]\.json$",
    r"marts/worst_devices/_delta_log/0{19}[1-9]\.json$",  # all of it but its row
    r"ops/marts/_delta_log/0{19}2\.json$",  # and its row, and nobody knows that it has ended
)


def marts(plant: Plant) -> dict[str, list[str]]:
    """As readers see them."""
    return {name: content(plant.lake, name, version) for name, version in MARTS.rows(Location(plant.lake))[-1].versions.items()}


def test_killed_builds_come_to_what_a_full_rebuild_is_and_the_history_of_devices_loses_no_row(spark: SparkSession, tmp_path: Path) -> None:
    plant = made(tmp_path / "plant")
    land_the_first_day(plant)
    run(plant.opened().conf, spark)
    assert [pattern for pattern in OF_THE_FIRST if killed(plant, pattern) is None] == []
    assert MARTS.rows(Location(plant.lake)) == []
    assert dbt(plant, "build").code == 0
    history = set(marts(plant)["marts.device_history"])

    change_devices(plant, datetime.now(UTC))
    land_what_comes_late(plant)
    run(plant.opened().conf, spark)
    before = marts(plant)
    for pattern in OF_THE_SECOND[:-1]:
        assert killed(plant, pattern) is not None, pattern
        assert marts(plant) == before  # readers are at the versions of the first build
    assert killed(plant, OF_THE_SECOND[-1]) is not None
    assert len(MARTS.rows(Location(plant.lake))) == 2
    copy_tree(plant.folder, tmp_path / "anew" / "plant")
    anew = Plant.opened_at(tmp_path / "anew" / "plant")

    after = dbt(plant, "build")
    assert (after.code, "are rebuilt" in after.err) == (0, False), after.out + after.err
    assert dbt(anew, "build", "--full-refresh").code == 0
    shutil.rmtree(tmp_path / "anew" / "plant" / "lake" / "marts" / "device_history")
    assert dbt(anew, "--drop", "device_history", "build", "--full-refresh").code == 0  # history too, from the registry alone
    assert marts(plant) == marts(anew)
    after_history = marts(plant)["marts.device_history"]
    ended = [row for row in history if row not in after_history]  # of these only the end is new
    assert all("'oven-01'" in row and "'dbt_valid_to': None" in row for row in ended)
    assert len(after_history) == len(set(after_history)) == len(history) + 3
