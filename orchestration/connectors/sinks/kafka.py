"""Rows as messages of a Kafka topic, under their key: exactly once, or at least once without transactions.

Who keeps the newest message of each key has the table of the lake at a snapshot: an amendment is a later message of its key, and a row that
went is one without a value. A batch is one transaction, and the position is in it (kafka_producer.py). Each batch renews the position;
brokers forget it after `offsets.retention.minutes` without one, a week by default, and then all rows come again.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict

import pyarrow as pa
from confluent_kafka import Message

from orchestration.conf.sink_settings import TopicSettings
from orchestration.connectors.kafka_client import HEADERS_OF, KafkaClient, Range
from orchestration.connectors.sinks.json_text import json_rows
from orchestration.connectors.sinks.kafka_messages import writer_of
from orchestration.connectors.sinks.kafka_producer import Headers, KafkaProducer
from orchestration.connectors.sinks.sink import FILE, Batch, Sink
from orchestration.connectors.sinks.sink_states import SinkPosition
from orchestration.errors import TidemarkError

OWNER = "sink"  # the header by which a sink knows its own messages


class KafkaSink(Sink):
    """A producer for each batch."""

    def __init__(self, owner: str, settings: TopicSettings) -> None:
        """`owner`: pipeline and sink, the name of its transactions and of their group."""
        self._client = KafkaClient("it cannot be sent to", FILE, settings.servers, {**settings.options, "group.id": owner})
        self._owner, self._settings, self._topic = owner, settings, settings.topic
        self._begun: KafkaProducer | None = None

    def last(self, remembered: SinkPosition | None) -> SinkPosition | None:
        """Read the position from the topic, once nobody else can move it. Without transactions the lake remembers it."""
        if not self._settings.transactional:
            return remembered
        topic_id, _ = self._described()
        self._begun = self._producer()
        note = json.loads(self._begun.note() or "{}")
        return SinkPosition(**note["position"]) if note.get("topic_id") == topic_id else None

    def write(self, batch: Batch, rows: Iterator[pa.Table]) -> bool:
        """All rows, and a message without a value for each key of the topic that is not among those of a complete batch."""
        topic_id, partitions = self._described()
        producer, self._begun = self._begun or self._producer(), None
        key, values = batch.key or self._settings.key, writer_of(self._settings, batch)
        facts = {"table": batch.table, "snapshot_id": str(batch.position.snapshot_id), "batch": batch.number}
        headers: Headers = [(OWNER, self._owner), *facts.items()]
        gone = self._keys(partitions) if batch.is_complete else set()
        with producer.transaction(json.dumps({"topic_id": topic_id, "position": asdict(batch.position)})):
            for chunk in rows:
                for name, value in zip(json_rows(chunk, key), values(chunk), strict=True):
                    producer.send(name, value, headers)
                    gone.discard(name)
            for name in gone:
                producer.send(name, None, headers)
        return True

    def _keys(self, partitions: Sequence[int]) -> set[bytes]:
        """Collect the keys of this sink's messages that a reader would keep now. They have to fit in memory."""
        partition_ids, kept = [(self._topic, partition) for partition in partitions], set[bytes]()
        first, last = self._client.offsets(partition_ids, "earliest"), self._client.offsets(partition_ids, "latest")
        if self._client.offsets(partition_ids, "written") != last:
            raise TidemarkError(
                f"another producer has an open transaction in topic {self._topic}; its messages can be read when that transaction ends."
            )
        ranges = [Range(*partition_id, first[partition_id], end) for partition_id, end in last.items() if first[partition_id] < end]
        with closing(self._client.messages(ranges)) as pieces:
            for message in (message for messages in pieces for message in messages):
                if _owner(message) == self._owner.encode():
                    (kept.discard if message.value() is None else kept.add)(message.key() or b"")
        return kept

    def _described(self) -> tuple[str, Sequence[int]]:
        """Id and partitions; TidemarkError where nobody has made the topic."""
        described = self._client.describe([self._topic])
        if self._topic not in described:
            make = f"kafka-topics.sh --create --topic {self._topic} --config cleanup.policy=compact"
            raise TidemarkError(f"topic {self._topic} is not there; make it (`{make}`), or correct kafka.topic in pipeline.yml.")
        return described[self._topic].topic_id, described[self._topic].partitions

    def _producer(self) -> KafkaProducer:
        return KafkaProducer(self._client, self._topic, self._owner if self._settings.transactional else None)


def _owner(message: Message) -> bytes | None:
    """None too where the headers cannot be read: then they are another's."""
    try:
        headers = HEADERS_OF(message) or ()
    except SystemError:
        return None
    return next((value for name, value in headers if name == OWNER), None)
