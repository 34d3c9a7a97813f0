"""A Delta table of somebody else as a source: what its versions add is read once, and nothing else is taken for that."""

import json
import shutil
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from orchestration.conf.model import Source
from orchestration.conf.transport_settings import DeltaSettings
from orchestration.connectors.sources.all import sources
from orchestration.connectors.sources.delta import Delta
from orchestration.connectors.sources.source import Gap, SourceDownError
from orchestration.jobs import bronze
from orchestration.jobs.bronze import commit_batch, poll
from orchestration.storage.tables import LakeStore
from tests.lakes import SHAPE, conf, table
from tests.taking import opened, take_all

WITH_CHANGES = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a table"


@pytest.fixture
def lake(tmp_path: Path, path: Path) -> LakeStore:
    return lake_of(tmp_path / "l", path)


def lake_of(folder: Path, path: Path, **more: Any) -> LakeStore:
    return opened(conf(folder, sources={"plant": Source("plant", SHAPE, DeltaSettings(table=path, **more))}))


def append(path: Path, *values: int, **more: Any) -> None:
    write_deltalake(str(path), pa.table({"v": values}), mode="append", **more)


def source(lake: LakeStore) -> Delta:
    (of,) = sources(lake.conf)
    assert isinstance(of, Delta)
    return of


def take(lake: LakeStore) -> list[str]:
    """Until nothing is left; returns what it tells."""
    of = source(lake)
    take_all(lake, of)
    return [f"{notice.facts['what']}: {notice.facts['reason']}" for notice in of.notices()]


def values(lake: LakeStore) -> list[int]:
    found = table(lake.conf, "bronze.events").sort_values(["bronze_batch", "bronze_row"])
    return [json.loads(payload)["v"] for payload in found.payload]


def gaps(lake: LakeStore) -> list[list[Any]]:
    return table(lake.conf, "ops.gaps")[["topic", "first_offset", "last_offset"]].to_numpy().tolist()


def vacuum(path: Path) -> None:
    DeltaTable(str(path)).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def test_what_is_there_and_what_is_appended_is_read_once_with_version_file_and_row(lake: LakeStore, path: Path) -> None:
    append(path, 1, 2)
    append(path, 3)
    assert (take(lake), sorted(values(lake))) == ([], [1, 2, 3])
    append(path, 4, 5)
    assert (take(lake), take(lake)) == ([], [])
    assert values(lake)[3:] == [4, 5]
    names = {Path(file).name for file in DeltaTable(str(path)).file_uris()}
    positions = table(lake.conf, "bronze.events").position
    assert {position.split("/")[1] for position in positions} == names
    assert sorted(position.split("/")[0] + "/" + position.split("/")[2] for position in positions) == ["1/0", "1/0", "1/1", "2/0", "2/1"]


def test_a_batch_has_as_many_files_as_fit_and_the_snapshot_stays_that_of_the_first_read(lake: LakeStore, path: Path) -> None:
    for n in range(4):
        append(path, n)
    of = source(lake)
    of.max_batch_bytes = 1
    ready = poll(lake, of)
    while ready:
        commit_batch(lake, [ready], nullcontext())
        if len(values(lake)) == 1:
            append(path, 9)
            DeltaTable(str(path)).optimize.compact()
        ready = poll(lake, of)
    assert sorted(values(lake)) == [0, 1, 2, 3, 9]
    assert table(lake.conf, "bronze.events").bronze_batch.nunique() == 5


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"starting": "earliest"}, [1, 2, 3]),
        ({"starting": "latest"}, [3]),
        ({"starting_version": 1}, [2, 3]),
        ({"starting_version": 0}, [1, 2, 3]),
    ],
)
def test_the_first_read_begins_where_conf_says(tmp_path: Path, path: Path, more: dict[str, Any], expected: list[int]) -> None:
    append(path, 1)
    append(path, 2)
    lake = lake_of(tmp_path / "l", path, **more)
    take(lake)
    append(path, 3)
    take(lake)
    assert sorted(values(lake)) == expected


def test_partitions_types_and_columns_that_came_later_are_in_the_rows(lake: LakeStore, path: Path) -> None:
    at = datetime(2026, 1, 5, 12, tzinfo=UTC)
    rows: dict[str, Any] = {"v": [1, 2], "day": [at.date(), None], "zone": ["a b/c%", "ü"], "ts": [at, at]}
    write_deltalake(str(path), pa.table(rows), partition_by=["day", "zone"])
    write_deltalake(str(path), pa.table({name: of[:1] for name, of in rows.items()} | {"new": [2**60]}), mode="append", schema_mode="merge")
    take(lake)
    found = [
        json.loads(payload) for payload in sorted(table(lake.conf, "bronze.events").payload, key=lambda text: (b"2," in text, len(text)))
    ]
    first = {"v": 1, "day": "2026-01-05", "zone": "a b/c%", "ts": "2026-01-05T12:00:00Z"}
    assert found == [first, first | {"new": 2**60}, {"v": 2, "zone": "ü", "ts": "2026-01-05T12:00:00Z"}]
    append_again = pa.table({name: of[:1] for name, of in rows.items()} | {"new": [1]})
    write_deltalake(str(path), append_again, mode="append")
    take(lake)  # values of partitions now come from the log of the version
    assert first | {"new": 1} in [json.loads(payload) for payload in table(lake.conf, "bronze.events").payload]


def test_compaction_is_passed_over_and_what_rewrites_rows_is_told_and_not_read_as_new(lake: LakeStore, path: Path) -> None:
    append(path, 1)
    append(path, 2)
    take(lake)
    DeltaTable(str(path)).optimize.compact()
    assert take(lake) == []
    DeltaTable(str(path)).update({"v": "v + 10"}, predicate="v = 1")
    DeltaTable(str(path)).delete("v = 2")
    append(path, 3)
    told = take(lake)
    assert [text.partition(":")[0] for text in told] == ["version 3", "version 4"]
    assert values(lake) == [1, 2, 3]
    DeltaTable(str(path)).delete()
    assert take(lake) == ["version 6: it took rows away; those that were read stay"]


def test_of_a_change_data_feed_new_rows_are_events_with_their_kind_and_deletes_are_told(lake: LakeStore, path: Path) -> None:
    append(path, 1, 2, 3, configuration=WITH_CHANGES)
    take(lake)
    DeltaTable(str(path)).update({"v": "v + 10"}, predicate="v = 1")
    DeltaTable(str(path)).delete("v = 2")
    told = take(lake)
    found = table(lake.conf, "bronze.events").sort_values(["bronze_batch", "bronze_row"])
    assert values(lake) == [1, 2, 3, 11]
    assert list(found.headers.iloc[3]) == [{"key": "_change_type", "value": b"update_postimage"}]
    assert [text.partition(": ")[2] for text in told] == ["1 rows of it were deleted; those that were read stay"]
    write_deltalake(str(path), pa.table({"v": [7]}), mode="overwrite")
    assert (take(lake), values(lake)[4:]) == (["version 3: it took rows away; those that were read stay"], [7])


def test_a_version_whose_log_is_gone_is_a_gap_and_reading_goes_on_behind_it(lake: LakeStore, path: Path) -> None:
    append(path, 1)
    take(lake)
    for n in range(2, 6):
        append(path, n)
    DeltaTable(str(path)).create_checkpoint()
    for version in (1, 2):
        (path / f"_delta_log/{version:020}.json").unlink()
    append(path, 6)
    take(lake)
    assert (values(lake), gaps(lake)) == ([1, 4, 5, 6], [[str(path), 1, 2]])


def test_a_file_that_is_gone_or_damaged_before_it_is_read_is_a_gap_and_told(lake: LakeStore, path: Path) -> None:
    append(path, 1)
    take(lake)
    append(path, 2)
    append(path, 3)
    DeltaTable(str(path)).optimize.compact()
    vacuum(path)
    append(path, 4)
    newest = max(path.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    newest.write_bytes(b"rubbish" * 100)
    append(path, 5)
    told = take(lake)
    assert values(lake) == [1, 5]
    assert [(first, last) for _, first, last in gaps(lake)] == [(1, 1), (2, 2), (6, 6)]  # a vacuum makes two versions
    assert [text.partition(": ")[2][:30] for text in told] == ["the file was removed before it"] * 2 + ["the file cannot be read (Parqu"]


def test_another_table_at_that_place_is_refused_and_so_is_one_that_has_lost_versions(lake: LakeStore, path: Path) -> None:
    append(path, 1)
    append(path, 2)
    take(lake)
    shutil.copytree(path, path.with_name("kept"))
    (path / f"_delta_log/{1:020}.json").unlink()
    with pytest.raises(SourceDownError, match=r"source plant cannot be read: the table at .* ends at version 0, before 1; "):
        take(lake)
    shutil.rmtree(path)
    with pytest.raises(SourceDownError, match="source plant cannot be read: there is no Delta table at"):
        take(lake)
    append(path, 7)
    with pytest.raises(SourceDownError, match="is another one than the one that was read; give the source another name; it is asked again"):
        take(lake)
    shutil.rmtree(path)
    path.with_name("kept").rename(path)
    append(path, 3)
    take(lake)
    assert sorted(values(lake)) == [1, 2, 3]


def test_a_table_with_a_feature_that_nobody_knows_is_down_and_no_other_source_is(lake: LakeStore, path: Path) -> None:
    append(path, 1)
    log = path / f"_delta_log/{0:020}.json"
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["odd"], "writerFeatures": ["odd"]}}
    lines = [json.dumps(protocol) if "protocol" in line else line for line in log.read_text().splitlines()]
    log.write_text("\n".join(lines))
    with pytest.raises(SourceDownError, match=r"source plant cannot be read: .*Feature 'odd' is not supported"):
        take(lake)


def test_what_was_read_and_not_committed_is_read_again_and_its_gap_is_written_once(
    lake: LakeStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(path, 1)
    take(lake)
    append(path, 2)
    append(path, 3)
    DeltaTable(str(path)).create_checkpoint()
    (path / f"_delta_log/{1:020}.json").unlink()
    of = source(lake)
    with monkeypatch.context() as broken:
        broken.setattr(bronze, "append_pieces", refuse)
        ready = poll(lake, of)
        assert ready is not None
        with pytest.raises(OSError, match="full"):
            commit_batch(lake, [ready], nullcontext())
    take(lake)
    assert (values(lake), gaps(lake)) == ([1, 3], [[str(path), 1, 1]])
    assert of.gaps(ready.start, ready.end) == [Gap(str(path), 0, 1, 1)]


def refuse(*_: Any, **__: Any) -> None:
    raise OSError("the disk is full")


def test_a_table_that_spark_writes_is_read_with_its_instants(spark: SparkSession, lake: LakeStore, path: Path) -> None:
    row = "timestamp'2026-01-05 12:00:00.5' as ts, timestamp_ntz'2026-01-05 12:00:00' as local, cast(1.50 as decimal(10, 2)) as d"
    rows = f"select id as v, {row}, named_struct('a', array(id)) as s from range(2)"
    spark.sql(f"create table delta.`{path}` using delta partitioned by (v) tblproperties ('delta.enableDeletionVectors' = true) as {rows}")
    take(lake)
    spark.sql(rows).write.format("delta").mode("append").save(str(path))
    take(lake)
    found = sorted(json.loads(payload)["v"] for payload in table(lake.conf, "bronze.events").payload)
    expected = spark.sql("select date_format(timestamp'2026-01-05 12:00:00.5', \"yyyy-MM-dd'T'HH:mm:ss.S\") as t").collect()[0].t
    payload = json.loads(table(lake.conf, "bronze.events").payload[0])
    assert found == [0, 0, 1, 1]
    assert payload["ts"].rstrip("Z").rstrip("0") == expected
    assert (payload["local"], payload["d"], payload["s"]) == ("2026-01-05T12:00:00", 1.5, {"a": [payload["v"]]})
    spark.sql(f"delete from delta.`{path}` where v = 0")
    spark.sql(f"optimize delta.`{path}`")
    assert len(take(lake)) == 1
    assert len(table(lake.conf, "bronze.events")) == 4
