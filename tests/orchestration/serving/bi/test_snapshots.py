"""Which snapshot a session gets, in a lake of tables without content."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from orchestration.conf.model import Conf
from orchestration.errors import TidemarkError
from orchestration.serving.bi.snapshots import THIS_SNAPSHOT, SnapshotChoice, snapshot_views
from orchestration.storage.marts import MARTS, Build
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from tests.lakes import conf
from tests.rows import at

START = at("2026-01-05T00:00:00")


def of_number(number: int) -> Snapshot:
    versions = {"bronze.events": number, "gold.vectors": number}
    return Snapshot(number, START + timedelta(seconds=number), 1, 10 + number, versions, {})


@pytest.fixture
def made(tmp_path: Path) -> Conf:
    """Three snapshots, each of its own versions; marts of another count."""
    made = conf(tmp_path)
    for number in range(3):
        for name in ("bronze/events", "gold/vectors", "marts/daily"):
            write_deltalake(made.lake.local / name, pa.table({"bronze_batch": [number]}), mode="append")
        SNAPSHOTS.append(made.lake, [of_number(number)])
    return made


def of_snapshot(made: Conf, number: int, choice: SnapshotChoice) -> dict[str, str]:
    """The views, which are all of this snapshot."""
    snapshot, views = snapshot_views(made, choice)
    assert snapshot is not None
    assert snapshot.snapshot_id == number
    assert f"version as of {number}) where bronze_batch <= {10 + number}" in views["bronze.events"]
    assert f"version as of {number}" in views["gold.kitchen_vectors"]
    assert f"{number}L as snapshot_id" in views[THIS_SNAPSHOT]
    return views


def test_the_newest_snapshot_is_shown_and_another_one_where_it_is_asked_for(made: Conf) -> None:
    assert "marts.daily" not in of_snapshot(made, 2, SnapshotChoice())
    of_snapshot(made, 1, SnapshotChoice(1))
    with pytest.raises(TidemarkError, match="there is no snapshot 7"):
        snapshot_views(made, SnapshotChoice(7))


def test_where_marts_were_built_it_is_the_newest_that_they_were_built_of(made: Conf) -> None:
    MARTS.append(made.lake, [Build(0, START, 0, 1, {"marts.daily": 1})])
    MARTS.append(made.lake, [Build(1, START, 1, 1, {"marts.daily": 2})])
    assert "version as of 2" in of_snapshot(made, 1, SnapshotChoice())["marts.daily"]
    assert "version as of 1" in of_snapshot(made, 0, SnapshotChoice(0))["marts.daily"]
    assert "marts.daily" not in of_snapshot(made, 2, SnapshotChoice(2))
    assert "marts.daily" not in of_snapshot(made, 2, SnapshotChoice(is_newest=True))


def test_where_the_snapshot_of_the_marts_has_expired_it_is_the_newest(made: Conf) -> None:
    MARTS.append(made.lake, [Build(0, START, -5, 1, {"marts.daily": 1})])
    assert "marts.daily" not in of_snapshot(made, 2, SnapshotChoice())


def test_a_lake_without_snapshots_is_shown_as_it_is(tmp_path: Path) -> None:
    made = conf(tmp_path)
    write_deltalake(made.lake.local / "bronze/events", pa.table({"bronze_batch": [0]}))
    snapshot, views = snapshot_views(made, SnapshotChoice())
    assert snapshot is None
    assert "version as of" not in views["bronze.events"]
    assert views[THIS_SNAPSHOT].endswith("where false")
