"""Pieces become one file of a table, each once, as Spark would have written it, and leave beside the log what Spark looks at first."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from bronze.events import File, events, identified, lines
from bronze.schema import EVENTS, EVENTS_PARTITION, INSTANT
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage import commit
from orchestration.storage.commit import append_pieces, append_rows, compact
from orchestration.storage.data_files import write_file
from orchestration.storage.delta import LOG, OF_LOG, actions, files_of, log_of, open_table
from orchestration.storage.log_checksums import sum_up
from orchestration.storage.row_digest import INFO, row_digest
from orchestration.storage.tables import Table, ensure

AT = datetime(2026, 11, 24, 11, 18, 48, 972_426, UTC)
FILE = File("plant", "a.json", AT)
ROWS = pa.table({"device": ["a", None], "value": [1.5, 2.5]})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table("bronze.events", Location(tmp_path / "events"), EVENTS, ("ingested_at", "bronze_batch", "bronze_row"), EVENTS_PARTITION)
    ensure(made)
    return made


def piece(content: bytes, first_row: int = 0, bronze_batch: int = 7) -> pa.Table:
    return identified(events(lines(content), FILE), AT, bronze_batch, first_row)


def test_rows_and_what_the_log_says_of_them_are_the_same_to_spark_and_to_delta_rs(spark: SparkSession, table: Table) -> None:
    pieces = [piece(b""), piece(b"a\n\xff\x00"), piece(b""), piece(b"c", first_row=2)]
    assert append_pieces(table.location, iter(pieces), "app", 7) == 3
    rows = spark.read.format("delta").load(str(table.location)).orderBy("bronze_row").toArrow()
    assert rows["payload"].to_pylist() == [b"a", b"\xff\x00", b"c"]
    assert rows["ingested_at"].cast(INSTANT).unique().to_pylist() == [AT]
    assert rows["ingested_on"].unique().to_pylist() == [date(2026, 11, 24)]
    (file,) = pa.table(DeltaTable(table.location.local).get_add_actions(flatten=True)).to_pylist()
    told = ("num_records", "min.ingested_at", "max.ingested_at", "min.bronze_row", "max.bronze_row", "max.bronze_batch")
    assert [file[name] for name in told] == [3, AT, AT, 0, 2, 7]
    assert (
        spark.sql(f"select * from delta.`{table.location}` where bronze_row = 2 and ingested_at = timestamp'{AT.isoformat()}'").count() == 1
    )
    assert pq.read_metadata(table.location.local / file["path"]).num_row_groups == 2


def test_a_repeat_appends_nothing_and_a_batch_without_rows_counts_as_written(table: Table) -> None:
    appended = [append_pieces(table.location, iter([piece(content)]), "app", batch) for batch, content in ((0, b"a"), (0, b"a"), (1, b""))]
    assert appended == [1, 0, 0]
    known = DeltaTable(table.location.local)
    assert (known.transaction_version("app"), len(known.to_pyarrow_table())) == (1, 1)


def test_what_cannot_be_finished_leaves_neither_rows_nor_a_file(table: Table) -> None:
    def breaking() -> Iterator[pa.Table]:
        yield piece(b"a")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        append_pieces(table.location, breaking(), "app", 0)
    assert list(table.location.local.rglob("*.parquet")) == []
    assert DeltaTable(table.location.local).transaction_version("app") is None


def test_ends_are_told_where_there_are_any_and_nulls_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    columns = ("device_id", "metric", "event_time", "bronze_row", "retry")
    late = Table(
        "late",
        Location(tmp_path / "late"),
        pa.schema(zip(columns, (pa.string(), pa.string(), INSTANT, pa.int64(), pa.int64()), strict=True)),
        columns,
    )
    ensure(late)
    year_0 = pa.array([-62_135_600_400_000_000, None], pa.int64()).cast(INSTANT)
    rows = {
        "device_id": pa.array(["oven", None]),
        "metric": pa.array(["x" * 10_000, "m"]),
        "event_time": year_0,
        "bronze_row": pa.array([3, 4]),
    }
    nulls = pa.nulls(2, pa.int64())
    pieces = [pa.table(rows | {"retry": nulls}), pa.table(rows | {"device_id": pa.nulls(2, pa.string()), "retry": nulls})]
    assert append_pieces(late.location, iter(pieces), "app", 0) == 4
    commit = [json.loads(line) for line in (late.location.local / "_delta_log" / f"{1:020d}.json").read_text().splitlines()]
    assert json.loads(next(action["add"]["stats"] for action in commit if "add" in action)) == {
        "numRecords": 4,
        "minValues": {"device_id": "oven", "event_time": "0000-12-31T23:00:00.000000Z", "bronze_row": 3},
        "maxValues": {"device_id": "oven", "event_time": "0000-12-31T23:00:00.000000Z", "bronze_row": 4},
        "nullCount": {"device_id": 3, "metric": 0, "event_time": 2, "bronze_row": 0, "retry": 4},
    }
    assert spark.read.format("delta").load(str(late.location)).where("device_id = 'oven' and retry is null").count() == 1


def test_of_long_names_the_log_tells_nothing(spark: SparkSession, tmp_path: Path) -> None:
    columns = pa.schema([("device_id", pa.string()), ("window_end", INSTANT), ("vector", pa.list_(pa.float64()))])
    made = Table("gold.x", Location(tmp_path / "x"), columns, ("device_id", "window_end"))
    ensure(made)
    ends = pa.array([0, 1], pa.int64()).cast(pa.timestamp("us", "UTC"))
    names = pa.array(["d" * 300, "e" * 100_000])
    rows = pa.table({"device_id": names, "window_end": ends, "vector": pa.array([[1.0, None], None], pa.list_(pa.float64()))})
    assert append_pieces(made.location, iter([rows]), "app", 0) == 2
    (file,) = pa.table(DeltaTable(made.location.local).get_add_actions(flatten=True)).to_pylist()
    assert (file["num_records"], file.get("min.device_id")) == (2, None)
    found = spark.read.format("delta").load(str(made.location)).where("device_id > 'd'").toArrow()
    assert found.select(["device_id", "vector"]).to_pylist() == rows.select(["device_id", "vector"]).to_pylist()


def test_a_compacted_file_is_sorted_and_holds_the_same_rows(tmp_path: Path) -> None:
    schema = pa.schema([("device_group", pa.string()), ("window_end", INSTANT), ("vector", pa.list_(pa.float64()))])
    path = Location(tmp_path / "gold")
    rows = [
        {"device_group": group, "window_end": AT + timedelta(minutes=n), "vector": [n, None]}
        for n in range(50)
        for group in ("b", "a", "é")
    ]
    for n, some in enumerate((rows[:70], rows[70:])):
        append_rows(path, pa.Table.from_pylist(some, schema), "app", n)
    compact(path, 10**6, order="device_group, window_end")
    found = pq.ParquetFile(path.local / files_of(open_table(path))[0]).read()
    assert found.to_pylist() == sorted(rows, key=lambda row: (row["device_group"], row["window_end"]))
    assert found.schema.equals(schema)
    assert (open_table(path).transaction_version("app"), [*path.glob(".sorting*")]) == (1, [])


def test_a_compaction_writes_down_a_digest_of_its_rows_and_one_that_loses_changes_or_doubles_a_row_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Location(tmp_path / "table")
    rows = pa.table(
        {"at": pa.array([AT, None, AT], INSTANT), "names": [["a"], [None, "b"], None], "a": [1.0, 2.0, None], "b": [2.0, 1.0, 3.0]}
    )
    for n in range(3):
        append_rows(path, rows.slice(n, 1), "app", n)
    whole = open_table(path).to_pyarrow_table().sort_by("b")
    small = {file: file.size() for file in path.glob("*.parquet")}
    swapped = whole.select(["at", "names", "b", "a"]).rename_columns(whole.column_names)
    for wrong in (whole[:2], swapped, pa.concat_tables([whole, whole[:1]])):
        with monkeypatch.context() as patch:
            patch.setattr(commit, "write_file", lambda shape, _, wrong=wrong: write_file(shape, iter([wrong])))
            with pytest.raises(TidemarkError, match=r"compaction of .* is refused: its 3 small files hold 3 rows"):
                compact(path, 10**6)
        assert (open_table(path).version(), len([*path.local.glob("*.parquet")])) == (3, 3)
    compact(path, 10**6)
    (entry,) = actions(log_of(path, 4), "commitInfo")
    assert entry["commitInfo"][INFO] == row_digest(small, rows.schema) == row_digest(dict(reversed(small.items())), rows.schema)


@pytest.fixture
def summed_up(tmp_path: Path) -> Path:
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
    sums = json.loads((path / LOG / f"{version:020}.crc").read_text())
    return {name: sums[name] for name in ("numFiles", "tableSizeBytes")}


def true_sizes(path: Path) -> dict[str, int]:
    sizes = [file.stat().st_size for file in path.glob("*.parquet")]
    return {"numFiles": len(sizes), "tableSizeBytes": sum(sizes)}


def test_spark_opens_a_version_that_delta_rs_wrote_without_a_job(spark: SparkSession, summed_up: Path, tmp_path: Path) -> None:
    append_rows(Location(summed_up), ROWS, "app", 1)
    unknown = tmp_path / "unknown"
    write_deltalake(unknown, ROWS)

    assert (jobs_to_open(spark, summed_up), jobs_to_open(spark, unknown) > 0) == (0, True)


def test_spark_goes_on_with_the_sums_of_delta_rs_and_delta_rs_with_those_of_spark(spark: SparkSession, summed_up: Path) -> None:
    append_by_spark(spark, summed_up)
    assert checksum(summed_up, 1) == true_sizes(summed_up)
    append_rows(Location(summed_up), ROWS, "app", 1)
    assert checksum(summed_up, 2) == true_sizes(summed_up)
    append_by_spark(spark, summed_up)
    assert checksum(summed_up, 3) == true_sizes(summed_up)
    assert spark.read.format("delta").load(str(summed_up)).count() == 6


def test_a_version_that_is_summed_up_is_left_as_it_is(summed_up: Path) -> None:
    sealed = (summed_up / LOG / f"{0:020}.crc").read_bytes()
    append_rows(Location(summed_up), ROWS, "app", 1)
    append_rows(Location(summed_up), ROWS, "app", 1)

    assert (summed_up / LOG / f"{0:020}.crc").read_bytes() == sealed
    assert sorted(file.name for file in (summed_up / LOG).glob("*.crc")) == [f"{0:020}.crc", f"{1:020}.crc"]


def test_spark_believes_what_delta_rs_says_of_the_newest_checkpoint(spark: SparkSession, summed_up: Path) -> None:
    for number in range(9):
        append_rows(Location(summed_up), ROWS, "app", number)
    append_by_spark(spark, summed_up)
    assert (summed_up / LOG / "._last_checkpoint.crc").exists()
    for number in range(9, 19):
        append_rows(Location(summed_up), ROWS, "app", number)

    hint = summed_up / LOG / "_last_checkpoint"
    assert json.loads(hint.read_text())["version"] == 19
    assert json.loads(first_line_by_hadoop(spark, hint))["version"] == 19


def test_of_a_table_with_features_nothing_is_summed_up(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_deltalake(path, ROWS, configuration={"delta.enableDeletionVectors": "true"})
    sum_up(Location(path), DeltaTable(path))

    assert list((path / LOG).glob("*.crc")) == []
