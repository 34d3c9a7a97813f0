"""Snapshots: a query sees bronze, silver and gold as of one bronze batch, now or as they were."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.storage.snapshots import all_snapshots
from tests.lakes import KITCHEN, conf, event, land, minutes, run, run_until
from tests.rows import at

START = at("2026-01-05T00:00:00")
COUNTS = """
    select (select count(*) from bronze.events) as events, (select count(*) from silver.readings) as readings,
           (select count(*) from silver.late) as late, (select cast(sum(sum) as int) from gold.kitchen_aggregates) as total,
           (select count(*) from gold.kitchen_aggregates_history) as revisions
"""
CUTS = ((31, 31, 0, 20, 2), (32, 31, 1, 120, 3), (33, 32, 1, 130, 4))
"""Counts at each bronze batch: the second is a late row, the third closes one window more."""


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Two runs with something new and one without, then a continuous one."""
    folder = tmp_path_factory.mktemp("snapshots")
    made = conf(folder, groups={"kitchen": KITCHEN})
    land(folder, "1.json", [event("oven", "temperature", 1, time) for time in minutes(START, 31)])
    run(made, spark)
    land(folder, "2.json", [event("oven", "temperature", 100, START + timedelta(minutes=5, seconds=1))])
    run(made, spark)
    run(made, spark)
    assert [snapshot.bronze_batch for snapshot in all_snapshots(made.lake)] == [0, 1], "a run without anything new pins none"
    land(folder, "3.json", [event("oven", "temperature", 1, START + timedelta(minutes=45))])
    run_until(made, spark, lambda: all_snapshots(made.lake)[-1].bronze_batch == 2)
    return Lake(made, spark)


def test_a_query_sees_one_cut_by_number_by_time_or_the_newest_and_the_newest_revision_of_each_window(lake: Lake) -> None:
    first, second, *_ = all_snapshots(lake.conf.lake)
    assert tuple(lake.sql(COUNTS).collect()[0]) == CUTS[2]
    assert tuple(lake.sql(COUNTS, snapshot=0).collect()[0]) == CUTS[0]
    assert tuple(lake.sql(COUNTS, snapshot=1).collect()[0]) == CUTS[1]
    assert tuple(lake.sql(COUNTS, at=second.at - (second.at - first.at) / 2).collect()[0]) == CUTS[0]
    assert tuple(lake.sql(COUNTS, at=datetime.now(UTC)).collect()[0]) == CUTS[2]


def test_a_snapshot_that_is_not_there_is_refused_with_those_that_are(lake: Lake) -> None:
    with pytest.raises(TidemarkError, match=r"there is no snapshot 7; the lake has 0 to \d, from"):
        lake.sql(COUNTS, snapshot=7)
    with pytest.raises(TidemarkError, match="there is no snapshot at 2000-01-01 00:00:00"):
        lake.sql(COUNTS, at=datetime(2000, 1, 1, tzinfo=UTC))
