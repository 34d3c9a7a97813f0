"""What a step of amendments looks at, by the logs of tables written by hand; and a step with windows that are far apart."""

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.crash import Point
from orchestration.engine.lake import Lake
from orchestration.jobs.gold.amendments import NOWHERE, Step, _may_be_late, amend_all
from orchestration.storage.commit import append_rows
from orchestration.storage.positions import GoldPosition
from orchestration.storage.tables import ensure
from tests.lakes import KITCHEN, conf, differences, event, land, minutes, run, table
from tests.orchestration.jobs.killed import killed
from tests.rows import at

START = at("2026-01-05T00:00:00")


@pytest.mark.parametrize(("seen", "is_due"), [(-1, True), (0, False)])
def test_late_rows_of_the_first_micro_batch_of_a_generation_are_folded_in_once(seen: int, is_due: bool, tmp_path: Path) -> None:
    lake = Lake(conf(tmp_path))
    table = lake.gold("kitchen")[2]
    ensure(table)
    append_rows(table.location, table.schema.empty_table(), lake.app_id("gold.kitchen", table.name), 0)
    after = GoldPosition(seen, 0, 5, 5)
    assert _may_be_late(lake, "kitchen", Step(1, after, GoldPosition(1, 0, 6, 6))) == is_due
    assert not _may_be_late(lake, "presses", Step(1, NOWHERE, after))


def test_late_rows_of_old_windows_are_folded_in_together_with_those_of_new_ones(spark: SparkSession, tmp_path: Path) -> None:
    made = conf(tmp_path, groups={"kitchen": KITCHEN})
    land(tmp_path, "1.json", [event("oven", "temperature", 20, time) for time in minutes(START, 60, step=10)])
    run(made, spark)
    late = [START + timedelta(minutes=minute, seconds=1) for minute in (5, 9, 180, 550)]
    land(tmp_path, "2.json", [event("oven", "temperature", 1000, time) for time in late])
    run(made, spark)
    windows = table(made, "gold.kitchen_aggregates")
    amended = windows[windows.revision == 1].sort_values("window_end")
    assert [*zip(amended.window_end, amended["count"], strict=True)] == [
        (START + timedelta(minutes=10), 3),
        (START + timedelta(minutes=190), 2),
        (START + timedelta(minutes=560), 2),
    ]
    assert differences(made) == []


def test_a_late_row_that_came_alone_is_folded_in_once_though_silver_is_ahead_of_gold_afterwards(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = conf(tmp_path, groups={"kitchen": KITCHEN})
    land(tmp_path, "1.json", [event("oven", "temperature", 1, time) for time in minutes(START, 31)])
    run(made, spark)
    land(tmp_path, "2.json", [event("oven", "temperature", 1000, START + timedelta(minutes=5, seconds=1))])
    run(made, spark)
    land(tmp_path, "3.json", [event("oven", "temperature", 1, START + timedelta(minutes=45))])
    with killed(Point.READINGS_WRITTEN):
        run(made, spark)
    assert [*amend_all(Lake(made, spark), made.streams)] == []
    run(made, spark)
    windows = table(made, "gold.kitchen_aggregates").sort_values(["window_end", "revision"])
    assert [*zip(windows.window_end, windows.revision, strict=True)] == [
        (START + timedelta(minutes=minute), revision) for minute, revision in ((10, 0), (10, 1), (20, 0), (30, 0))
    ]
