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

from orchestration.column_texts import json_rows
from orchestration.conf.sink_settings import TopicSettings
from orchestration.connectors.kafka_client import HEADERS_OF, KafkaClient, Range
from orchestration.connectors.sinks.dead_rows import RowError, sieve
from orchestration.connectors.sinks.kafka_messages import avro_schema, writer_of
from orchestration.connectors.sinks.kafka_producer import Headers, KafkaProducer, TooLargeError
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
        self._most_bytes: int | None = None  # once the topic has refused a batch for its size

    def last(self, remembered: SinkPosition | None) -> SinkPosition | None:
        """Read the position from the topic, once nobody else can move it. Without transactions the lake remembers it."""
        if not self._settings.transactional:
            return remembered
        topic_id, _ = self._described()
        self._begun = self._producer()
        note = json.loads(self._begun.note() or "{}")
        return SinkPosition(**note["position"]) if note.get("topic_id") == topic_id else None

    def check(self, table: str, schema: pa.Schema) -> None:
        if self._settings.format == "avro":
            avro_schema(table, schema)

    def old_rows_lack(self, columns: str, *, is_complete: bool) -> str | None:
        if self._settings.format == "json":
            return None
        again = "" if is_complete else ", and messages from before do not have it; `tidemark sinks reset` sends all rows again"
        return f"{columns} makes another schema of Avro, which readers need{again}"

    def write(self, batch: Batch, rows: Iterator[pa.Table]) -> bool:
        """All rows, and a message without a value for each key of the topic that is not among those of a complete batch."""
        topic_id, partitions = self._described()
        producer, self._begun = self._begun or self._producer(), None
        gone = self._keys(partitions) if batch.is_complete else set()
        try:
            with producer.transaction(json.dumps({"topic_id": topic_id, "position": asdict(batch.position)})):
                self._send(producer, batch, rows, gone)
                batch.refused.note()
        except TooLargeError:
            if self._most_bytes is not None:
                raise
            self._most_bytes = self._client.most_bytes(self._topic)
            return False
        self._most_bytes = None
        return True

    def _send(self, producer: KafkaProducer, batch: Batch, rows: Iterator[pa.Table], gone: set[bytes]) -> None:
        """Hand all messages over; a row that is too large is left out. `gone`: is left with the keys that no row has."""
        key, values = batch.key or self._settings.key, writer_of(self._settings, batch)
        facts = {"table": batch.table, "snapshot_id": str(batch.position.snapshot_id), "batch": batch.number}
        headers: Headers = [(OWNER, self._owner), *facts.items()]

        def written(part: pa.Table) -> tuple[pa.Table, Sequence[bytes], Sequence[bytes]]:
            return part, json_rows(part, key), [*values(part)]

        for part, names, contents in (made for chunk in rows for made in sieve(chunk, written, batch.refused)):
            for number, (name, content) in enumerate(zip(names, contents, strict=True)):
                try:
                    producer.send(name, content, headers)
                except RowError as error:
                    batch.refused.add(part.slice(number, 1), str(error))
                else:
                    gone.discard(name)
        for name in gone:
            producer.send(name, None, headers)

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
        return KafkaProducer(self._client, self._topic, self._owner if self._settings.transactional else None, self._most_bytes)


def _owner(message: Message) -> bytes | None:
    """None too where the headers cannot be read: then they are another's."""
    try:
        headers = HEADERS_OF(message) or ()
    except SystemError:
        return None
    return next((value for name, value in headers if name == OWNER), None)
