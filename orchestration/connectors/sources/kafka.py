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
from orchestration.connectors.kafka_client import HEADERS_OF, Asker, KafkaClient, Place, Range, Topic
from orchestration.connectors.sources.source import Gap, Notice, Offset, Source, SourceDownError

TOPICS, ID, NEXT, FROM, READ = "topics", "id", "next", "from", "read"
Known = Mapping[str, Any]
"""Of an offset: by topic."""
Ranges = Sequence[Sequence[int]]
"""Pairs of the first offset, and the one behind the last."""
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""Since 1970: the years 1 to 9999. A producer may write any number as the time of a message."""
MAX_MESSAGES, MAX_UNKNOWN = 2_000_000, 10_000
"""Of a batch of bronze; and of one when nobody knows yet how long messages are."""
CONTENT = ("payload", "key", "headers")
"""What a message weighs."""
MISSING, ODD = "topic is missing", "headers are left out"
REASONS = {MISSING: "it is read once it is there", ODD: "the name of one is not UTF-8; all else of the message is kept"}
MAX_DESCRIBED = 4
"""Partitions in a line of status."""


@dataclass
class Kafka(Source):
    """`transport`: as conf declares it."""

    name: str
    transport: KafkaSettings
    max_batch_bytes: int
    _is_ending: bool = False
    _limits: dict[Place, int] | None = None
    """Of a run that ends: where partitions ended at its first look."""
    _message_bytes: float | None = None
    """On average, of those that were read last."""
    _ends: Mapping[Place, int] = field(default_factory=dict)
    """Of partitions, at the last look."""
    _amiss: set[tuple[str, str]] = field(default_factory=set)
    """What, and of which topic."""
    _told: set[tuple[str, str]] = field(default_factory=set)

    def stop_at_present(self) -> None:
        """At the ends of partitions as they are at the next look."""
        self._is_ending = True

    def latest_offset(self, start: Offset) -> Offset:
        """One batch: of each partition its share of all that waits, so that all come to the same time together."""
        known: Known = start.get(TOPICS, {})
        there = self.there(known)
        places = [(name, partition) for name, topic in there.items() for partition in topic.partitions]
        first, last = self.client.offsets(places, "earliest"), self.client.offsets(places, "latest")
        self._ends = last
        same = {name for name, topic in there.items() if known.get(name, {}).get(ID) == topic.topic_id}
        ended = {place: next_offset(known, place) for place in places if place[0] in same}
        goes_on = {place: offset for place, offset in ended.items() if offset is not None and first[place] <= offset <= last[place]}
        begins = (first if TOPICS in start else self._starting(first, last)) | goes_on
        ends = self.shared(begins, self._limited(last))
        if TOPICS in start and ends == goes_on:
            return start
        entries = {name: {key: value for key, value in of.items() if key != FROM} for name, of in known.items()}
        for name, topic in there.items():
            new = {str(p): begins[name, p] for p in topic.partitions if (name, p) not in goes_on}
            of_before = known[name][NEXT] if name in same else {}
            following = of_before | {str(p): ends[name, p] for p in topic.partitions}
            read = {p: ranges_read(known, (name, int(p))) for p in of_before}
            read |= {str(p): _grown(read.get(str(p), []), begins[name, p], ends[name, p]) for p in topic.partitions}
            entries[name] = {ID: topic.topic_id, NEXT: following, READ: read} | ({FROM: new} if new else {})
        return {**start, TOPICS: entries}

    def describe(self, offset: Offset) -> str:
        """The next message of each partition, of the first ones."""
        places = [f"{topic}/{partition} {number}" for topic, of in offset.get(TOPICS, {}).items() for partition, number in of[NEXT].items()]
        more = f" and {len(places) - MAX_DESCRIBED} more" if len(places) > MAX_DESCRIBED else ""
        return ", ".join(places[:MAX_DESCRIBED]) + more

    def ends(self) -> Mapping[str, int]:
        """The offset of the next message that comes to each partition, `readings/0`."""
        return {f"{topic}/{partition}": end for (topic, partition), end in self._ends.items()}

    def waiting(self, offset: Offset, ends: Mapping[str, int]) -> int | None:
        """Over all partitions; of one that was never read, all of its offsets."""
        if not ends:
            return None
        known: Known = offset.get(TOPICS, {})
        places = {place: next_offset(known, (topic, int(number))) or 0 for place in ends for topic, _, number in [place.rpartition("/")]}
        return sum(max(0, end - places[place]) for place, end in ends.items())

    def partitions(self, start: Offset, end: Offset) -> Sequence[Sequence[Range]]:
        """All ranges are one part: brokers are asked for them at once, so that a hundred cost no more time than one."""
        known: Known = start.get(TOPICS, {})
        begins = {
            (name, int(partition)): (of.get(FROM, {}).get(partition, next_offset(known, (name, int(partition)))), offset)
            for name, of in end[TOPICS].items()
            for partition, offset in of[NEXT].items()
        }
        if any(begin is None for begin, _ in begins.values()):
            raise ValueError(f"{self.name} was not read from {start} to {end}")
        ranges = [Range(*place, begin, offset) for place, (begin, offset) in begins.items() if begin < offset]
        return [ranges] if ranges else []

    def read(self, partition: Sequence[Range]) -> Generator[pa.Table]:
        """Messages, those of each partition in their order. One without a value, as a tombstone is, has an empty payload."""
        with closing(self.client.messages(partition)) as pieces:
            for messages in pieces:
                events, odd = events_of(self.name, messages)
                self._message_bytes = events.select(CONTENT).nbytes / len(events)
                self._amiss |= {(ODD, topic) for topic in odd}
                yield events

    def gaps(self, start: Offset, end: Offset) -> Sequence[Gap]:
        """Where reading went on behind `from` instead of where it had ended."""
        known: Known = start.get(TOPICS, {})
        return [
            Gap(name, int(partition), ended, begin - 1 if known[name][ID] == of[ID] and ended < begin else None)
            for name, of in end[TOPICS].items()
            for partition, begin in of.get(FROM, {}).items()
            if (ended := next_offset(known, (name, int(partition)))) is not None
        ]

    def notices(self) -> Sequence[Notice]:
        """What conf names and brokers do not have, and what a client cannot read."""
        new = sorted(self._amiss - self._told)
        self._told = set(self._amiss)
        return [Notice(what, {"source": self.name, "topic": topic, "reason": REASONS[what]}) for what, topic in new]

    def there(self, known: Known) -> dict[str, Topic]:
        """Topics that are read, each with its partitions that are read."""
        wanted = self.transport
        if wanted.subscribe_pattern is not None:
            pattern = re.compile(wanted.subscribe_pattern)
            there = self.client.describe(list(filter(pattern.fullmatch, self.client.topics())))
            self._tell_missing({*filter(pattern.fullmatch, known)} - there.keys())
            return there
        there = self.client.describe(wanted.subscribe or tuple(wanted.assign))
        missing = {*wanted.subscribe, *wanted.assign} - there.keys()
        for name, numbers in wanted.assign.items():
            if name in there:
                missing |= {f"{name}/{number}" for number in set(numbers) - set(there[name].partitions)}
                there[name] = Topic(there[name].topic_id, tuple(n for n in there[name].partitions if n in numbers))
        self._tell_missing(missing)
        return there

    def _tell_missing(self, topics: Collection[str]) -> None:
        self._amiss = {(what, topic) for what, topic in self._amiss if what != MISSING} | {(MISSING, topic) for topic in topics}

    def _starting(self, first: Mapping[Place, int], last: Mapping[Place, int]) -> dict[Place, int]:
        begins = dict(last if self.transport.starting == "latest" else first)
        if isinstance(instant := self.transport.starting, datetime):
            since = self.client.offsets(first, instant)
            begins = {place: min(offset, last[place]) if offset >= 0 else last[place] for place, offset in since.items()}
        for name, chosen in self.transport.starting_offsets.items():
            for partition, offset in chosen.items():
                if (place := (name, int(partition))) in begins:
                    if not first[place] <= offset <= last[place]:
                        raise SourceDownError(
                            f"source {self.name} is to start at offset {offset} of {name}/{partition}, which holds {first[place]} to "
                            f"{last[place]}; correct kafka.starting_offsets in sources.yml."
                        )
                    begins[place] = offset
        return begins

    def shared(self, begins: Mapping[Place, int], ends: Mapping[Place, int]) -> dict[Place, int]:
        """Ends of a batch: of each partition as large a part of what waits as of the others, one message at least."""
        waiting = {place: max(0, end - begins[place]) for place, end in ends.items()}
        if self._message_bytes is None and sum(waiting.values()) > MAX_UNKNOWN:
            sample = self.read([Range(*place, begins[place], ends[place]) for place, count in waiting.items() if count])
            next(sample, None)
            sample.close()
        most = min(MAX_MESSAGES, self.max_batch_bytes / self._message_bytes) if self._message_bytes else MAX_MESSAGES
        part = min(1.0, most / max(1, sum(waiting.values())))
        return {place: begins[place] + (int(count * part) or min(count, 1)) for place, count in waiting.items()}

    def _limited(self, last: dict[Place, int]) -> Mapping[Place, int]:
        if self._is_ending and self._limits is None:
            self._limits = last
        return last if self._limits is None else {place: min(offset, self._limits.get(place, 0)) for place, offset in last.items()}

    @cached_property
    def client(self) -> KafkaClient:
        asker = Asker(f"source {self.name}", "cannot be read from", "sources.yml")
        return KafkaClient(asker, self.transport.servers, self.transport.options)


def next_offset(known: Known, place: Place) -> int | None:
    """Where reading of a partition ended; None where it was never read."""
    offset: int | None = known.get(place[0], {}).get(NEXT, {}).get(str(place[1]))
    return offset


def ranges_read(known: Known, place: Place) -> Ranges:
    """What bronze has of a partition. Of an offset that does not tell, all before the next message: nothing may come twice."""
    read: Ranges = known.get(place[0], {}).get(READ, {}).get(str(place[1]), [[0, next_offset(known, place) or 0]])
    return read


def joined(ranges: Iterable[Sequence[int]]) -> list[list[int]]:
    """The same in order, without empty ones, those that touch as one."""
    whole: list[list[int]] = []
    for begin, end in sorted(ranges, key=itemgetter(0)):
        if whole and begin <= whole[-1][1]:
            whole[-1][1] = max(end, whole[-1][1])
        elif begin < end:
            whole.append([begin, end])
    return whole


def without(ranges: Ranges, others: Ranges) -> list[list[int]]:
    """What of them lies in none of the others."""
    left = joined(ranges)
    for begin, end in others:
        left = joined(part for first, last in left for part in ((first, min(last, begin)), (max(first, end), last)))
    return left


def _grown(read: Ranges, begin: int, end: int) -> Ranges:
    """With what is read now. What was behind it, of a log that got shorter, is other messages now."""
    return joined([*((first, min(last, begin)) for first, last in read if first < begin), (begin, end)])


def events_of(source: str, messages: Sequence[Message]) -> tuple[pa.Table, set[str]]:
    """ARRIVED, and the topics of messages whose headers cannot be read; these are null then.

    `received_at` is null where the brokers keep no time.
    """
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
