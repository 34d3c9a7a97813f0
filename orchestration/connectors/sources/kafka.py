"""Topics of Kafka as a source, and its messages as events. The position of an event is topic/partition/offset. A message without a value,
as a tombstone is, has an empty payload: silver puts it into quarantine.

The offset of the source says what of each topic bronze has, and where reading goes on, such as
`{"topics": {"readings": {"id": "cHJcgjX1T_Gk3zyy2XKK1Q", "next": {"0": 1200}, "read": {"0": [[0, 1200]]}}}}`. It has for each topic its
id, and by partition: `next`, the offset of the next message; `read`, the ranges of offsets that bronze has, those of a backfill among
them; `from`, where reading did not go on where it had ended, because the partition is new, or there is a gap. A gap are messages that were
never read and are gone, because they were kept for too short a time, or because the topic was deleted and made anew. Reading then goes on
with the oldest message that is there.
"""

import re
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from bronze.events import ARRIVED
from bronze.schema import HEADERS, INSTANT
from orchestration.conf.transport_settings import KafkaSettings
from orchestration.connectors.kafka_client import HEADERS_OF, KafkaClient, PartitionId, Range, Topic
from orchestration.connectors.sources.source import Gap, Notice, Offset, Source, SourceDownError

TOPICS, ID, NEXT, FROM, READ = "topics", "id", "next", "from", "read"
Progress = Mapping[str, Any]  # an offset's entries by topic
Ranges = Sequence[Sequence[int]]  # pairs of the first offset, and the one behind the last
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""Since 1970: the years 1 to 9999. A producer may write any number as the time of a message."""
MAX_MESSAGES, MAX_UNKNOWN = 2_000_000, 10_000  # messages in a batch of bronze; and in a batch while the length of messages is unknown
CONTENT = ("payload", "key", "headers")  # columns that count for the bytes of a message
MISSING, ODD = "topic is missing", "headers are left out"
REASONS = {MISSING: "it is read once it is there", ODD: "the name of one is not UTF-8; all else of the message is kept"}
MAX_DESCRIBED = 4  # partitions in a line of status


@dataclass
class Kafka(Source):
    transport: KafkaSettings
    max_batch_bytes: int
    _limits: dict[PartitionId, int] | None = None  # for a run that ends: the end of each partition when it first looked
    _message_bytes: float | None = None  # the average of the last messages that were read
    _ends: Mapping[PartitionId, int] = field(default_factory=dict)  # the end of each partition when last asked
    _problems: set[tuple[str, str]] = field(default_factory=set)  # pairs of problem and topic
    _reported: set[tuple[str, str]] = field(default_factory=set)

    def latest_offset(self, start: Offset) -> Offset:
        """Step over one batch: a share of each partition, so that all partitions get to the same time together."""
        progress: Progress = start.get(TOPICS, {})
        there = self.there(progress)
        partition_ids = [(name, partition) for name, topic in there.items() for partition in topic.partitions]
        first, last = self.client.offsets(partition_ids, "earliest"), self.client.offsets(partition_ids, "latest")
        self._ends = last
        same = {name for name, topic in there.items() if progress.get(name, {}).get(ID) == topic.topic_id}
        ended = {partition_id: next_offset(progress, partition_id) for partition_id in partition_ids if partition_id[0] in same}
        goes_on = {
            partition_id: offset
            for partition_id, offset in ended.items()
            if offset is not None and first[partition_id] <= offset <= last[partition_id]
        }
        begins = (first if TOPICS in start else self._starting(first, last)) | goes_on
        ends = self.shared(begins, self._limited(last))
        if TOPICS in start and ends == goes_on:
            return start
        entries = {name: {key: value for key, value in entry.items() if key != FROM} for name, entry in progress.items()}
        for name, topic in there.items():
            new = {str(p): begins[name, p] for p in topic.partitions if (name, p) not in goes_on}
            next_before = progress[name][NEXT] if name in same else {}
            following = next_before | {str(p): ends[name, p] for p in topic.partitions}
            read = {p: ranges_read(progress, (name, int(p))) for p in next_before}
            read |= {str(p): _grown(read.get(str(p), []), begins[name, p], ends[name, p]) for p in topic.partitions}
            entries[name] = {ID: topic.topic_id, NEXT: following, READ: read} | ({FROM: new} if new else {})
        return {**start, TOPICS: entries}

    def describe(self, offset: Offset) -> str:
        partition_ids = [
            f"{topic}/{partition} {number}" for topic, entry in offset.get(TOPICS, {}).items() for partition, number in entry[NEXT].items()
        ]
        more = f" and {len(partition_ids) - MAX_DESCRIBED} more" if len(partition_ids) > MAX_DESCRIBED else ""
        return ", ".join(partition_ids[:MAX_DESCRIBED]) + more

    def ends(self) -> Mapping[str, int]:
        """The offset of the next message that comes to each partition, `readings/0`."""
        return {f"{topic}/{partition}": end for (topic, partition), end in self._ends.items()}

    def waiting(self, offset: Offset, ends: Mapping[str, int]) -> int | None:
        """Count the messages after `offset` over all partitions; all of a partition that was never read."""
        if not ends:
            return None
        progress: Progress = offset.get(TOPICS, {})
        partition_ids = {
            partition_id: next_offset(progress, (topic, int(number))) or 0
            for partition_id in ends
            for topic, _, number in [partition_id.rpartition("/")]
        }
        return sum(max(0, end - partition_ids[partition_id]) for partition_id, end in ends.items())

    def partitions(self, start: Offset, end: Offset) -> Sequence[Sequence[Range]]:
        """All ranges are one part: brokers are asked for them at once, so that a hundred cost no more time than one."""
        progress: Progress = start.get(TOPICS, {})
        begins = {
            (name, int(partition)): (entry.get(FROM, {}).get(partition, next_offset(progress, (name, int(partition)))), offset)
            for name, entry in end[TOPICS].items()
            for partition, offset in entry[NEXT].items()
        }
        if any(begin is None for begin, _ in begins.values()):
            raise ValueError(f"{self.name} was not read from {start} to {end}")
        ranges = [Range(*partition_id, begin, offset) for partition_id, (begin, offset) in begins.items() if begin < offset]
        return [ranges] if ranges else []

    def read(self, partition: Sequence[Range]) -> Generator[pa.Table]:
        """Messages, those of each partition in their order. One without a value, as a tombstone is, has an empty payload."""
        with closing(self.client.messages(partition)) as pieces:
            for messages in pieces:
                events, odd = events_of(self.name, messages)
                self._message_bytes = events.select(CONTENT).nbytes / len(events)
                self._problems |= {(ODD, topic) for topic in odd}
                yield events

    def gaps(self, start: Offset, end: Offset) -> Sequence[Gap]:
        """Report where reading went on at `from` instead of where it had ended."""
        progress: Progress = start.get(TOPICS, {})
        return [
            Gap(name, int(partition), ended, begin - 1 if progress[name][ID] == entry[ID] and ended < begin else None)
            for name, entry in end[TOPICS].items()
            for partition, begin in entry.get(FROM, {}).items()
            if (ended := next_offset(progress, (name, int(partition)))) is not None
        ]

    def notices(self) -> Sequence[Notice]:
        new = sorted(self._problems - self._reported)
        self._reported = set(self._problems)
        return [Notice(what, {"source": self.name, "topic": topic, "reason": REASONS[what]}) for what, topic in new]

    def there(self, progress: Progress) -> dict[str, Topic]:
        """Topics that are read, each with its partitions that are read."""
        wanted = self.transport
        if wanted.subscribe_pattern is not None:
            pattern = re.compile(wanted.subscribe_pattern)
            there = self.client.describe(list(filter(pattern.fullmatch, self.client.topics())))
            self._report_missing({*filter(pattern.fullmatch, progress)} - there.keys())
            return there
        there = self.client.describe(wanted.subscribe or tuple(wanted.assign))
        missing = {*wanted.subscribe, *wanted.assign} - there.keys()
        for name, numbers in wanted.assign.items():
            if name in there:
                missing |= {f"{name}/{number}" for number in set(numbers) - set(there[name].partitions)}
                there[name] = Topic(there[name].topic_id, tuple(n for n in there[name].partitions if n in numbers))
        self._report_missing(missing)
        return there

    def _report_missing(self, topics: Collection[str]) -> None:
        self._problems = {(what, topic) for what, topic in self._problems if what != MISSING} | {(MISSING, topic) for topic in topics}

    def _starting(self, first: Mapping[PartitionId, int], last: Mapping[PartitionId, int]) -> dict[PartitionId, int]:
        begins = dict(last if self.transport.starting == "latest" else first)
        if isinstance(instant := self.transport.starting, datetime):
            since = self.client.offsets(first, instant)
            begins = {
                partition_id: min(offset, last[partition_id]) if offset >= 0 else last[partition_id]
                for partition_id, offset in since.items()
            }
        for name, chosen in self.transport.starting_offsets.items():
            for partition, offset in chosen.items():
                if (partition_id := (name, int(partition))) in begins:
                    if not first[partition_id] <= offset <= last[partition_id]:
                        raise SourceDownError(
                            f"source {self.name} is to start at offset {offset} of {name}/{partition}, which holds "
                            f"{first[partition_id]} to {last[partition_id]}; correct kafka.starting_offsets in sources.yml."
                        )
                    begins[partition_id] = offset
        return begins

    def shared(self, begins: Mapping[PartitionId, int], ends: Mapping[PartitionId, int]) -> dict[PartitionId, int]:
        """Ends of a batch: of each partition as large a part of what waits as of the others, one message at least."""
        waiting = {partition_id: max(0, end - begins[partition_id]) for partition_id, end in ends.items()}
        if self._message_bytes is None and sum(waiting.values()) > MAX_UNKNOWN:
            sample = self.read(
                [Range(*partition_id, begins[partition_id], ends[partition_id]) for partition_id, count in waiting.items() if count]
            )
            next(sample, None)
            sample.close()
        most = min(MAX_MESSAGES, self.max_batch_bytes / self._message_bytes) if self._message_bytes else MAX_MESSAGES
        part = min(1.0, most / max(1, sum(waiting.values())))
        return {partition_id: begins[partition_id] + (int(count * part) or min(count, 1)) for partition_id, count in waiting.items()}

    def _limited(self, last: dict[PartitionId, int]) -> Mapping[PartitionId, int]:
        if self._is_ending and self._limits is None:
            self._limits = last
        return (
            last
            if self._limits is None
            else {partition_id: min(offset, self._limits.get(partition_id, 0)) for partition_id, offset in last.items()}
        )

    @cached_property
    def client(self) -> KafkaClient:
        return KafkaClient(f"source {self.name} cannot be read from", "sources.yml", self.transport.servers, self.transport.options)


def next_offset(progress: Progress, partition_id: PartitionId) -> int | None:
    """Return the offset at which reading of a partition ended; None if it was never read."""
    offset: int | None = progress.get(partition_id[0], {}).get(NEXT, {}).get(str(partition_id[1]))
    return offset


def ranges_read(progress: Progress, partition_id: PartitionId) -> Ranges:
    """Return the ranges of a partition that bronze has. An offset without `read` stands for all before the next message."""
    read: Ranges = (
        progress.get(partition_id[0], {}).get(READ, {}).get(str(partition_id[1]), [[0, next_offset(progress, partition_id) or 0]])
    )
    return read


def joined(ranges: Iterable[Sequence[int]]) -> list[list[int]]:
    """Sort ranges, leave out empty ones, and join those that touch."""
    whole: list[list[int]] = []
    for begin, end in sorted(ranges, key=itemgetter(0)):
        if whole and begin <= whole[-1][1]:
            whole[-1][1] = max(end, whole[-1][1])
        elif begin < end:
            whole.append([begin, end])
    return whole


def without(ranges: Ranges, others: Ranges) -> list[list[int]]:
    """Return the parts of the ranges that lie in none of the others."""
    left = joined(ranges)
    for begin, end in others:
        left = joined(part for first, last in left for part in ((first, min(last, begin)), (max(first, end), last)))
    return left


def _grown(read: Ranges, begin: int, end: int) -> Ranges:
    """Add what is read now. Ranges after it belonged to a longer log, whose offsets now hold other messages."""
    return joined([*((first, min(last, begin)) for first, last in read if first < begin), (begin, end)])


def events_of(source: str, messages: Sequence[Message]) -> tuple[pa.Table, set[str]]:
    """ARRIVED, and the topics of messages whose headers cannot be read: null, as `received_at` is where the brokers keep no time."""
    times, unreadable = [message.timestamp() for message in messages], set[str]()
    is_unknown = np.array([kind == TIMESTAMP_NOT_AVAILABLE for kind, _ in times])
    micros = np.clip(np.array([ms for _, ms in times], np.int64), FIRST_MS, LAST_MS) * 1000
    columns = {
        "payload": pa.array([message.value() or b"" for message in messages], pa.binary()),
        "header": pa.nulls(len(messages), pa.string()),
        "source": pa.repeat(source, len(messages)),
        "position": [f"{message.topic()}/{message.partition()}/{message.offset()}" for message in messages],
        "received_at": pa.array(micros, INSTANT, mask=is_unknown),
        "key": pa.array([message.key() for message in messages], pa.binary()),
        "headers": pa.array([_headers(message, unreadable) for message in messages], HEADERS),
    }
    return pa.table(columns, ARRIVED), unreadable


def _headers(message: Message, unreadable: set[str]) -> list[dict[str, Any]] | None:
    try:
        headers: Any = HEADERS_OF(message)
    except SystemError:
        unreadable.add(str(message.topic()))
        return None
    return None if headers is None else [{"key": key, "value": value} for key, value in headers]
