"""A plant that is fed by a broker: messages come at a rate, each once though the broker dies."""

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from confluent_kafka import Producer

from tests.chaos.plants import Plant

SOURCES = """
sources:
  fleet:
    kafka: {{servers: "{servers}", subscribe_pattern: "{topics}", options: {{reconnect.backoff.max.ms: "500"}}}}
    format: json
    device: {{field: device}}
    time: {{field: ts}}
    metric: {{field: metric}}
    value: {{field: value}}
"""


def produce(servers: str, messages: Iterable[tuple[str, int, str]], a_second: int) -> None:
    """Topic, partition and value of each; returns when the broker has them."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0, "reconnect.backoff.max.ms": 500})
    begin = time.monotonic()
    for number, (topic, partition, value) in enumerate(messages):
        while True:
            with suppress(BufferError):
                producer.produce(topic, value, partition=partition)
                break
            producer.poll(0.1)
        if number % 500 == 0:
            producer.poll(max(0.0, begin + number / a_second - time.monotonic()))
    assert producer.flush(120) == 0


def fed_by_kafka(folder: Path, servers: str, topics: str) -> Plant:
    """`topics`: a pattern. Batches are small, so that a kill comes in the middle of some.

    The broker's pauses make no event late for silver.
    """
    plant = Plant(folder)
    (folder / "conf/sources.yml").write_text(SOURCES.format(servers=servers, topics=topics))
    pipeline = folder / "conf/pipeline.yml"
    pipeline.write_text(pipeline.read_text().replace("max_batch_bytes: 1048576", "max_batch_bytes: 8388608"))
    return plant
