"""Commits of delta-rs leave beside the log what Spark looks at first."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from orchestration.location import Location
from orchestration.storage.commit import append_rows
from orchestration.storage.delta import LOG, OF_LOG, sum_up

ROWS = pa.table({"device": ["a", None], "value": [1.5, 2.5]})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table"
    write_deltalake(path, ROWS, configuration=OF_LOG)
    sum_up(Location(path), DeltaTable(path))
    return path


def append_by_spark(spark: SparkSession, path: Path) -> None:
    spark.createDataFrame([("c", 3.5)], "device string, value double").coalesce(1).write.format("delta").mode("append").save(str(path))


def jobs_to_open(spark: SparkSession, path: Path) -> int:
    """In a session of its own: settings that a run left behind ask for names of sources."""
    context = spark.sparkContext
    context.setJobGroup(str(path), "open")
    try:
        assert spark.newSession().readStream.format("delta").load(str(path)).columns == ["device", "value"]
        return len(context.statusTracker().getJobIdsForGroup(str(path)))
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # as clearJobGroup of Java does


def first_line_by_hadoop(spark: SparkSession, file: Path) -> str:
    """As Delta reads it; spark.read leaves out files whose names begin so."""
    path = spark._jvm.org.apache.hadoop.fs.Path(str(file))  # type: ignore[union-attr]
    opened = path.getFileSystem(spark._jsc.hadoopConfiguration()).open(path)
    try:
        return str(opened.readLine())
    finally:
        opened.close()


def checksum(path: Path, version: int) -> dict[str, int]:
    known = json.loads((path / LOG / f"{version:020}.crc").read_text())
    return {name: known[name] for name in ("numFiles", "tableSizeBytes")}


def true_sizes(path: Path) -> dict[str, int]:
    sizes = [file.stat().st_size for file in path.glob("*.parquet")]
    return {"numFiles": len(sizes), "tableSizeBytes": sum(sizes)}


def test_spark_opens_a_version_that_delta_rs_wrote_without_a_job(spark: SparkSession, table: Path, tmp_path: Path) -> None:
    append_rows(Location(table), ROWS, "app", 1)
    unknown = tmp_path / "unknown"
    write_deltalake(unknown, ROWS)

    assert (jobs_to_open(spark, table), jobs_to_open(spark, unknown) > 0) == (0, True)


def test_spark_goes_on_with_the_sums_of_delta_rs_and_delta_rs_with_those_of_spark(spark: SparkSession, table: Path) -> None:
    append_by_spark(spark, table)
    assert checksum(table, 1) == true_sizes(table)
    append_rows(Location(table), ROWS, "app", 1)
    assert checksum(table, 2) == true_sizes(table)
    append_by_spark(spark, table)
    assert checksum(table, 3) == true_sizes(table)
    assert spark.read.format("delta").load(str(table)).count() == 6


def test_a_version_that_is_summed_up_is_left_as_it_is(table: Path) -> None:
    sealed = (table / LOG / f"{0:020}.crc").read_bytes()
    append_rows(Location(table), ROWS, "app", 1)
    append_rows(Location(table), ROWS, "app", 1)

    assert (table / LOG / f"{0:020}.crc").read_bytes() == sealed
    assert sorted(file.name for file in (table / LOG).glob("*.crc")) == [f"{0:020}.crc", f"{1:020}.crc"]


def test_spark_believes_what_delta_rs_says_of_the_newest_checkpoint(spark: SparkSession, table: Path) -> None:
    for _ in range(10):
        append_by_spark(spark, table)
    checked = table / LOG / "._last_checkpoint.crc"
    assert checked.exists()
    for number in range(10):
        append_rows(Location(table), ROWS, "app", number)

    hint = table / LOG / "_last_checkpoint"
    assert json.loads(hint.read_text())["version"] == 19
    assert json.loads(first_line_by_hadoop(spark, hint))["version"] == 19


def test_of_a_table_with_features_nothing_is_summed_up(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_deltalake(path, ROWS, configuration={"delta.enableDeletionVectors": "true"})
    sum_up(Location(path), DeltaTable(path))

    assert list((path / LOG).glob("*.crc")) == []
