"""A running pipeline: due suites are checked beside the streams, and what passes its gate comes to gold."""

from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from orchestration.conf.model import GateMode, Quality
from orchestration.quality.history import RESULTS
from orchestration.storage.delta import path_of
from orchestration.storage.snapshots import find_snapshot
from tests.lakes import conf, event, land, minutes, run_until, table
from tests.rows import at


def test_a_run_checks_what_is_due_and_hands_over_what_passes(spark: SparkSession, tmp_path: Path) -> None:
    made = conf(tmp_path, quality=Quality(None, {"silver_readings": "0 0 1 1 *"}, {"silver.readings": GateMode.HOLD}))
    times = minutes(at("12:00:00"), 60)
    land(tmp_path, "first.jsonl", [event("oven", "temperature", 20.0, time) for time in times])

    def is_done() -> bool:
        found = find_snapshot(made.lake)
        return found is not None and found.bronze_batch == 1 and path_of(made.lake, RESULTS).exists()

    def land_again() -> bool:
        if find_snapshot(made.lake) is None:
            return False
        # In the order of time but for one row, which is late.
        lines = [event("oven", "temperature", 21.0, time) for time in (*minutes(at("13:00:00"), 60), times[5].replace(second=30))]
        if not (tmp_path / "landing" / "second.jsonl").exists():
            land(tmp_path, "second.jsonl", lines)
        return is_done()

    run_until(made, spark, land_again)
    windows = table(made, "gold.kitchen_aggregates")
    assert set(windows[windows["revision"] == 1]["count"]) == {11}  # the late row has passed too
    results = DeltaTable(path_of(made.lake, RESULTS).local).to_pandas()
    assert set(zip(results["cause"], results["suite"], strict=True)) == {("scheduled", "silver_readings")}
