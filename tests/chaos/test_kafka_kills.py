"""Broker and reader of Kafka are killed by turns while messages come: each is in bronze once."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow.compute as pc
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from tests.broker import Broker, die_with_parent

MESSAGES = 1_000_000
READER = """
import sys, time
from contextlib import nullcontext
from pathlib import Path
from orchestration.conf.model import Source
from orchestration.conf.transports import KafkaTopics
from orchestration.connectors.sources import kafka, kafka_client
from orchestration.connectors.sources.all import sources
from orchestration.connectors.sources.source import SourceDownError
from orchestration.jobs.bronze import hand_over, look
from orchestration.storage.tables import LakeStore, ensure
from tests.lakes import SHAPE, conf

folder, servers = Path(sys.argv[1]), sys.argv[2]
kafka.MAX_MESSAGES, kafka_client.PATIENCE_SECONDS = 20_000, 1.5
lake = LakeStore(conf(folder, sources={"fleet": Source("fleet", SHAPE, KafkaTopics(servers, subscribe_pattern="storm-[0-9]"))}))
ensure(lake.tables["bronze.events"])
(source,) = sources(lake.conf)
while True:
    all_has_come = (folder / "all-has-come").exists()
    try:
        if ready := look(lake, source):
            hand_over(lake, [ready], nullcontext())
        elif all_has_come:
            break
    except SourceDownError:
        pass
    time.sleep(0.05)
"""


@contextmanager
def reader(folder: Path, servers: str) -> Iterator["Reader"]:
    """A process that brings the topics to bronze; none is left behind it."""
    of_test = Reader(folder, servers)
    try:
        yield of_test
    finally:
        of_test.process.kill()
        of_test.process.wait()


class Reader:
    """Started at once."""

    def __init__(self, folder: Path, servers: str) -> None:
        self._command = [sys.executable, "-c", READER, str(folder), servers]
        self.process = self._started()

    def restart(self) -> None:
        """As after `kill -9`."""
        self.process.kill()
        self.process.wait()
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.Popen(self._command, env=environment, preexec_fn=die_with_parent)  # noqa: PLW1509


def produce(servers: str) -> None:
    """Numbers, each once, though the broker dies; the second half to two topics, one of which comes later. It takes half a minute."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0, "reconnect.backoff.max.ms": 500})
    for number in range(MESSAGES):
        topic = "storm-1" if number < MESSAGES // 2 or number % 2 else "storm-2"
        while True:
            with suppress(BufferError):
                producer.produce(topic, b"%d" % number, partition=number % 3 if topic == "storm-1" else 0)
                break
            producer.poll(0.1)
        if number % 500 == 0:
            producer.poll(0)
            time.sleep(0.012)
    assert producer.flush(120) == 0


@pytest.mark.slow
def test_a_million_messages_are_in_bronze_once_though_broker_and_reader_are_killed_three_times_each(
    running: Broker, tmp_path: Path, seed: int | None
) -> None:
    chosen = random.Random(seed)
    running.create("storm-1", 3)
    with reader(tmp_path, running.servers) as of_test:
        producer = threading.Thread(target=produce, args=(running.servers,))
        producer.start()
        for turn in range(3):
            time.sleep(chosen.uniform(1, 4))
            running.kill()
            time.sleep(1)
            running.start()
            if turn == 0:
                running.create("storm-2")
                running.grow("storm-1", 4)
            time.sleep(chosen.uniform(1, 4))
            of_test.restart()
        producer.join()
        running.send("storm-1", [b"%d" % MESSAGES], 3)
        (tmp_path / "all-has-come").touch()
        assert of_test.process.wait(120) == 0
    events = DeltaTable(tmp_path / "lake/bronze/events").to_pyarrow_table(columns=["payload", "position"])
    assert (len(events), *(pc.count_distinct(events[name]).as_py() for name in events.column_names)) == (MESSAGES + 1,) * 3
    assert not (tmp_path / "lake/ops/gaps").exists()
