"""`make cluster`: machines that share an object store and nothing else. The order of the tests is that of the story."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from tests.chaos.plants import TIDEMARK, Plant
from tests.cluster.event_log import DONE, LOST, Task, tasks
from tests.cluster.machines import HEAD, MASTER, Machine, joined
from tests.cluster.sample import IMPATIENT, KEYS, READINGS, START, batches, in_store, on_cluster, readings
from tests.lakes import event, table
from tests.object_store import Store
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.processes, pytest.mark.slow, pytest.mark.spark]
FLOWS = ("silver.readings", "gold.plant")
"""What tasks of both machines have to do."""
MORE = 1_000
"""Readings of each batch after the first two."""


class Cluster:
    """Two machines with workers, and two that can run Tidemark: each of those has a plant, whose conf names the one lake in the store."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        head, *others = (Machine(number, folder) for number in range(HEAD, HEAD + 5))
        self.workers, self.hosts = others[:2], others[2:]
        stack.enter_context(joined(head, *others))
        (head.folder / "store").mkdir()
        self.store = stack.enter_context(Store(head.folder / "store", head.address, head.inside).running())
        for machine in (head, *self.workers):
            machine.start()
        self._bucket, self._landed, self._more = self.store.bucket(), 0, 0
        self.plants = [self._plant(machine) for machine in self.hosts]

    def _plant(self, machine: Machine) -> Plant:
        plant = Plant(machine.folder / "plant", [*machine.inside, *TIDEMARK])
        on_cluster(plant, MASTER, IMPATIENT)
        in_store(plant, self.store, self._bucket)
        return plant

    def land(self, *batches: list[str]) -> None:
        for lines in batches:
            self._landed += 1
            self.store.put(self._bucket, {f"landing/{self._landed}.jsonl": "".join(f"{line}\n" for line in lines).encode()})

    def land_more(self) -> None:
        """The next MORE readings."""
        self.land(readings(READINGS + 1 + self._more * MORE, MORE))
        self._more += 1

    def counts(self) -> list[int]:
        """What became of events: how many there are, readings, late, duplicates, quarantined."""
        rows = table(self.plants[0].opened().conf, "ops.ledger").sum(numeric_only=True)
        return [int(rows[name]) for name in ("events", "readings", "late", "duplicates", "quarantined")]

    def tasks(self) -> list[Task]:
        """Tasks of all runs, whoever was the driver."""
        return [task for plant in self.plants for task in tasks(plant.folder / "event-logs")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as stack:
        variables = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in KEYS.items():
            variables.setenv(name, value)
        yield Cluster(tmp_path_factory.mktemp("cluster"), stack)


def done(plant: Plant, *command: str) -> None:
    """Then every event is accounted for, and silver and gold are what bronze gives."""
    for asked in (command, ("ledger",), ("verify",)):
        assert plant.exit_code(*asked) == 0, f"{asked}: {plant.log_end()}"


def is_reading(machine: Machine) -> bool:
    """Whether it reads payloads: tasks of no other kind ask Python."""
    return any("pyspark.daemon" in command for command in machine.commands().values())


def test_a_machine_that_is_killed_in_the_middle_of_a_batch_costs_no_row(cluster: Cluster) -> None:
    plant, victim = cluster.plants[0], cluster.workers[0]
    cluster.land(*batches())
    with plant.running("run", "--once") as process:
        until(lambda: process.poll() is not None or is_reading(victim))
        victim.kill()
        victim.start()
        process.wait()
        assert process.returncode == 0, plant.log_end()
    cluster.land_more()
    done(plant, "run", "--once")
    assert cluster.counts() == [READINGS + 5 + MORE, READINGS + 1 + MORE, 1, 1, 2]
    assert (FLOWS[0], victim.address, LOST) in {(task.flow, task.machine, task.end) for task in cluster.tasks()}


def test_a_link_that_is_down_for_30_s_costs_no_row(cluster: Cluster) -> None:
    plant, victim = cluster.plants[0], cluster.workers[1]
    cluster.land_more()
    with plant.running("run", "--once") as process:
        until(lambda: process.poll() is not None or is_reading(victim))
        with victim.cut_off():
            time.sleep(30)
        process.wait()
        assert process.returncode == 0, plant.log_end()
    done(plant, "run", "--once")
    assert cluster.counts()[:2] == [READINGS + 5 + 2 * MORE, READINGS + 1 + 2 * MORE]


def test_a_driver_whose_machine_dies_is_followed_by_one_on_another_that_has_nothing_of_it(cluster: Cluster) -> None:
    cluster.land_more()
    with cluster.plants[0].running("run", "--once") as process:
        until(lambda: process.poll() is not None or any(map(is_reading, cluster.workers)))
        assert process.poll() is None
        cluster.hosts[0].kill()
    dead_at, plant = time.monotonic(), cluster.plants[1]
    with plant.running("run", "--once") as process:
        until(lambda: "{" in plant.log_end(), plant.log_end)
        print(f"the driver on the other machine committed after {time.monotonic() - dead_at:.0f} s")
        process.wait()
        assert process.returncode == 0, plant.log_end()
    cluster.land_more()
    done(plant, "run", "--once")
    assert cluster.counts() == [READINGS + 5 + 4 * MORE, READINGS + 1 + 4 * MORE, 1, 1, 2]


def test_a_retry_and_a_replay_need_no_folder_of_a_machine(cluster: Cluster) -> None:
    plant = cluster.plants[1]
    metrics = plant.folder / "conf/metrics.yml"
    cluster.land([event("oven-01", "temperature", 500, START + timedelta(seconds=3601))])
    cluster.land_more()
    done(plant, "run", "--once")
    metrics.write_text(metrics.read_text().replace("maximum: 400", "maximum: 600"))
    assert plant.exit_code("quarantine", "retry", "--rule", "value_is_in_range") == 0, plant.log_end()
    assert plant.exit_code("ledger") == 0, plant.log_end()
    assert sorted(table(plant.opened().conf, "silver.late")["value"]) == [1, 500]
    done(plant, "replay", "--yes")


def test_both_machines_did_tasks_of_every_step(cluster: Cluster) -> None:
    did = Counter((task.flow, task.machine) for task in cluster.tasks() if task.end == DONE)
    for machine in (*cluster.workers, *cluster.hosts):
        print(f"{machine.address} received {machine.received():,} bytes")
    assert {*did} >= {(flow, machine.address) for flow in FLOWS for machine in cluster.workers}
