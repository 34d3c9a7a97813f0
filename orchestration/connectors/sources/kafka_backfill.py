"""Messages that lie before where a Kafka source began to read, or between what it has read: they can be brought to bronze as well.

An offset in which only `read` has grown stands for them, in the commit that brings them. So none comes twice, however often it is asked for
and whatever is killed; and where the source itself goes on does not change.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

import pyarrow as pa

from orchestration.connectors.kafka_client import PartitionId, Range
from orchestration.connectors.sources.kafka import (
    ID,
    NEXT,
    READ,
    TOPICS,
    Kafka,
    Progress,
    Ranges,
    joined,
    next_offset,
    ranges_read,
    without,
)
from orchestration.connectors.sources.source import Notice, Offset, Source
from orchestration.errors import TidemarkError

Bound: TypeAlias = datetime | Mapping[str, Mapping[int, int]] | Literal["earliest", "latest"]
"""An instant stands for the first message since then; offsets are by topic and partition, and no other partition is meant."""


@dataclass(frozen=True)
class Part:
    """The plan for one partition: the range that was asked for, and what becomes of it."""

    partition_id: PartitionId
    asked: tuple[int, int]
    to_read: Ranges
    in_bronze: Ranges
    left_to_source: Ranges  # the source reads it, at the next run
    gone: Ranges


def planned(source: Kafka, start: Offset, begin: Bound, end: Bound) -> list[Part]:
    """Plan each partition, from `begin` on and before `end`. TidemarkError if offsets name a partition that the source does not have."""
    progress: Progress = start.get(TOPICS, {})
    topics = source.there(progress)
    partition_ids = [(name, partition) for name, described in topics.items() for partition in described.partitions]
    begins, ends = (_resolved(source, partition_ids, bound) for bound in (begin, end))
    first = source.client.offsets(partition_ids, "earliest")
    same = {name for name, topic in topics.items() if progress.get(name, {}).get(ID) == topic.topic_id}
    return [
        _part(partition_id, (begins[partition_id], ends[partition_id]), first[partition_id], progress if partition_id[0] in same else {})
        for partition_id in partition_ids
        if partition_id in begins and partition_id in ends
    ]


def _resolved(source: Kafka, partition_ids: Collection[PartitionId], bound: Bound) -> dict[PartitionId, int]:
    if isinstance(bound, Mapping):
        chosen = {(topic, partition): offset for topic, offsets in bound.items() for partition, offset in offsets.items()}
        if strange := sorted(chosen.keys() - set(partition_ids)):
            topic, partition = strange[0]
            there = ", ".join(f"{name}/{number}" for name, number in sorted(partition_ids)[:10])
            raise TidemarkError(f"source {source.name} does not read {topic}/{partition}; it reads {there or 'no topic that exists'}.")
        return chosen
    offsets = source.client.offsets(partition_ids, bound)
    without_message = [partition_id for partition_id, offset in offsets.items() if offset < 0]  # since the instant
    return offsets | source.client.offsets(without_message, "latest")


def _part(partition_id: PartitionId, asked: tuple[int, int], first: int, progress: Progress) -> Part:
    """`progress`: nothing of a topic that was made anew, or has a partition more: the source reads it from its beginning."""
    follows = next_offset(progress, partition_id) or 0
    before = joined([(asked[0], min(asked[1], follows))])
    in_bronze = without(before, without(before, ranges_read(progress, partition_id)))
    missing = without(before, in_bronze)
    gone = without(missing, [[first, follows]]) if first < follows else missing
    return Part(partition_id, asked, without(missing, gone), in_bronze, joined([(max(asked[0], follows), asked[1])]), gone)


@dataclass
class KafkaBackfill(Source):
    """A source that ends: the ranges that are `wanted`, a batch of bronze at a time."""

    name: str = field(init=False)
    source: Kafka
    wanted: Mapping[PartitionId, Ranges]

    def __post_init__(self) -> None:
        self.name = self.source.name

    def latest_offset(self, start: Offset) -> Offset:
        """Add a part of the first missing range of each partition."""
        progress: Progress = start.get(TOPICS, {})
        left = {
            partition_id: ranges[0]
            for partition_id, wanted in self.wanted.items()
            if (ranges := without(wanted, ranges_read(progress, partition_id)))
        }
        ends = self.source.shared(
            {partition_id: begin for partition_id, (begin, _) in left.items()},
            {partition_id: end for partition_id, (_, end) in left.items()},
        )
        if not left:
            return start
        entries = {
            name: {ID: entry[ID], NEXT: entry[NEXT], READ: {p: ranges_read(progress, (name, int(p))) for p in entry[NEXT]}}
            for name, entry in progress.items()
        }
        for (name, partition), (begin, _) in left.items():
            read = entries[name][READ]
            read[str(partition)] = joined([*read[str(partition)], (begin, ends[name, partition])])
        return {**start, TOPICS: entries}

    def describe(self, offset: Offset) -> str:
        return self.source.describe(offset)

    def partitions(self, start: Offset, end: Offset) -> Sequence[Sequence[Range]]:
        """Return the ranges that bronze has at `end` and not at `start`."""
        before, behind = start[TOPICS], end[TOPICS]
        partition_ids = [(name, int(partition)) for name, entry in behind.items() for partition in entry[NEXT]]
        new = {
            partition_id: without(ranges_read(behind, partition_id), ranges_read(before, partition_id)) for partition_id in partition_ids
        }
        ranges = [Range(*partition_id, *piece) for partition_id, pieces in new.items() for piece in pieces]
        return [ranges] if ranges else []

    def read(self, partition: Sequence[Range]) -> Generator[pa.Table]:
        return self.source.read(partition)

    def notices(self) -> Sequence[Notice]:
        return self.source.notices()
