"""`make cluster`: machines that share an object store and nothing else. They go on with one lake; only the last test needs those before."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta

import pytest
import yaml

from tests.chaos.plants import TIDEMARK, Plant
from tests.cluster.cluster import Cluster
from tests.cluster.event_log import DONE, LOST, Task, tasks
from tests.cluster.machines import MASTER, Machine
from tests.cluster.sample import IMPATIENT, KEYS, READINGS, START, batches, change, in_store, on_cluster, readings
from tests.lakes import event, table
from tests.object_store import client_at
from tests.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.processes, pytest.mark.slow, pytest.mark.spark]
STEPS = ("silver.readings", "gold.plant", "gold.yard", "gold.amendments", "maintenance")
"""What tasks of both machines have to do."""
YARD = {"metrics": ["temperature"], "stream": "yard", "lateness_seconds": 60, "vector": {"entity": "device", "max_fill_seconds": 3600}}
MORE = 1_000
"""Readings of each batch after the first two."""
TAKEN_OVER_SECONDS = 60


class Plants:
    """The one lake in the store of a cluster, whose conf each machine has that can run Tidemark."""

    def __init__(self, cluster: Cluster) -> None:
        self.workers, self.hosts = cluster.workers, cluster.hosts
        self._cluster, self._landed, self._more = cluster, 0, 0
        self.plants = [self._plant(machine) for machine in self.hosts]
        self.land(*batches())

    def _plant(self, machine: Machine) -> Plant:
        plant = Plant(machine.folder / "plant", [*machine.inside, *TIDEMARK])
        conf = plant.folder / "conf"
        on_cluster(plant, MASTER, IMPATIENT)
        in_store(conf, self._cluster.proxy.endpoint, self._cluster.bucket)
        change(conf / "pipeline.yml", {"maintenance": {"every_seconds": 1}})
        change(conf / "groups.yml", {"groups": yaml.safe_load((conf / "groups.yml").read_text())["groups"] | {"yard": YARD}})
        devices = yaml.safe_load((conf / "devices.yml").read_text())["devices"].items()
        change(conf / "devices.yml", {"devices": {name: {"groups": [*device["groups"], "yard"]} for name, device in devices}})
        return plant

    def land(self, *batches: list[str]) -> None:
        for lines in batches:
            self._landed += 1
            self._cluster.land(f"{self._landed}.jsonl", "".join(f"{line}\n" for line in lines).encode())

    def land_more(self) -> None:
        """The next MORE readings."""
        self.land(readings(READINGS + 1 + self._more * MORE, MORE))
        self._more += 1

    def refuse_other_counts(self) -> None:
        """All that landed is among the events, and became what it has to."""
        rows, more = table(self.plants[0].opened().conf, "ops.ledger").sum(numeric_only=True), self._more * MORE
        counts = [int(rows[name]) for name in ("events", "readings", "late", "duplicates", "quarantined")]
        assert counts == [READINGS + 5 + more, READINGS + 1 + more, 1, 1, 2]

    def lease(self) -> int:
        """The token of who writes the lake."""
        lease = client_at(self._cluster.proxy.endpoint).get_object(Bucket=self._cluster.bucket, Key="lake/writer.json")
        return int(json.loads(lease["Body"].read())["token"])

    def tasks(self) -> list[Task]:
        """Tasks of all runs, whoever was the driver."""
        return [task for plant in self.plants for task in tasks(plant.folder / "event-logs")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plants]:
    with ExitStack() as stack:
        variables = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in KEYS.items():
            variables.setenv(name, value)
        yield Plants(Cluster(tmp_path_factory.mktemp("cluster"), stack))


def done(plant: Plant, *command: str) -> None:
    """Then every event is accounted for, and silver and gold are what bronze gives."""
    for asked in (command, ("ledger",), ("verify",)):
        assert plant.exit_code(*asked) == 0, f"{asked}: {plant.log_end()}"


def is_reading(machine: Machine) -> bool:
    """Whether it reads payloads: tasks of no other kind ask Python."""
    return any("pyspark.daemon" in command for command in machine.commands().values())


def test_a_machine_that_is_killed_in_the_middle_of_a_batch_costs_no_row(cluster: Plants) -> None:
    plant, victim = cluster.plants[0], cluster.workers[0]
    with plant.running("run", "--once") as process:
        until(lambda: process.poll() is not None or is_reading(victim))
        victim.kill()
        victim.start()
        process.wait()
        assert process.returncode == 0, plant.log_end()
    cluster.land_more()
    done(plant, "run", "--once")
    cluster.refuse_other_counts()
    assert (STEPS[0], victim.address, LOST) in {(task.flow, task.machine, task.end) for task in cluster.tasks()}


def test_a_link_that_is_down_for_30_s_costs_no_row(cluster: Plants) -> None:
    plant, victim = cluster.plants[0], cluster.workers[1]
    cluster.land_more()
    with plant.running("run", "--once") as process:
        until(lambda: process.poll() is not None or is_reading(victim))
        with victim.cut_off():
            time.sleep(30)
        process.wait()
        assert process.returncode == 0, plant.log_end()
    done(plant, "run", "--once")
    cluster.refuse_other_counts()


def test_a_driver_whose_machine_dies_is_followed_by_one_on_another_that_has_nothing_of_it(cluster: Plants) -> None:
    cluster.land_more()
    with cluster.plants[0].running("run", "--once") as process:
        until(lambda: process.poll() is not None or any(map(is_reading, cluster.workers)))
        assert process.poll() is None
        cluster.hosts[0].kill()
    dead, dead_at, plant = cluster.lease(), time.monotonic(), cluster.plants[1]
    with plant.running("run", "--once") as process:
        until(lambda: cluster.lease() != dead, plant.log_end)
        taken_over_after = time.monotonic() - dead_at
        until(lambda: "{" in plant.log_end(), plant.log_end)
        first_batch_after = time.monotonic() - dead_at
        process.wait()
        assert process.returncode == 0, plant.log_end()
    print(f"the driver on the other machine had the lake after {taken_over_after:.0f} s, and did a batch after {first_batch_after:.0f} s")
    assert first_batch_after < TAKEN_OVER_SECONDS
    cluster.land_more()
    done(plant, "run", "--once")
    cluster.refuse_other_counts()


def test_a_retry_and_a_replay_need_no_folder_of_a_machine(cluster: Plants) -> None:
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


def test_both_machines_did_tasks_of_every_step(cluster: Plants) -> None:
    did = Counter((task.flow, task.machine) for task in cluster.tasks() if task.end == DONE)
    for (step, machine), count in sorted(did.items()):
        print(f"{machine} did {count} tasks of {step or 'nothing that has a name'}")
    assert {*did} >= {(step, machine.address) for step in STEPS for machine in cluster.workers}
