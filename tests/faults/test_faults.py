"""A lake in a store that fails as networks do, and writers that meet: nothing is lost or twice, and nobody takes himself for another."""

import os
import signal
from pathlib import Path

import pytest

from tests.chaos.account import assert_as_undisturbed
from tests.chaos.plants import SECONDS, Plant, events
from tests.faults.lakes import LOSES, TAKEN_OVER, assert_nothing_written_since, harm, lake_content
from tests.s3_proxy import Fault, Proxy
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.processes, pytest.mark.slow, pytest.mark.spark]
FILES = 3
OFFSETS, COMMITS, STATE = r"/silver\.readings/offsets/\d+$", r"/silver\.readings/commits/\d+$", r"/state/.+\.delta$"
READINGS, AMENDMENTS = r"/silver/readings/_delta_log/0+1\.json$", r"/amendments\.json$"
OFFSETS_OF_GOLD = r"/gold\.plant/offsets/\d+$"
"""Of all readings that there are, so a later run has another end for the same batch."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return events(tmp_path_factory.mktemp("events"), files=FILES, seed=1)


@pytest.fixture(scope="module")
def undisturbed(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Plant:
    """On a disk."""
    plant = Plant(tmp_path_factory.mktemp("undisturbed"))
    plant.land(files)
    assert plant.exit_code("run", "--once") == 0, plant.log_end()
    return plant


@pytest.fixture
def plant(proxy: Proxy, tmp_path: Path) -> Plant:
    return Plant(tmp_path / "plant", store=proxy)


def test_a_store_that_loses_refuses_and_cuts_costs_no_row_and_no_lease(
    proxy: Proxy, plant: Plant, files: list[Path], undisturbed: Plant
) -> None:
    plant.land(files)
    proxy.set_faults(*LOSES, seconds=0.002)
    assert plant.exit_code("run", "--once") == 0, plant.log_end()
    print(harm(proxy))
    assert harm(proxy)["lose"] > 50
    assert TAKEN_OVER not in plant.log()
    proxy.set_faults()
    assert_as_undisturbed(plant, undisturbed)


@pytest.mark.parametrize("key", [OFFSETS, STATE, READINGS, COMMITS, OFFSETS_OF_GOLD, AMENDMENTS])
def test_what_a_stopped_writer_has_sent_or_goes_on_with_changes_nothing_once_its_lease_is_taken(
    key: str, proxy: Proxy, plant: Plant, files: list[Path], undisturbed: Plant
) -> None:
    plant.land(files[:-1])
    proxy.set_faults(Fault("wait", ["PUT", "COPY"], key, most=1))
    with plant.running("run", "--once") as sleeper:
        until(lambda: proxy.met() > 0)
        os.killpg(sleeper.pid, signal.SIGSTOP)
        plant.land(files[-1:])
        assert plant.exit_code("run", "--once") == 0, plant.log_end()
        before = lake_content(plant)
        proxy.set_faults()
        until(lambda: harm(proxy)["wait"] == 1)
        os.killpg(sleeper.pid, signal.SIGCONT)
        assert sleeper.wait(SECONDS) == 3, plant.log_end()
    assert TAKEN_OVER in plant.log()
    assert_nothing_written_since(before, plant)
    assert plant.exit_code("run", "--once") == 0, plant.log_end()
    assert_as_undisturbed(plant, undisturbed)


def test_of_two_drivers_that_start_at_once_one_works_and_the_other_is_refused(plant: Plant, files: list[Path], undisturbed: Plant) -> None:
    plant.land(files)
    with plant.running("run", "--once") as first, plant.running("run", "--once") as second:
        codes = sorted(process.wait(SECONDS) for process in (first, second))
    assert codes == [0, 3], plant.log_end()
    assert_as_undisturbed(plant, undisturbed)
