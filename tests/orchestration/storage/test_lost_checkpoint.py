"""What a flow that starts anew finds in its tables."""

from pathlib import Path

from pyspark.sql import SparkSession

from orchestration.connectors.sources.file_reader import BYTE_ORDER_MARK
from tests.lakes import conf, land, land_bytes, run, table


def test_bronze_goes_on_without_its_checkpoint_also_where_its_last_batches_had_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    """What was there comes a second time, as it says; Delta would take a number that such a batch had for a repeat."""
    made = conf(tmp_path)
    land(tmp_path, "1.json", [b"1"])
    for name in ("2.json", "3.json"):
        run(made, spark, ["bronze.events"])
        land_bytes(tmp_path, name, BYTE_ORDER_MARK)
    run(made, spark, ["bronze.events"])
    (made.lake.local / "checkpoints/bronze.events").rename(tmp_path / "away")
    (made.lake.local / "checkpoints/bronze.events.seal").unlink(missing_ok=True)
    land(tmp_path, "4.json", [b"4"])
    run(made, spark, ["bronze.events"])
    assert sorted(table(made, "bronze.events")["payload"]) == [b"1", b"1", b"4"]
