"""A lake in a store that fails as networks do, and writers that meet: nothing is lost or twice, and nobody takes himself for another."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.storage.store_lease import STILL_SECONDS
from tests.chaos.account import assert_as_undisturbed
from tests.chaos.plants import SECONDS, Plant, events
from tests.object_store import Store
from tests.s3_proxy import Fault, Proxy
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.processes, pytest.mark.slow, pytest.mark.spark]
FILES = 3
TAKEN_OVER = "took over"
LOSES = (Fault("lose", every=20), Fault("refuse", every=31), Fault("cut", ["PUT"], every=23))
"""One answer in 20, and more that does not go well."""
LOGGED = [r"/offsets/\d+$", r"/commits/\d+$", r"/_delta_log/\d+\.json$", r"/state/.+\.delta$"]


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
def proxy(store: Store, tmp_path: Path) -> Iterator[Proxy]:
    with Proxy(tmp_path, store.endpoint).running() as made:
        yield made


@pytest.fixture
def plant(proxy: Proxy, files: list[Path], tmp_path: Path) -> Plant:
    """In the store; everything has landed, and nothing has run."""
    made = Plant(tmp_path / "plant", store=proxy)
    made.land(files)
    return made


def objects(plant: Plant) -> set[tuple[str, float]]:
    return {(str(entry), written) for entry, _, written in plant.opened().conf.lake.entries()}


def test_a_store_that_loses_refuses_and_cuts_costs_no_row_and_no_lease(proxy: Proxy, plant: Plant, undisturbed: Plant) -> None:
    proxy.set_faults(*LOSES, seconds=0.002)
    assert plant.exit_code("run", "--once") == 0, plant.log_end()
    assert proxy.met() > 50
    assert TAKEN_OVER not in plant.log()
    proxy.set_faults()
    assert_as_undisturbed(plant, undisturbed)


@pytest.mark.parametrize("key", LOGGED)
def test_a_writer_that_is_stopped_until_its_lease_is_taken_writes_nothing_afterwards(
    key: str, proxy: Proxy, plant: Plant, undisturbed: Plant
) -> None:
    proxy.set_faults(Fault("delay", ["PUT", "COPY"], key, seconds=2.0, most=1))
    with plant.running("run", "--once") as sleeper:
        until(lambda: proxy.met() > 0)
        os.killpg(sleeper.pid, signal.SIGSTOP)
        proxy.set_faults()
        assert plant.exit_code("run", "--once") == 0, plant.log_end()
        before = objects(plant)
        os.killpg(sleeper.pid, signal.SIGCONT)
        assert sleeper.wait(SECONDS) == 3, plant.log_end()
    assert TAKEN_OVER in plant.log()
    assert objects(plant) == before
    assert_as_undisturbed(plant, undisturbed)


@pytest.mark.parametrize("key", LOGGED)
def test_a_write_that_arrives_when_another_process_has_the_lake_changes_nothing(
    key: str, proxy: Proxy, plant: Plant, undisturbed: Plant
) -> None:
    proxy.set_faults(Fault("delay", ["PUT", "COPY"], key, seconds=2 * STILL_SECONDS, most=1))
    with plant.running("run", "--once") as sleeper:
        until(lambda: proxy.met() > 0)
        os.killpg(sleeper.pid, signal.SIGSTOP)
        assert plant.exit_code("run", "--once") == 0, plant.log_end()
        until(lambda: any("delay" in request.done_to_it for request in proxy.requests()))
    assert plant.exit_code("run", "--once") == 0, plant.log_end()
    assert_as_undisturbed(plant, undisturbed)


def test_of_two_drivers_that_start_at_once_one_works_and_the_other_is_refused(proxy: Proxy, plant: Plant, undisturbed: Plant) -> None:
    with plant.running("run", "--once") as first, plant.running("run", "--once") as second:
        codes = sorted(process.wait(SECONDS) for process in (first, second))
    assert codes == [0, 3], plant.log_end()
    assert_as_undisturbed(plant, undisturbed)
