"""One plant that is stopped, refused and killed in a phase of each layer, one after the other: each run mends what the one before left.

`make chaos` does rounds of all phases, each in a plant of its own. The order of the tests is that of the story.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.chaos.account import assert_as_undisturbed
from tests.chaos.kill import kill
from tests.chaos.phases import PHASES, Phase
from tests.chaos.plants import SECONDS, Plant, events
from tests.lakes import run

pytestmark = [pytest.mark.processes, pytest.mark.spark]
SAMPLES = [(phase, phase.sample) for phase in PHASES if phase.sample is not None]
TRIES = 5
"""A busy machine wakes the killer late."""
LANDED = 8
"""Files before the first kill; each is a batch."""
UP_TO_SILVER = ("--layer", "bronze", "--layer", "silver")
"""Bronze is done before a signal comes."""


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Plant:
    """The one that is disturbed."""
    return Plant(tmp_path_factory.mktemp("plants") / "disturbed")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, seed: int | None) -> list[Path]:
    """More than are needed: a kill that misses its phase is tried again."""
    return events(tmp_path_factory.mktemp("events"), files=48, seed=seed or 1)


@pytest.fixture(scope="module")
def waiting(files: list[Path]) -> Iterator[Path]:
    """Those that have not landed yet, in order."""
    return iter(files)


def test_a_second_run_is_refused_and_sigterm_and_ctrl_c_end_the_first_after_its_batch(plant: Plant, waiting: Iterator[Path]) -> None:
    """Signals go to the whole process group, as systemd and a terminal send them."""
    plant.land([*islice(waiting, LANDED)])
    with plant.running("run", "--once", *UP_TO_SILVER) as first:
        await_while_it_runs(first, (plant.lake / "writer.lock").exists)
        refused = plant.refused()
        assert refused.startswith(f"tidemark: process {first.pid} on ")
        assert refused.endswith(f" writes the lake at {plant.lake}; stop it first, or wait for its end.\n")
        stop_after_a_batch(plant, first, signal.SIGTERM)
    with plant.running("run", "--once", *UP_TO_SILVER) as second:
        stop_after_a_batch(plant, second, signal.SIGINT)


@pytest.mark.parametrize("program", ["-version", "SparkSubmit"])
def test_a_run_that_is_told_to_end_while_java_starts_ends(plant: Plant, program: str) -> None:
    with plant.running("run", *UP_TO_SILVER) as starting:
        await_while_it_runs(starting, lambda: has_child(starting.pid, program))
        os.killpg(starting.pid, signal.SIGTERM)
        assert starting.wait(SECONDS) == 0, plant.log_end()


def has_child(pid: int, program: str) -> bool:
    """Whether a process has a child with this in its command line."""
    with suppress(psutil.Error):  # a child that has ended meanwhile
        return any(program in " ".join(child.cmdline()) for child in psutil.Process(pid).children())
    return False


def stop_after_a_batch(plant: Plant, process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """The process ends well, and before all is done."""
    log = plant.opened().table_path("silver.readings") / "_delta_log"
    before = commits(log.local)
    await_while_it_runs(process, lambda: commits(log.local) > before)
    os.killpg(process.pid, number)
    assert process.wait(SECONDS) == 0, plant.log_end()
    assert before < commits(log.local) < LANDED


def commits(log: Path) -> int:
    """Of a table, after the one that made it."""
    return max(0, len(list(log.glob("*.json"))) - 1)


def await_while_it_runs(process: "subprocess.Popen[bytes]", is_time: Callable[[], bool]) -> None:
    """Wait for the moment."""
    while process.poll() is None and not is_time():
        time.sleep(0.002)


@pytest.mark.parametrize(("phase", "flags"), SAMPLES, ids=[phase.name for phase, _ in SAMPLES])
def test_a_run_dies(phase: Phase, flags: tuple[str, ...], plant: Plant, waiting: Iterator[Path], seed: int | None) -> None:
    """The phase is passed once, where the run mends what the one before left; it dies in the next."""
    plant.land([*islice(waiting, 1)])
    killed = kill(plant, phase, 2, flags)
    for _ in range(TRIES):  # the phase was over before the kill, or there was nothing to mend
        if not killed.is_hit:
            plant.land([*islice(waiting, 2)])
            killed = kill(plant, phase)
    print(f"seed {seed or 1}: {killed}")
    assert killed.is_hit, plant.log_end()


def test_no_kill_has_lost_or_doubled_a_row(spark: SparkSession, plant: Plant, files: list[Path], tmp_path: Path) -> None:
    run(plant.opened().conf, spark)
    undisturbed = Plant(tmp_path / "undisturbed")
    undisturbed.land([file for file in files if (plant.folder / "landing" / file.name).exists()])
    run(undisturbed.opened().conf, spark)
    assert_as_undisturbed(plant, undisturbed)
