"""A running pipeline: what passes its gate comes to gold."""

from pathlib import Path

from pyspark.sql import SparkSession

from orchestration.conf.model import GateMode, Quality
from orchestration.storage.snapshots import find_snapshot
from tests.lakes import conf, event, land, minutes, run_until, table
from tests.rows import at


def test_a_run_hands_over_what_passes(spark: SparkSession, tmp_path: Path) -> None:
    made = conf(tmp_path, quality=Quality(gates={"silver.readings": GateMode.HOLD}))
    times = minutes(at("12:00:00"), 60)
    land(tmp_path, "first.jsonl", [event("oven", "temperature", 20.0, time) for time in times])

    def land_again() -> bool:
        snapshot = find_snapshot(made.lake)
        if snapshot is not None and not (tmp_path / "landing" / "second.jsonl").exists():
            # In the order of time but for one row, which is late.
            lines = [event("oven", "temperature", 21.0, time) for time in (*minutes(at("13:00:00"), 60), times[5].replace(second=30))]
            land(tmp_path, "second.jsonl", lines)
        return snapshot is not None and snapshot.bronze_batch == 1

    run_until(made, spark, land_again)
    windows = table(made, "gold.kitchen_aggregates")
    assert set(windows[windows["revision"] == 1]["count"]) == {11}  # the late row has passed too
