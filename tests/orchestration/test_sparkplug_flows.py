"""Sparkplug B by alias through all layers: a real broker, two edge nodes, and kills of the broker and of the collector."""

import io
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from orchestration.audit.verify.check import verify
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.conf.load import load
from orchestration.conf.model import Conf, Engine
from orchestration.connectors.sources.births import devices_down
from orchestration.connectors.sparkplug_nodes import Nodes, address_of
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.jobs.account.retry import Chosen
from orchestration.jobs.gold.amendments import NAME
from orchestration.supervisor.run import retry_quarantine
from silver.decoders.sparkplug_b import Payload
from tests.collectors import Collector, collecting, spooled, write_conf
from tests.edge_node import EdgeNode
from tests.lakes import replay, run, table
from tests.mosquitto import SAVING, Mosquitto
from tests.orchestration.connectors.collector.test_mqtt import UP
from tests.rows import at
from tests.waiting import until

pytestmark = pytest.mark.mosquitto
START = at("2026-01-05T00:00:00")
DEVICES = {
    "edge-1": {"press-01": ("Temperature", "Pressure"), "press-02": ("Temperature", "Pressure")},
    "edge-2": {"oven-01": ("Pressure", "Temperature")},
}
SPARKPLUG = "format: sparkplug_b, device: {topic: 5}, each: metrics, time: {field: each.timestamp, format: epoch_ms}"
SPARKPLUG += ", metric: {field: each.name}, value: {field: each.value}, attributes: {historical: each.is_historical}"
BARE = "device: {topic: 2}, metric: {topic: 3}, decode: text, time: {arrival: true}, value: {field: value}"


class Plant:
    """A broker, two nodes, and the values that they have sent."""

    def __init__(self, folder: Path) -> None:
        self.broker = Mosquitto(folder / "broker", *SAVING)
        self.nodes = {name: EdgeNode(name, self.broker.port, devices) for name, devices in DEVICES.items()}
        self.sent, self.folder, self._numbers = set[tuple[str, str, float]](), folder, count(1)
        source = f"mqtt: {{broker: '{self.broker.address}', topics: ['spBv1.0/#']}}, {SPARKPLUG}"
        self.conf = write_conf(folder, edge=source, hall=f"mqtt: {{broker: '{self.broker.address}', topics: ['plant/+/+']}}, {BARE}")
        metric = "{unit: degC, aggregation: average, step_seconds: 600}"
        (self.conf / "metrics.yml").write_text(f"metrics: {{Temperature: {metric}, Pressure: {metric}, temperature: {metric}}}\n")
        devices = [device for of_node in DEVICES.values() for device in of_node]
        (self.conf / "devices.yml").write_text(f"devices: {{{', '.join(f'{one}: {{groups: [kitchen]}}' for one in (*devices, 'oven'))}}}\n")

    def measure(self, node: str, *, is_historical: bool = False) -> None:
        """A negative whole number and a fraction of each device."""
        for device in DEVICES[node]:
            n = next(self._numbers)
            values = [("Temperature", float(-n), START + timedelta(seconds=n)), ("Pressure", n + 0.5, START + timedelta(seconds=n))]
            self.nodes[node].data(device, values, is_historical=is_historical)
            self.sent |= {(device, name, value) for name, value, _ in values}

    def arrived(self) -> int:
        """How many messages of data are in the spool."""
        return len({payload for position, payload in spooled(self.folder, "edge") if "/DDATA/" in position})

    def until_arrived(self) -> None:
        until(lambda: self.arrived() == len(self.sent) // 2)

    def waits(self) -> bool:
        """Whether data in the spool wait for a birth."""
        nodes = Nodes(is_strict=True)
        for position, payload in spooled(self.folder, "edge"):
            if address := address_of(position.rsplit("/", 2)[0]):
                nodes.read(address, Payload.FromString(payload), position, 0)
        return any(node.waiting for node in nodes.nodes.values())

    def made(self) -> Conf:
        return replace(load(self.conf), engine=Engine(shuffle_partitions=2, trigger_seconds=0.2))


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    made = Plant(tmp_path)
    with made.broker.running():
        yield made
        for node in made.nodes.values():
            node.end(is_said=False)


@contextmanager
def connected(plant: Plant) -> Iterator[Collector]:
    with collecting(plant.conf) as collector:
        for _ in ("edge", "hall"):
            collector.says(UP)
        yield collector


def readings(conf: Conf) -> list[tuple[str, str, float]]:
    silver = table(conf, "silver.readings")
    return sorted(zip(silver.device_id, silver.metric, silver.value, strict=True))


def retried(conf: Conf, spark: SparkSession) -> None:
    with Progress([NAME], Console(file=io.StringIO())) as progress:
        retry_quarantine(Lake(conf, spark), Chosen(), progress)


def test_values_by_alias_are_named_by_the_birth_before_them(spark: SparkSession, plant: Plant) -> None:
    with connected(plant):
        for node in plant.nodes.values():
            node.begin()
        for name in plant.nodes:
            plant.measure(name)
            plant.measure(name, is_historical=True)
        node = plant.nodes["edge-1"]
        node.kill_device("press-02", at("2026-01-05T00:03:20"))
        node.devices["press-02"] = ("Pressure", "Temperature")  # aliases change their places
        node.bear_device("press-02")
        plant.measure("edge-1")
        node.kill_device("press-02", at("2026-01-05T00:05:00"))
        plant.broker.publish([("plant/oven/temperature", text) for text in (b"68.5", b"1.8 bar", b"")])
        plant.until_arrived()
        until(lambda: len(spooled(plant.folder, "hall")) == 3)
    assert [node.rebirths for node in plant.nodes.values()] == [0, 0]
    conf = plant.made()
    run(conf, spark)
    assert readings(conf) == sorted({*plant.sent, ("oven", "temperature", 68.5)})
    attributes = map(dict, table(conf, "silver.readings").attributes.dropna())
    assert sum(of_reading.get("historical") == "true" for of_reading in attributes) == 6
    assert devices_down(conf) == {"press-02": at("2026-01-05T00:05:00")}
    assert [outcome.first for outcome in verify(latest_snapshot(conf), conf).outcomes if outcome.differences] == []


@pytest.mark.processes
def test_each_value_is_named_once_whatever_is_killed_and_after_a_replay_too(spark: SparkSession, plant: Plant) -> None:
    with connected(plant) as collector:
        for name, node in plant.nodes.items():
            node.begin()
            plant.measure(name)
        plant.until_arrived()
        assert collector.kill() == -signal.SIGKILL

    # While nobody listens, a node begins another session, in which aliases have other meanings.
    node = plant.nodes["edge-2"]
    node.end()
    node.devices["oven-01"] = ("Temperature", "Pressure")
    node.begin()
    for name in plant.nodes:
        plant.measure(name)
    with connected(plant):
        until(lambda: all(node.rebirths == 1 for node in plant.nodes.values()))
        for name in plant.nodes:
            plant.measure(name)
        plant.until_arrived()
        plant.broker.kill()
        for node in plant.nodes.values():
            node.end(is_said=False)
        plant.broker.start()
        for name, node in plant.nodes.items():
            node.begin()
            plant.measure(name)
        plant.until_arrived()
        until(lambda: not plant.waits())
        for name in plant.nodes:
            plant.measure(name)
        plant.until_arrived()
    conf = plant.made()
    run(conf, spark)
    waiting = sum("metric_is_present" in rules for rules in table(conf, "silver.quarantine").broken_rules)
    assert 0 < len(plant.sent - {*readings(conf)}) <= waiting  # a broker that was killed may send a message again
    retried(conf, spark)
    replay(conf, spark)
    assert readings(conf) == sorted(plant.sent)
    assert [outcome.first for outcome in verify(latest_snapshot(conf), conf).outcomes if outcome.differences] == []
