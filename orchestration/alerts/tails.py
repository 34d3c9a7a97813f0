"""Events as they arrive, beside whoever brings them to bronze: the end of a spool, and the ends of Kafka's partitions.

A collector knows nothing of it: its spool is read as bronze reads it, so that nothing here can delay an acknowledgement. No group of
consumers is joined: the watch keeps its own position. The first time, a tail begins with what comes next.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from confluent_kafka import KafkaError, Message, TopicPartition

from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import KafkaSettings
from orchestration.connectors.kafka_client import KafkaClient, PartitionId
from orchestration.connectors.sources.kafka import Kafka, events_of
from orchestration.connectors.sources.spool import behind
from orchestration.connectors.sources.spool_records import MARK_BYTES, segments
from orchestration.storage.lake_layout import spool_folder

AT_ONCE = 500
PAUSE_SECONDS, LIST_SECONDS = 0.002, 0.05  # between two looks at a segment, or at Kafka, and at the names of segments
WAIT_SECONDS, TOPICS_SECONDS = 0.05, 30.0  # for a message, and between two looks which partitions there are
Position = dict[str, int]  # the position of a tail: the byte of a segment by its number, or the next offset by topic/partition


class Arrived(NamedTuple):
    """`events`: ARRIVED of bronze/events.py; none where a tail has come to the end of what there is."""

    source: str
    events: pa.Table | None
    position: Position


def beginning(conf: Conf, source: Source) -> Position:
    """Return the position of a tail that has none yet: the end of its spool. Empty for Kafka: its brokers may not answer now."""
    if isinstance(source.transport, KafkaSettings):
        return {}
    files = segments(spool_folder(conf.lake, source.name).local)
    return {str(number): file.stat().st_size for number, file in files.items() if number == max(files)} or {"-1": 0}


def tail(conf: Conf, source: Source, position: Position) -> Iterator[Arrived]:
    """Without end. SourceDownError, or whatever else is wrong, where it cannot be read now; then it can be called again."""
    if isinstance(source.transport, KafkaSettings):
        return _messages(source.name, source.transport, position)
    return _records(source.name, spool_folder(conf.lake, source.name).local, position)


def _records(source: str, folder: Path, position: Position) -> Iterator[Arrived]:
    files, listed, is_end_said = segments(folder), 0.0, False
    ((number, byte),) = ((int(n), at) for n, at in position.items())
    while True:
        file, came = files.get(number), False
        with suppress(FileNotFoundError):  # bronze has it, and has removed it
            if file is not None and file.stat().st_size > max(byte, MARK_BYTES):
                for events, end in behind(source, file, max(byte, MARK_BYTES), AT_ONCE):
                    came, byte = True, end
                    yield Arrived(source, events, {str(number): byte})
        if not came:
            time.sleep(PAUSE_SECONDS)
            if time.monotonic() > listed + LIST_SECONDS:
                # The next segment is listed first, and the last one then read to its end: nobody writes to it any more.
                following = min((n for n in files if n > number), default=None)
                files, listed = segments(folder), time.monotonic()
                if following is not None:
                    number, byte, is_end_said = following, 0, False
                elif not is_end_said and max(files, default=-1) <= number:
                    is_end_said = True
                    yield Arrived(source, None, {str(number): byte})


def _messages(source: str, transport: KafkaSettings, position: Position) -> Iterator[Arrived]:
    kafka, is_first, position = Kafka(source, transport, 0), not position, dict(position)
    assigned: dict[str, PartitionId] = {}
    while True:
        there = {f"{name}/{number}": (name, number) for name, topic in kafka.there({}).items() for number in topic.partitions}
        if there != assigned:
            first, last = kafka.client.offsets(there.values(), "earliest"), kafka.client.offsets(there.values(), "latest")
            for key, partition_id in there.items():  # what is new, or gone, begins with the oldest that there is
                begin = position.get(key, last[partition_id] if is_first else first[partition_id])
                position[key] = begin if first[partition_id] <= begin <= last[partition_id] else first[partition_id]
            assigned, is_first = there, False
            begins = [TopicPartition(*partition_id, position[key]) for key, partition_id in there.items()]
            kafka.client.ask(partial(kafka.client.reader.assign, begins))
        left, next_look = {*there}, time.monotonic() + TOPICS_SECONDS
        while time.monotonic() < next_look and assigned:
            good = list[Message]()
            for message in _polled(kafka.client):
                key, error = f"{message.topic()}/{message.partition()}", message.error()
                if error is None:
                    good.append(message)
                    position[key] = (message.offset() or 0) + 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(key)
                elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                    assigned = {}
            if good:
                yield Arrived(source, events_of(source, good)[0], dict(position))
            if not left:
                left = {""}  # once is enough
                yield Arrived(source, None, dict(position))


def _polled(client: KafkaClient) -> list[Message]:
    """Poll for messages; after a while without any, return nothing."""
    first = client.ask(partial(client.reader.poll, WAIT_SECONDS))
    if first is None:
        return []
    time.sleep(PAUSE_SECONDS)  # judging one message costs nearly what judging fifty does
    return [first, *client.ask(partial(client.reader.consume, AT_ONCE, 0))]
