"""Delta tables of others with deletion vectors and with column mapping: what is left is read, by the names that the table declares."""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from orchestration.conf.model import Source
from orchestration.conf.transport_settings import DeltaSettings
from orchestration.connectors.sources.all import sources
from orchestration.connectors.sources.delta import DELETED
from orchestration.jobs.bronze import commit_batch, poll
from orchestration.storage.tables import LakeStore
from tests.lakes import SHAPE, conf, table
from tests.orchestration.connectors.sources.test_delta import append, lake_of, source, take, values
from tests.taking import opened, take_all

CASES = Path(__file__).parents[3] / "cases" / "delta"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a table"


@pytest.fixture
def lake(tmp_path: Path, path: Path) -> LakeStore:
    return lake_of(tmp_path / "l", path)


def test_case_52_deletion_vectors_and_renamed_columns_are_read(tmp_path: Path) -> None:
    shutil.copytree(CASES, tmp_path / "delta")
    names = ("later", "first", "mapped")
    declared = {name: Source(name, SHAPE, DeltaSettings(table=tmp_path / "delta" / name)) for name in names}
    lake = opened(conf(tmp_path / "l", sources=declared))
    take_all(lake)
    shutil.copytree(tmp_path / "delta" / "later.next", tmp_path / "delta" / "later", dirs_exist_ok=True)
    of_lake = sources(lake.conf)
    take_all(lake, *of_lake)
    events = table(lake.conf, "bronze.events")
    read = {name: sorted(json.loads(payload)["value"] for payload in events[events.source == name].payload) for name in names}
    assert read == {"later": [10, 11, 12, 13, 14, 15], "first": [20, 22, 23], "mapped": [30, 31, 32]}
    assert next(map(json.loads, events[events.source == "mapped"].payload)).keys() == {"device", "metric", "ts", "value"}
    rows = sorted(int(position.rpartition("/")[2]) for position in events[events.source == "first"].position)
    assert rows == [0, 2, 3]
    told = [f"{notice.facts['what']}: {notice.facts['reason']}" for one in of_lake for notice in one.notices()]
    assert told == [f"version 1: {DELETED}"]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_of_a_table_of_spark_with_both_what_is_left_is_read_by_the_names_that_it_declares(
    spark: SparkSession, lake: LakeStore, path: Path, mode: str
) -> None:
    nested = "named_struct('deep', array(named_struct('x', id)), 'left', map('k', id)) as s"
    rows = f"select id as v, concat('zone ', id % 2, '%3') as zone, {nested} from range(0, 10000, 1, 1)"
    features = f"'delta.enableDeletionVectors' = true, 'delta.columnMapping.mode' = '{mode}'"
    spark.sql(f"create table delta.`{path}` (v long, zone string, s struct<deep: array<struct<x: long>>, left: map<string, long>>) "
              f"using delta partitioned by (zone) tblproperties ({features})")  # fmt: skip
    spark.sql(f"insert into delta.`{path}` {rows}")
    spark.sql(f"alter table delta.`{path}` rename column v to number")
    spark.sql(f"alter table delta.`{path}` rename column s.deep.element.x to y")
    spark.sql(f"delete from delta.`{path}` where number % 3 = 0 or number > 9990")
    take(lake)

    def payloads() -> list[dict[str, Any]]:
        return sorted((json.loads(payload) for payload in table(lake.conf, "bronze.events").payload), key=lambda row: row["number"])

    left = [number for number in range(10_000) if number % 3 and number <= 9990]
    expected = [
        {"number": number, "zone": f"zone {number % 2}%3", "s": {"deep": [{"y": number}], "left": {"k": number}}} for number in left
    ]
    assert payloads() == expected
    spark.sql(f"delete from delta.`{path}` where number < 100")
    more = {"number": 20_000, "zone": "new", "s": {"deep": [], "left": {}}}
    spark.sql(f"insert into delta.`{path}` select 20000, 'new', named_struct('deep', array(), 'left', map())")
    assert len(take(lake)) == 1
    assert payloads() == [*expected, more]


def test_a_source_that_read_nothing_yet_begins_where_conf_says_by_now(tmp_path: Path, path: Path) -> None:
    append(path, 1, 2)
    lake = lake_of(tmp_path / "l", path)
    assert take_all_but_rows(lake)
    later = lake_of(tmp_path / "l", path, starting="latest")
    take(later)
    append(path, 3)
    take(later)
    assert values(later) == [3]


def take_all_but_rows(lake: LakeStore) -> bool:
    """The first offset, which has no rows; whether there was one."""
    ready = poll(lake, source(lake))
    return ready is not None and commit_batch(lake, [ready], nullcontext()).rows["plant"] == 0
