"""Messages that come to a broker at a rate, each once though the broker dies."""

import time
from collections.abc import Iterable
from contextlib import suppress

from confluent_kafka import Producer


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
