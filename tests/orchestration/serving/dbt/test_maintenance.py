"""What a build that can be asked needs stays: its snapshot, whatever maintenance forgets, and its versions of the marts; all else goes."""

import os
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.jobs import maintenance
from orchestration.location import Location
from orchestration.serving.dbt import targets
from orchestration.storage import generations, snapshots
from orchestration.storage.generations import Generation
from orchestration.storage.marts import MARTS, Build, needed_snapshots, snapshot_for
from tests.lakes import conf
from tests.orchestration.jobs.written_tables import batch, pinned

NOW = datetime.now(UTC)
LONG_AGO = timedelta(days=1000)
QUERY = "select * from marts.hourly"


def build(lake: Path, number: int, snapshot_id: int, version: int, generation: int = 1) -> None:
    MARTS.append(Location(lake), [Build(number, NOW, snapshot_id, generation, {"marts.hourly": version})])


def own_build(lake: Path, number: int, snapshot_id: int, **left_out: int) -> None:
    """It made marts.own, and left marts.hourly as another build had made it."""
    versions = {"marts.hourly": 0, "marts.own": number}
    reached = {"bronze": 7, **{f"marts.{name}": by for name, by in left_out.items()}}
    MARTS.append(Location(lake), [Build(number, NOW, snapshot_id, 1, versions, reached)])


def commit(lake: Path, number: int) -> None:
    """The one row of the mart becomes another."""
    write_deltalake(lake / "marts" / "hourly", pa.table({"n": [number]}), mode="overwrite")


def row(lake: Path, version: int) -> list[int]:
    numbers: list[int] = pa.table(DeltaTable(lake / "marts" / "hourly", version).to_pyarrow_table())["n"].to_pylist()
    return numbers


@pytest.fixture
def made(tmp_path: Path) -> Conf:
    """Four snapshots, a day apart."""
    built = conf(tmp_path)
    for number in range(4):
        batch(built, number)
        pinned(built, number, NOW - timedelta(days=4 - number))
        commit(built.lake.local, number)
    return built


def test_the_snapshot_of_the_newest_build_of_each_generation_never_expires(made: Conf) -> None:
    for number, (snapshot_id, generation) in enumerate([(0, 1), (1, 1), (2, 2)]):
        build(made.lake.local, number, snapshot_id, snapshot_id, generation)
    assert needed_snapshots(made.lake) == {1, 2}
    pinned_snapshots = snapshots.all_snapshots(made.lake)
    gone = snapshots.expired(pinned_snapshots, timedelta(0), NOW + LONG_AGO, needed_snapshots(made.lake))
    assert [snapshot.snapshot_id for snapshot in gone] == [0]


def test_maintenance_leaves_the_snapshot_of_the_newest_build_and_every_file_of_marts(made: Conf) -> None:
    build(made.lake.local, 0, 1, 1)
    files = sorted((made.lake.local / "marts").rglob("*"))
    for _ in range(2):
        list(maintenance.maintain(Lake(made), NOW + LONG_AGO, lambda _: nullcontext()))
    assert [snapshot.snapshot_id for snapshot in snapshots.all_snapshots(made.lake)] == [1, 3]
    assert sorted((made.lake.local / "marts").rglob("*")) == files
    snapshot = snapshot_for(made.lake, QUERY)
    assert snapshot is not None
    assert (snapshot.snapshot_id, snapshot.versions["marts.hourly"]) == (1, 1)
    silver = DeltaTable(made.lake.local / "silver" / "readings", snapshot.versions["silver.readings"]).to_pyarrow_table()
    assert sorted(pa.table(silver)["bronze_batch"].to_pylist()) == [0, 1]


def test_files_of_marts_go_once_no_build_that_can_be_asked_has_them(made: Conf) -> None:
    for number in (0, 2):
        build(made.lake.local, number, number, number)
    targets.clean(made.lake, NOW - LONG_AGO, NOW)  # all of it was superseded within the retention
    assert [row(made.lake.local, version) for version in range(4)] == [[0], [1], [2], [3]]
    targets.clean(made.lake, NOW + LONG_AGO, NOW + LONG_AGO)
    assert [row(made.lake.local, version) for version in (0, 2, 3)] == [[0], [2], [3]]  # of two builds, and the newest
    with pytest.raises(FileNotFoundError):
        row(made.lake.local, 1)
    DeltaTable(made.lake.local / "ops" / "snapshots").delete("snapshot_id = 0")
    targets.clean(made.lake, NOW + LONG_AGO, NOW + LONG_AGO)
    assert [recorded.build for recorded in MARTS.rows(made.lake)] == [2]
    assert [row(made.lake.local, version) for version in (2, 3)] == [[2], [3]]
    assert len([file for file in os.listdir(made.lake.local / "marts" / "hourly") if file.endswith(".parquet")]) == 2


def test_readers_see_the_newest_build_of_the_generation_that_serves_and_before_there_is_one_the_newest(made: Conf) -> None:
    build(made.lake.local, 0, 0, 0)
    build(made.lake.local, 1, 1, 1)
    for swap, (generation, seen) in enumerate([(2, 1), (2, 2), (1, 1)]):
        generations.request_switch(made.lake, Generation(swap + 1, generation, cause="test"))
        generations.switch(made.lake, NOW)
        if (generation, seen) == (2, 2):
            build(made.lake.local, 2, 2, 2, generation=2)
        snapshot = snapshot_for(made.lake, QUERY)
        assert snapshot is not None
        assert snapshot.snapshot_id == seen, (generation, seen)


@pytest.mark.parametrize(
    ("query", "snapshot_id"),
    [
        ("select * from marts.own", 2),
        (QUERY, 0),
        ("select * from MARTS.`Hourly` join gold.kitchen_aggregates using (metric)", 0),
        ("select * from marts.own join marts.hourly using (n)", 1),
        ("select * from marts.not_yet", 2),
    ],
)
def test_a_mart_that_a_build_left_out_stays_with_the_snapshot_that_it_was_built_of(made: Conf, query: str, snapshot_id: int) -> None:
    build(made.lake.local, 0, 0, 0)
    own_build(made.lake.local, 1, 1)
    MARTS.append(made.lake, [Build(2, NOW, 0, 1, {"marts.hourly": 0})])
    for number, newest in ((3, 1), (4, 2)):
        own_build(made.lake.local, number, newest, hourly=2)
    snapshot = snapshot_for(made.lake, query)
    assert snapshot is not None
    assert (snapshot.snapshot_id, snapshot.versions["marts.hourly"]) == (snapshot_id, 0)
    assert needed_snapshots(made.lake) == {0, 2}


def test_marts_that_no_build_made_together_are_no_answer(made: Conf) -> None:
    build(made.lake.local, 0, 0, 0)
    own_build(made.lake.local, 1, 3, hourly=0)
    with pytest.raises(TidemarkError, match=r"^snapshot 3 does not have all marts .* are 0, 3\. `tidemark dbt build --all` builds all"):
        snapshot_for(made.lake, "select * from marts.own join marts.hourly using (n)")


def test_marts_of_a_snapshot_that_has_none_are_refused_with_those_that_have_some(made: Conf) -> None:
    with pytest.raises(TidemarkError, match=r"^there are no marts yet: build them with `tidemark dbt build`"):
        snapshot_for(made.lake, QUERY)
    build(made.lake.local, 0, 1, 1)
    with pytest.raises(TidemarkError, match=r"^snapshot 3 does not have all marts .* the newest with marts are 1\."):
        snapshot_for(made.lake, QUERY, 3)
    newest = snapshot_for(made.lake, "select 'marts of bronze' from bronze.events")
    assert newest is not None
    assert newest.snapshot_id == 3


def test_a_hundred_builds_are_few_files(made: Conf) -> None:
    for number in range(102):
        build(made.lake.local, number, 1, 1)
    assert len(DeltaTable(made.lake.local / "ops" / "marts").file_uris()) < 10
    assert [recorded.build for recorded in MARTS.rows(made.lake)] == list(range(102))
