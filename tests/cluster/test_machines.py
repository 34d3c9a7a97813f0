"""`make cluster`: machines of their own, one of which dies in the middle of a batch. The order of the tests is that of the story."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.chaos.plants import TIDEMARK, Plant
from tests.cluster.event_log import DONE, LOST, tasks
from tests.cluster.machines import MASTER, Machine, running
from tests.cluster.sample import READINGS, START, land_batches, on_cluster, readings
from tests.lakes import event, land, table
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.processes, pytest.mark.slow, pytest.mark.spark]
FLOWS = ("silver.readings", "gold.plant")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def head(folder: Path) -> Machine:
    """Runs the master, and Tidemark."""
    return Machine(1, folder, None)


@pytest.fixture(scope="module")
def plant(folder: Path, head: Machine) -> Plant:
    plant = Plant(folder / "plant", [*head.inside, *TIDEMARK])
    on_cluster(plant, MASTER)
    return plant


@pytest.fixture(scope="module")
def workers(folder: Path, head: Machine, plant: Plant) -> Iterator[list[Machine]]:
    both = [Machine(number, folder, plant.lake) for number in (2, 3)]
    with running(head, *both):
        yield both


def done(plant: Plant, *command: str) -> None:
    """Then every event is accounted for, and silver and gold are what bronze gives."""
    for asked in (command, ("ledger",), ("verify",)):
        assert plant.exit_code(*asked) == 0, f"{asked}: {plant.log_end()}"


def test_a_machine_that_is_killed_in_the_middle_of_a_batch_costs_no_row_and_both_do_silver_and_gold(
    plant: Plant, workers: list[Machine]
) -> None:
    land_batches(plant)
    with plant.running("run", "--once") as process:
        until(lambda: process.poll() is not None or any(map(is_reading, workers)))
        victim = next(filter(is_reading, workers))
        victim.kill()
        assert not (plant.lake / "checkpoints/silver.readings/commits/0").exists()
        victim.start()
        process.wait()
        assert process.returncode == 0, plant.log_end()
    land(plant.folder, "3.jsonl", readings(READINGS + 1, 1000))
    done(plant, "run", "--once")
    counts = table(plant.opened().conf, "ops.ledger").sum(numeric_only=True)
    assert counts[["events", "readings", "late", "duplicates", "quarantined"]].tolist() == [READINGS + 1005, READINGS + 1001, 1, 1, 2]
    did = {*tasks(plant.folder / "event-logs")}
    assert (FLOWS[0], victim.address, LOST) in {(task.flow, task.machine, task.end) for task in did}
    assert {(task.flow, task.machine) for task in did if task.end == DONE and task.flow} == {
        (flow, worker.address) for flow in FLOWS for worker in workers
    }


def is_reading(worker: Machine) -> bool:
    """Whether it reads payloads: tasks of no other kind ask Python."""
    return any("pyspark.daemon" in command for command in worker.commands().values())


def test_a_retry_and_a_replay_need_no_folder_of_the_head_but_the_lake(plant: Plant, workers: list[Machine]) -> None:
    metrics = plant.folder / "conf/metrics.yml"
    land(plant.folder, "4.jsonl", [event("oven-01", "temperature", 500, START + timedelta(seconds=3601))])
    done(plant, "run", "--once")
    metrics.write_text(metrics.read_text().replace("maximum: 400", "maximum: 600"))
    assert plant.exit_code("quarantine", "retry", "--rule", "value_is_in_range") == 0, plant.log_end()
    assert plant.exit_code("ledger") == 0, plant.log_end()
    assert sorted(table(plant.opened().conf, "silver.late")["value"]) == [1, 500]
    done(plant, "replay", "--yes")
