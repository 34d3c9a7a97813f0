"""Messages to one topic of Kafka: all of a batch or none, with a note in the same transaction; or one by one.

The note is the metadata of an offset that a group of consumers commits. No consumer ever joins that group.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from orchestration.connectors.kafka_client import PATIENCE_SECONDS, KafkaClient
from orchestration.connectors.sinks.dead_rows import RowError
from orchestration.errors import TidemarkError

SETTINGS = {
    "enable.idempotence": True,
    "partitioner": "murmur2_random",  # as Java's producers choose one
    "compression.type": "lz4",
    "linger.ms": 20,
    "message.timeout.ms": 60_000,
    "transaction.timeout.ms": 900_000,  # the most that brokers allow by default: a first batch is long
    "delivery.report.only.error": True,
}
WRITE_SECONDS = 60.0  # for brokers to take what has been handed to the client, and to end a transaction
TOO_LARGE = "a row is too large for it; raise `max.message.bytes` there and `message.max.bytes` in kafka.options"
LARGEST_BATCH_BYTES = 1_000_000  # the client's own default
BATCH_BYTES, RECORD_BYTES, HEADER_BYTES = 61, 26, 10
"""The most that Kafka's message format adds to a batch, to a message and to a header: lengths and times of up to five bytes each."""
ELSEWHERE = "another process has begun to send to it"
REASONS = {
    KafkaError._FENCED: ELSEWHERE,
    KafkaError.PRODUCER_FENCED: ELSEWHERE,
    KafkaError.INVALID_PRODUCER_EPOCH: ELSEWHERE,
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "its brokers allow no transaction so long; lower `transaction.timeout.ms` in kafka.options",
}
PASSING = {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
"""While brokers agree on who keeps the offsets of a group: the client reports them at once, whatever its time limit."""
SILENT = logging.getLogger(__name__)
SILENT.disabled = True  # instead of stderr
Headers: TypeAlias = list[tuple[str, str | bytes | None]]
T = TypeVar("T")


class TooLargeError(TidemarkError):
    """Brokers refuse a batch of messages, one of which is larger than the topic allows; they do not say which one."""


class KafkaProducer:
    """For one batch. What an earlier one of the same name left open is aborted, and that one can write no more, in whatever process."""

    def __init__(self, client: KafkaClient, topic: str, transactional_id: str | None, most_bytes: int | None = None) -> None:
        """Without an id there are no transactions. `most_bytes`: of what the topic takes, where that is known."""
        self._client, self._topic, self._is_transactional = client, topic, transactional_id is not None
        self._failed: KafkaError | None = None
        self._most_bytes = most_bytes
        more: dict[str, Any] = {"logger": SILENT} | ({"transactional.id": transactional_id} if transactional_id else {})
        if most_bytes is not None:
            more |= {"batch.size": min(most_bytes, LARGEST_BATCH_BYTES), "compression.type": "none"}  # a batch of any rows is taken then
        self._producer = self._try(lambda: Producer(SETTINGS | client.settings | more))
        if self._is_transactional:
            self._try(lambda: self._producer.init_transactions(WRITE_SECONDS))

    def note(self) -> str | None:
        """That of the last transaction that was committed; None where brokers have none, or have it no longer."""
        (kept,) = self._try(lambda: self._client.reader.committed([TopicPartition(self._topic, 0)], PATIENCE_SECONDS))
        return kept.metadata or None

    @contextmanager
    def transaction(self, note: str) -> Iterator[None]:
        """Committed when its body ends, and aborted when that raises."""
        try:
            if self._is_transactional:
                self._try(self._producer.begin_transaction)
            yield
            left = self._try(lambda: self._producer.flush(WRITE_SECONDS))
            if self._failed or left:
                raise self._refused(self._failed or KafkaError(KafkaError._TIMED_OUT))
            if self._is_transactional:
                offsets, group = [TopicPartition(self._topic, 0, 0, note)], self._client.reader.consumer_group_metadata()
                self._try(lambda: self._producer.send_offsets_to_transaction(offsets, group, WRITE_SECONDS))
                self._try(lambda: self._producer.commit_transaction(WRITE_SECONDS))
        except BaseException:
            with suppress(KafkaException):
                self._producer.abort_transaction(PATIENCE_SECONDS) if self._is_transactional else self._producer.purge()
            raise

    def send(self, key: bytes, value: bytes | None, headers: Headers) -> None:
        """Hand it to the client, which has room for a bounded number. RowError where it, or the topic, takes none of that size."""
        if self._most_bytes is not None and _record_bytes(key, value, headers) > self._most_bytes:
            raise RowError(f"topic {self._topic}: {TOO_LARGE}.")
        called_back = None if self._is_transactional else self._fail  # a transaction that lacks a message cannot be committed anyway
        while self._failed is None:
            try:
                return self._producer.produce(self._topic, value, key, on_delivery=called_back, headers=headers)
            except BufferError:
                self._try(lambda: self._producer.poll(0.1))
            except KafkaException as error:
                refused = self._refused(error.args[0])
                raise (RowError(str(refused)) if isinstance(refused, TooLargeError) else refused) from None
        raise self._refused(self._failed)

    def _fail(self, error: KafkaError | None, _: Message) -> None:
        self._failed = self._failed or error

    def _try(self, question: Callable[[], T]) -> T:
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return question()
            except (KafkaException, SystemError) as error:
                # The latter where the client calls back with an exception set, which may be lost then.
                failure = error if isinstance(error, KafkaException) else error.__cause__
                reason = failure.args[0] if isinstance(failure, KafkaException) else KafkaError(KafkaError._FATAL)
                if reason.code() not in PASSING or time.monotonic() > end:
                    raise self._refused(reason) from None
                time.sleep(0.1)

    def _refused(self, error: KafkaError) -> TidemarkError:
        if error.code() == KafkaError._FATAL:
            try:
                self._producer.poll(0)
            except KafkaException as fatal:  # which alone says why
                error = fatal.args[0]
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return TooLargeError(f"topic {self._topic}: {TOO_LARGE}.")
        reason = REASONS.get(error.code())
        return TidemarkError(f"topic {self._topic}: {reason}.") if reason else self._client.refused(error)


def _record_bytes(key: bytes, value: bytes | None, headers: Headers) -> int:
    """The most bytes of a batch of this message alone."""
    of_headers = sum(HEADER_BYTES + len(name) + len(content or "") for name, content in headers)
    return BATCH_BYTES + RECORD_BYTES + len(key) + len(value or b"") + of_headers
