"""Messages that lie before where a Kafka source began to read, or between what it has read: they can be brought to bronze as well.

An offset in which only `read` has grown stands for them, in the commit that brings them. So none comes twice, however often it is asked for
and whatever is killed; and where the source itself goes on does not change.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

import pyarrow as pa

from orchestration.connectors.kafka_client import Place, Range
from orchestration.connectors.sources.kafka import ID, NEXT, READ, TOPICS, Kafka, Known, Ranges, joined, next_offset, ranges_read, without
from orchestration.connectors.sources.source import Notice, Offset, Source
from orchestration.errors import TidemarkError

Bound: TypeAlias = datetime | Mapping[str, Mapping[int, int]] | Literal["earliest", "latest"]
"""An instant stands for the first message since then; offsets are by topic and partition, and no other partition is meant."""


@dataclass(frozen=True)
class Part:
    """What was asked for of a partition, and what becomes of it."""

    place: Place
    asked: tuple[int, int]
    to_read: Ranges
    in_bronze: Ranges
    left_to_source: Ranges
    """The source reads it, at the next run."""
    gone: Ranges


def planned(source: Kafka, start: Offset, begin: Bound, end: Bound) -> list[Part]:
    """By partition, from `begin` on and before `end`. TidemarkError where offsets are of a partition that the source has not."""
    known: Known = start.get(TOPICS, {})
    topics = source.there(known)
    places = [(name, partition) for name, of in topics.items() for partition in of.partitions]
    begins, ends = (_resolved(source, places, bound) for bound in (begin, end))
    first = source.client.offsets(places, "earliest")
    same = {name for name, topic in topics.items() if known.get(name, {}).get(ID) == topic.topic_id}
    return [
        _part(place, (begins[place], ends[place]), first[place], known if place[0] in same else {})
        for place in places
        if place in begins and place in ends
    ]


def _resolved(source: Kafka, places: Collection[Place], bound: Bound) -> dict[Place, int]:
    if isinstance(bound, Mapping):
        chosen = {(topic, partition): offset for topic, of in bound.items() for partition, offset in of.items()}
        if strange := sorted(chosen.keys() - set(places)):
            topic, partition = strange[0]
            there = ", ".join(f"{name}/{number}" for name, number in sorted(places)[:10])
            raise TidemarkError(f"source {source.name} does not read {topic}/{partition}, but {there or 'nothing that is there'}.")
        return chosen
    found = source.client.offsets(places, bound)
    return found if min(found.values(), default=0) >= 0 else found | _at_end(source, found)


def _at_end(source: Kafka, found: Mapping[Place, int]) -> dict[Place, int]:
    """Where no message has come since an instant."""
    return source.client.offsets([place for place, offset in found.items() if offset < 0], "latest")


def _part(place: Place, asked: tuple[int, int], first: int, known: Known) -> Part:
    """`known`: nothing of a topic that was made anew, or has a partition more: the source reads it from its beginning."""
    follows = next_offset(known, place) or 0
    before = joined([(asked[0], min(asked[1], follows))])
    in_bronze = without(before, without(before, ranges_read(known, place)))
    missing = without(before, in_bronze)
    gone = without(missing, [[first, follows]]) if first < follows else missing
    return Part(place, asked, without(missing, gone), in_bronze, joined([(max(asked[0], follows), asked[1])]), gone)


@dataclass
class KafkaBackfill(Source):
    """A source that ends: the ranges that are `wanted`, a batch of bronze at a time."""

    source: Kafka
    wanted: Mapping[Place, Ranges]

    def __post_init__(self) -> None:
        self.name = self.source.name

    def latest_offset(self, start: Offset) -> Offset:
        """Of each partition a part of its first range that bronze has not."""
        known: Known = start.get(TOPICS, {})
        left = {place: ranges[0] for place, wanted in self.wanted.items() if (ranges := without(wanted, ranges_read(known, place)))}
        ends = self.source.shared({place: begin for place, (begin, _) in left.items()}, {place: end for place, (_, end) in left.items()})
        if not left:
            return start
        entries = {name: {key: of[key] for key in (ID, NEXT)} | {READ: _all_read(known, name)} for name, of in known.items()}
        for (name, partition), (begin, _) in left.items():
            read = entries[name][READ]
            read[str(partition)] = joined([*read[str(partition)], (begin, ends[name, partition])])
        return {**start, TOPICS: entries}

    def describe(self, offset: Offset) -> str:
        return self.source.describe(offset)

    def partitions(self, start: Offset, end: Offset) -> Sequence[Sequence[Range]]:
        """What bronze has at `end` and has not at `start`."""
        before, behind = start[TOPICS], end[TOPICS]
        places = [(name, int(partition)) for name, of in behind.items() for partition in of[NEXT]]
        new = {place: without(ranges_read(behind, place), ranges_read(before, place)) for place in places}
        ranges = [Range(*place, *piece) for place, pieces in new.items() for piece in pieces]
        return [ranges] if ranges else []

    def read(self, partition: Sequence[Range]) -> Generator[pa.Table]:
        return self.source.read(partition)

    def notices(self) -> Sequence[Notice]:
        return self.source.notices()


def _all_read(known: Known, topic: str) -> dict[str, Ranges]:
    return {partition: ranges_read(known, (topic, int(partition))) for partition in known[topic][NEXT]}
