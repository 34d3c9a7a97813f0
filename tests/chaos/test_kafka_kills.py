"""Broker and run are killed by turns while a topic, a partition and messages come: each event is accounted for, once, in all layers."""

import random
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from orchestration.connectors.simulator.plan import DEFAULT_START
from tests.broker import Broker
from tests.chaos.kafka_feed import fed_by_kafka, produce
from tests.chaos.plants import Plant
from tests.lakes import event

pytestmark = pytest.mark.processes
DEVICES = ("oven-01", "fridge-01", "press-01", "pump-01")


def messages(count: int) -> Iterator[tuple[str, int, str]]:
    """A reading of each device a tenth of a second; of the second half every other to a topic that the broker makes at the first."""
    for number in range(count):
        reading = event(DEVICES[number % 4], "temperature", 20, DEFAULT_START + timedelta(milliseconds=100 * (number // 4)))
        yield ("storm-1", number % 3, reading) if number < count // 2 or number % 2 else ("storm-2", 0, reading)


@pytest.mark.slow  # test_alert_kills.py has a shorter one
def test_messages_are_accounted_for_once_though_broker_and_run_are_killed(running: Broker, tmp_path: Path, seed: int | None) -> None:
    count, kills = 1_000_000, 3
    chosen, plant = random.Random(seed), fed_by_kafka(tmp_path, running.servers, "storm-[0-9]")
    running.create("storm-1", 3)
    producer = threading.Thread(target=produce, args=(running.servers, messages(count), max(count // 50, 2_000)))
    producer.start()
    for turn in range(kills):
        with plant.running("run"):  # killed at its end
            time.sleep(chosen.uniform(5, 10))
            running.kill()
            time.sleep(1)
            running.start()
            if turn == 0:
                running.grow("storm-1", 4)
            time.sleep(chosen.uniform(2, 6))
    producer.join()
    last = event("oven-01", "temperature", 20, DEFAULT_START + timedelta(days=2))
    running.send("storm-1", [last.encode()], 3)
    assert [plant.exit_code(*command) for command in (("run", "--once"), ("ledger",), ("verify",))] == [0, 0, 0], plant.log_end()
    assert readings_of(plant) == (count + 1,) * 3
    assert DeltaTable(plant.opened().table_path("ops.gaps").local).to_pyarrow_dataset().count_rows() == 0


def readings_of(plant: Plant) -> tuple[int, int, int]:
    """Events, how many of them are different, and those that silver has as readings, in time or late."""
    events = DeltaTable(plant.opened().table_path("bronze.events").local).to_pyarrow_table(columns=["payload"])
    silver = [DeltaTable(plant.opened().table_path(f"silver.{name}").local) for name in ("readings", "late")]
    readings = sum(table.to_pyarrow_dataset().count_rows() for table in silver)
    return len(events), pc.count_distinct(events["payload"]).as_py(), readings
