"""Kafka by librdkafka: what topics there are, where their partitions begin and end, and the messages between two offsets.

No group of consumers is joined. Whatever a broker refuses is a SourceDownError; no message of one holds a secret.
"""

import time
from collections.abc import Callable, Collection, Generator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from operator import methodcaller
from typing import Any, Literal, NamedTuple, TypeVar

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec

from orchestration.connectors.sources.source import SourceDownError
from orchestration.errors import TidemarkError
from orchestration.secrets import resolved

PATIENCE_SECONDS = 5.0  # for an answer, and for the next message of a range that is known to be there
MESSAGES_AT_ONCE, POLL_SECONDS = 10_000, 0.1
CONNECTION = {"client.id": "tidemark", "log_level": 0, "reconnect.backoff.max.ms": 1000}
READER = {
    "group.id": "tidemark",  # asked for by the client, and never joined
    "enable.auto.commit": False,
    "auto.offset.reset": "error",  # a range that is gone is no empty range
    "isolation.level": "read_committed",
    "enable.partition.eof": True,  # a range may end in a transaction's marker, behind which no message comes
    # A broker answers at once where it has something. Where it has not, the next range waits for it: half a second by default (measured).
    "fetch.wait.max.ms": 20,
    "fetch.queue.backoff.ms": 10,  # by default a second, after every 100,000 messages that were faster than we are (measured)
}
NO_ANSWER = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
PartitionId = tuple[str, int]  # a topic and a partition of it
HEADERS_OF = methodcaller("headers")
"""A call that survives a header whose name is not UTF-8. The client then returns a list with a hole and sets an exception. Called like
this, Python sees the exception; a plain call reads the list and ends the process, at every start (seen with 2.16.1 and Python 3.11)."""
T = TypeVar("T")


class Range(NamedTuple):
    """Messages of a partition from `begin` on, and before `end`."""

    topic: str
    partition: int
    begin: int
    end: int


@dataclass(frozen=True)
class Topic:
    """`topic_id`: another one when a topic of that name was deleted and made anew."""

    topic_id: str
    partitions: tuple[int, ...]


class KafkaClient:
    """A client for one source or sink; it connects when it is first asked. `options`: as in conf, without their secrets.

    `problem`: how errors begin, such as "source plant cannot be read from". `file`: of conf, that declares it.
    """

    def __init__(self, problem: str, file: str, servers: str, options: Mapping[str, str]) -> None:
        self._problem, self._file, self._servers, self._options = problem, file, servers, options
        self._secrets: set[str] = set()
        self._said = ""

    def topics(self) -> list[str]:
        """Names of all topics but Kafka's own."""
        names = self.ask(lambda: self._admin.list_topics(timeout=PATIENCE_SECONDS).topics)
        return sorted(name for name in names if not name.startswith("__"))

    def describe(self, topics: Collection[str]) -> dict[str, Topic]:
        """Describe the topics that exist; asking does not create one."""
        if not topics:
            return {}
        asked = TopicCollection(list(topics))
        answers = self.ask(lambda: self._admin.describe_topics(asked, request_timeout=PATIENCE_SECONDS))
        self._said = ""  # whatever it was, brokers have answered
        described = {name: self.ask(partial(_unless_unknown, answer)) for name, answer in answers.items()}
        return {
            name: Topic(str(topic.topic_id), tuple(sorted(p.id for p in topic.partitions))) for name, topic in described.items() if topic
        }

    def most_bytes(self, topic: str) -> int:
        """Return the size of the largest batch of messages that a topic takes."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        (answer,) = self.ask(lambda: self._admin.describe_configs([resource], request_timeout=PATIENCE_SECONDS)).values()
        return int(self.ask(answer.result)["max.message.bytes"].value)

    def offsets(
        self, partition_ids: Collection[PartitionId], at: datetime | Literal["earliest", "latest", "written"]
    ) -> dict[PartitionId, int]:
        """Return the first offset of each partition, the end of its committed or all messages, or the first since an instant (-1: none)."""
        if not partition_ids:
            return {}
        ends = {"earliest": OffsetSpec.earliest(), "latest": OffsetSpec.latest(), "written": OffsetSpec.latest()}
        level = IsolationLevel.READ_UNCOMMITTED if at == "written" else IsolationLevel.READ_COMMITTED
        spec: Any = OffsetSpec.for_timestamp(int(at.timestamp() * 1000)) if isinstance(at, datetime) else ends[at]
        asked, settings = {TopicPartition(*partition_id): spec for partition_id in partition_ids}, {"request_timeout": PATIENCE_SECONDS}
        answers = self.ask(lambda: self._admin.list_offsets(asked, isolation_level=level, **settings))
        return {(partition.topic, partition.partition): self.ask(answer.result).offset for partition, answer in answers.items()}

    def messages(self, ranges: Collection[Range]) -> Generator[list[Message]]:
        """All that are in the ranges, each partition in its order; the brokers are asked for all ranges at once."""
        left, since = {(wanted.topic, wanted.partition): wanted for wanted in ranges}, time.monotonic()
        behind = sum(wanted.end - wanted.begin for wanted in ranges)
        self.ask(lambda: self.reader.assign([TopicPartition(wanted.topic, wanted.partition, wanted.begin) for wanted in ranges]))
        try:
            while left:
                # It waits until so many have come, so never for more than are left. There are fewer where markers have offsets too.
                came = self.ask(partial(self.reader.consume, min(MESSAGES_AT_ONCE, max(behind, 1)), POLL_SECONDS))
                meant = [message for message in came if self._is_meant(message, left)]
                behind -= len(meant)
                if meant:
                    since = time.monotonic()
                    yield meant
                elif time.monotonic() - since > PATIENCE_SECONDS:
                    raise self._down("they have stopped answering")
        finally:
            self.ask(self.reader.unassign)

    def _is_meant(self, message: Message, left: dict[PartitionId, Range]) -> bool:
        """Whether it is in one of the ranges that are left; one that ends here is left no longer."""
        error, partition_id = message.error(), (message.topic() or "", message.partition() or 0)
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            if error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise self._down(f"{partition_id[0]}/{partition_id[1]} no longer holds what was asked for")
            self.note(error)  # it may go away
            return False
        if (wanted := left.get(partition_id)) is None:
            return False
        # The offset of an end of a partition is that of the message that would come next.
        offset = message.offset() or 0
        if (offset if error else offset + 1) >= wanted.end:
            self.ask(lambda: self.reader.incremental_unassign([TopicPartition(*partition_id)]))
            del left[partition_id]
        return error is None and offset < wanted.end

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient(self.settings)

    @cached_property
    def reader(self) -> Consumer:
        return Consumer(READER | self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings with their secrets: not to be shown or kept."""
        values = {name: self._looked_up(name, value) for name, value in self._options.items()}
        return CONNECTION | values | {"bootstrap.servers": self._servers, "error_cb": self.note}

    def _looked_up(self, name: str, value: str) -> str:
        try:
            looked_up = resolved(value, self._file)
        except TidemarkError as error:
            raise SourceDownError(f"{self._problem} the brokers: for kafka.options.{name}, {error}") from None
        self._secrets |= {looked_up} - {value}
        return looked_up

    def note(self, error: KafkaError) -> None:
        """Keep what a client says about its connections, for the next error."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # what was said of the last one says more
            self._said = error.str()

    def ask(self, question: Callable[[], T]) -> T:
        """The answer; SourceDownError where there is none."""
        try:
            return question()
        except KafkaException as error:
            raise self.refused(error.args[0]) from None

    def refused(self, error: KafkaError) -> SourceDownError:
        """Make the error to raise for what a broker, or the client, has said."""
        return self._down("they do not answer" if error.code() in NO_ANSWER else error.str())

    def _down(self, reason: str) -> SourceDownError:
        if "_admin" in vars(self):
            self._admin.poll(0)  # for what it has to say of its connections
        said = f"{reason} ({self._said})" if self._said and self._said != reason else reason
        for secret in filter(None, self._secrets):
            said = said.replace(secret, "***")
        remedy = f"it is tried again later; see that they run, and that servers and options in {self._file} are right"
        return SourceDownError(f"{self._problem} the brokers {self._servers}: {said}; {remedy}.")


def _unless_unknown(described: "Future[T]") -> T | None:
    try:
        return described.result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise
        return None
