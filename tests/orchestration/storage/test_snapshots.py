"""Snapshots: a query sees bronze, silver and gold as of one bronze batch, now or as they were."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

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


def test_a_query_sees_one_cut_by_number_by_time_or_the_newest_and_the_newest_revision_of_each_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = conf(tmp_path, groups={"kitchen": KITCHEN})
    lake = Lake(made, spark)
    land(tmp_path, "1.json", [event("oven", "temperature", 1, time) for time in minutes(START, 31)])
    run(made, spark)
    between = datetime.now(UTC)
    land(tmp_path, "2.json", [event("oven", "temperature", 100, START + timedelta(minutes=5, seconds=1))])  # late
    run(made, spark)
    run(made, spark)  # nothing is new: no snapshot
    assert [each.bronze_batch for each in all_snapshots(made.lake)] == [0, 1]
    first, second = (31, 31, 0, 20, 2), (32, 31, 1, 120, 3)
    assert tuple(lake.sql(COUNTS).collect()[0]) == second
    assert tuple(lake.sql(COUNTS, snapshot=0).collect()[0]) == first
    assert tuple(lake.sql(COUNTS, at=between).collect()[0]) == first
    assert tuple(lake.sql(COUNTS, at=datetime.now(UTC)).collect()[0]) == second
    with pytest.raises(TidemarkError, match="there is no snapshot 7; the lake has 0 to 1, from"):
        lake.sql(COUNTS, snapshot=7)
    with pytest.raises(TidemarkError, match="there is no snapshot at 2000-01-01 00:00:00"):
        lake.sql(COUNTS, at=datetime(2000, 1, 1, tzinfo=UTC))


def test_a_continuous_run_pins_a_cut_after_each_round_of_gold(spark: SparkSession, tmp_path: Path) -> None:
    made = conf(tmp_path, groups={"kitchen": KITCHEN})
    land(tmp_path, "1.json", [event("oven", "temperature", 1, time) for time in minutes(START, 31)])
    landed: list[Path] = []

    def second_is_pinned() -> bool:
        pinned = all_snapshots(made.lake)
        if pinned and not landed:
            rows = [event("oven", "temperature", value, START + timedelta(minutes=minute)) for value, minute in ((100, 5.5), (1, 45))]
            landed.append(land(tmp_path, "2.json", rows))
        return bool(pinned) and pinned[-1].bronze_batch == 1

    run_until(made, spark, second_is_pinned)
    assert tuple(Lake(made, spark).sql(COUNTS).collect()[0]) == (33, 32, 1, 130, 4)
