"""A writer that sleeps while another process takes its lease writes nothing when it goes on, wherever it slept.

The kernel keeps a lock for as long as its holder is stopped; the files of the locks are removed, as a network disk loses them.
"""

import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.crash import VARIABLE, Point
from orchestration.storage.delta import LOG, files_of, open_table
from orchestration.storage.lease import LEASE, OF_JVM
from tests.chaos.account import assert_as_undisturbed
from tests.chaos.plants import SECONDS, Plant, events
from tests.chaos.test_retry_kills import too_strict
from tests.lakes import run

pytestmark = pytest.mark.processes
FILES = 3
INTAKE = ("run", "--once", "--layer", "bronze")
ALL = ("run", "--once")


def log(plant: Plant) -> dict[str, str]:
    """Every entry of every table's log."""
    return {str(entry.relative_to(plant.lake)): entry.read_text() for entry in plant.lake.rglob(f"{LOG}/*.json")}


def assert_sleeper_writes_nothing(plant: Plant, command: tuple[str, ...], passing: int, taker: tuple[str, ...]) -> None:
    """`command` stops in its commit of that number; `taker` runs meanwhile."""
    with plant.running(*command, **{VARIABLE: f"stop:{Point.COMMIT_DUE}:{passing}"}) as sleeper:
        _, status = os.waitpid(sleeper.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), plant.log_end()
        for name in (LEASE, OF_JVM):
            (plant.lake / name).unlink(missing_ok=True)
        assert plant.exit_code(*taker) == 0, plant.log_end()
        before = log(plant)
        os.killpg(sleeper.pid, signal.SIGCONT)
        assert sleeper.wait(SECONDS) == 3, plant.log_end()
    assert log(plant) == before
    assert "another process took over the lease of" in plant.log_end()


def opened_plant(folder: Path) -> Plant:
    """Make a plant whose lake a run has opened: its conf is kept, so each later commit is one of events."""
    plant = Plant(folder)
    assert plant.exit_code(*INTAKE) == 0, plant.log_end()
    return plant


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return events(tmp_path / "events", files=FILES, seed=1)


def test_of_two_that_read_the_same_events_the_one_that_slept_brings_none(tmp_path: Path, files: list[Path]) -> None:
    plant = opened_plant(tmp_path)
    plant.land(files)
    assert_sleeper_writes_nothing(plant, INTAKE, 1, INTAKE)
    assert open_table(plant.opened().table_path("bronze.events")).version() > 1


def test_a_compaction_that_slept_rearranges_nothing(tmp_path: Path, files: list[Path]) -> None:
    plant = Plant(tmp_path)
    plant.land(files)
    assert plant.exit_code(*INTAKE) == 0, plant.log_end()
    assert_sleeper_writes_nothing(plant, ("maintain",), 1, ("maintain",))
    assert len(files_of(open_table(plant.opened().table_path("bronze.events")))) == 1


@pytest.mark.kill
@pytest.mark.slow
@pytest.mark.parametrize("passing", range(FILES + 1, FILES + 9))
def test_a_run_that_slept_in_any_commit_behind_bronze_writes_nothing(
    passing: int, tmp_path: Path, files: list[Path], spark: SparkSession
) -> None:
    plant, undisturbed = opened_plant(tmp_path / "disturbed"), opened_plant(tmp_path / "undisturbed")
    for each in (plant, undisturbed):
        each.land(files)
    run(undisturbed.opened().conf, spark)
    assert_sleeper_writes_nothing(plant, ALL, passing, ALL)
    assert_as_undisturbed(plant, undisturbed)


@pytest.mark.kill
@pytest.mark.slow
@pytest.mark.parametrize("passing", [1, 3])
def test_a_retry_that_slept_readmits_and_replaces_nothing(passing: int, tmp_path: Path, files: list[Path], spark: SparkSession) -> None:
    plant = Plant(tmp_path)
    assert too_strict(plant, files, spark) > 0
    assert_sleeper_writes_nothing(plant, ("quarantine", "retry"), passing, ALL)
    assert plant.exit_code("ledger") == 0, plant.log_end()
    assert plant.exit_code("verify") == 0, plant.log_end()
