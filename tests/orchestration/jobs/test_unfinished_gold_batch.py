"""A kill in a batch of gold: until its stream has repeated it, nothing is folded in, and no snapshot holds a part of it."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from orchestration.conf.model import Conf
from orchestration.crash import Point
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.jobs.account.retry import Chosen
from orchestration.jobs.gold import amendments
from orchestration.storage.positions import gold_position
from orchestration.storage.snapshots import all_snapshots
from orchestration.supervisor.run import retry_quarantine
from tests.lakes import KITCHEN, conf, copied, differences, event, land, minutes, recorded, run
from tests.orchestration.jobs.killed import killed
from tests.rows import at

START = at("2026-01-05T00:00:00")
TABLES = ("aggregates", "vectors")

Kill = tuple[Point | None, int]
UNHARMED = None, 1
HALF_WRITTEN, WRITTEN = (Point.AGGREGATES_WRITTEN, 1), (Point.WINDOWS_WRITTEN, 2)  # the first batch of a run closes nothing
HALF_AMENDED = Point.AMENDMENT_HALF_WRITTEN, 1


def half_an_hour(number: int) -> list[str]:
    """Of the oven; from the second on with a late row for the first window of all, in whose reach every vector here is."""
    rows = [event("oven", "temperature", number, time) for time in minutes(START + timedelta(minutes=30 * number), 30)]
    return [*rows, event("oven", "temperature", 1000, START + timedelta(minutes=5, seconds=number))] if number else rows


def brought_in(made: Conf, spark: SparkSession, first: int, *kills: Kill) -> Conf:
    """The lake after a run for each file from the `first` on; some of the runs are killed."""
    for number, kill in enumerate(kills, first):
        land(made.folder, f"{number}.json", half_an_hour(number))
        with killed(*kill):
            run(made, spark)
    return made


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[Conf]:
    """The lake after one, two and three runs."""
    stages = [brought_in(conf(tmp_path_factory.mktemp("undisturbed"), groups={"kitchen": KITCHEN}), spark, 0, UNHARMED)]
    for number in (1, 2):
        stages.append(brought_in(copied(stages[-1], tmp_path_factory.mktemp("undisturbed")), spark, number, UNHARMED))
    return stages


def retry(made: Conf, spark: SparkSession) -> None:
    """What folds in and pins without a batch of gold."""
    with Progress([amendments.NAME], Console(file=io.StringIO())) as progress:
        retry_quarantine(Lake(made, spark), Chosen(), progress)


def gold(made: Conf, versions: dict[str, int] | None = None) -> dict[str, list[Any]]:
    """What it holds, all revisions."""
    names = (f"gold.kitchen_{kind}" for kind in TABLES)
    return {name: sorted(recorded(Lake(made), name, versions).to_pylist(), key=str) for name in names}


def assert_whole(made: Conf) -> None:
    """In each snapshot gold has the same ends in both tables, and none beyond those that it tells of."""
    for snapshot in all_snapshots(made.lake):
        windows, vectors = ({row["window_end"] for row in rows} for rows in gold(made, snapshot.versions).values())
        assert windows == vectors, snapshot
        assert max(windows) <= snapshot.closed_until["kitchen"], snapshot


def assert_as_undisturbed(made: Conf, undisturbed: Conf) -> None:
    """Gold to the revision, the newest snapshot, and `tidemark verify`."""
    assert gold(made) == gold(undisturbed)
    assert_whole(made)
    newest, expected = (all_snapshots(lake.lake)[-1] for lake in (made, undisturbed))
    assert (newest.bronze_batch, newest.closed_until) == (expected.bronze_batch, expected.closed_until)
    assert differences(made) == []


@pytest.mark.parametrize("kill", [HALF_WRITTEN, pytest.param(WRITTEN, marks=pytest.mark.slow)])
def test_a_snapshot_holds_nothing_of_a_batch_that_is_half_done(
    kill: Kill, undisturbed: list[Conf], spark: SparkSession, tmp_path: Path
) -> None:
    made = brought_in(copied(undisturbed[1], tmp_path), spark, 2, kill)
    reached = gold_position(Lake(made), "kitchen")
    assert reached is not None
    ends = {row["window_end"] for row in gold(made)["gold.kitchen_aggregates"]}
    assert max(ends) > datetime.fromtimestamp(reached.closed_until_ms / 1000, UTC)  # it was hit
    retry(made, spark)
    assert_whole(made)
    run(made, spark)
    assert_as_undisturbed(made, undisturbed[-1])


@pytest.mark.parametrize("before", [HALF_AMENDED, pytest.param(UNHARMED, marks=pytest.mark.slow)])
def test_an_amendment_writes_no_vector_that_a_batch_has_yet_to_write(
    before: Kill, undisturbed: list[Conf], spark: SparkSession, tmp_path: Path
) -> None:
    """Nor does one that had begun before the batch, and was killed too."""
    made = brought_in(copied(undisturbed[0], tmp_path), spark, 1, before, HALF_WRITTEN)
    ends = {row["window_end"] for row in gold(made)["gold.kitchen_vectors"]}
    retry(made, spark)
    assert {row["window_end"] for row in gold(made)["gold.kitchen_vectors"]} == ends
    run(made, spark)
    assert_as_undisturbed(made, undisturbed[-1])
