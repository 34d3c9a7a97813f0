"""The sample of `make faults` in `make test-processes`: bronze alone, in a store that fails, and with a writer that is stopped."""

import os
import signal
from pathlib import Path

import pandas as pd
import pytest

from orchestration.storage.delta import open_table
from tests.chaos.account import IDENTITY
from tests.chaos.plants import SECONDS, Plant, events
from tests.faults.lakes import LOSES, TAKEN_OVER, assert_nothing_written_since, harm, lake_content
from tests.s3_proxy import Fault, Proxy
from tests.waiting import until

pytestmark = pytest.mark.processes
INTAKE = ("run", "--once", "--layer", "bronze")
FIRST_EVENTS = r"/bronze/events/_delta_log/0+1\.json$"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return events(tmp_path_factory.mktemp("events"), files=2, seed=1)


@pytest.fixture
def plant(proxy: Proxy, files: list[Path], tmp_path: Path) -> Plant:
    """In the store; everything has landed, and nothing has run."""
    made = Plant(tmp_path / "plant", store=proxy)
    made.land(files)
    return made


def assert_as_landed(plant: Plant, files: list[Path]) -> None:
    """Every line of every file once."""
    rows: pd.DataFrame = open_table(plant.opened().table_path("bronze.events")).to_pandas()
    assert not rows.duplicated(IDENTITY).any()
    lines = sorted(line.strip() for file in files for line in file.read_bytes().splitlines())
    assert sorted(bytes(payload).strip() for payload in rows["payload"]) == lines


def test_events_come_once_through_a_store_that_loses_refuses_and_cuts(proxy: Proxy, plant: Plant, files: list[Path]) -> None:
    proxy.set_faults(*LOSES)
    assert plant.exit_code(*INTAKE) == 0, plant.log_end()
    assert harm(proxy)["lose"] > 2 and TAKEN_OVER not in plant.log()
    proxy.set_faults()
    assert_as_landed(plant, files)


def test_a_writer_that_is_stopped_for_longer_than_its_lease_writes_nothing_afterwards_and_says_so(
    proxy: Proxy, plant: Plant, files: list[Path]
) -> None:
    proxy.set_faults(Fault("wait", ["PUT"], FIRST_EVENTS, most=1))
    with plant.running(*INTAKE) as sleeper:
        until(lambda: proxy.met() > 0)
        os.killpg(sleeper.pid, signal.SIGSTOP)
        assert plant.exit_code(*INTAKE) == 0, plant.log_end()
        before = lake_content(plant)
        proxy.set_faults()  # what it has sent arrives now
        os.killpg(sleeper.pid, signal.SIGCONT)
        assert sleeper.wait(SECONDS) == 3, plant.log_end()
    assert TAKEN_OVER in plant.log()
    assert_nothing_written_since(before, plant)
    assert_as_landed(plant, files)
