"""Older messages of a Kafka source to bronze: what lies before where the source began, or where it has a hole. No Spark.

The next run brings them through silver. They are late there mostly: they are recorded as late, and folded into gold by amendments.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from orchestration.connectors.sources.all import sources
from orchestration.connectors.sources.kafka import Kafka
from orchestration.connectors.sources.kafka_backfill import Bound, KafkaBackfill, Part, planned
from orchestration.errors import ConfError, TidemarkError
from orchestration.jobs.bronze import EVENTS, CommittedBatch, commit_batch, poll
from orchestration.jobs.repeated_messages import RepeatedMessages
from orchestration.storage.commit import fence
from orchestration.storage.ops_tables import GAPS
from orchestration.storage.sealing import refuse_damage
from orchestration.storage.source_offsets import refuse_earlier_version, source_offsets
from orchestration.storage.tables import LakeStore

COLUMNS = ("topic", "partition", "from", "to", "to_read", "in_bronze", "left_to_source", "gone")


def plan(lake: LakeStore, source: Kafka, begin: Bound, end: Bound) -> list[Part]:
    """Plan a backfill, by partition. TidemarkError before the first run: where the source will begin is not known yet."""
    refuse_earlier_version(lake)
    refuse_damage(lake, ())
    stored = source_offsets(lake.table_path(EVENTS)).get(source.name)
    if stored is None:
        raise TidemarkError(
            f"source {source.name} has not been read yet, so it is not known which messages are older; run `tidemark run --once` first."
        )
    return planned(source, stored.offset, begin, end)


def carry_out(lake: LakeStore, source: Kafka, parts: Sequence[Part]) -> Iterator[CommittedBatch]:
    """A batch of bronze each, for the one process that writes the lake. A repeat after a kill brings what is missing."""
    fence([lake.table_path(name) for name in (EVENTS, GAPS.table)])
    backfill = KafkaBackfill(source, {part.partition_id: part.to_read for part in parts})
    repeats = RepeatedMessages(lake)
    while ready := poll(lake, backfill):
        yield commit_batch(lake, [ready], nullcontext(), repeats)


def kafka_source(lake: LakeStore, name: str) -> Kafka:
    """ConfError for any other, and for one that is paused."""
    if name in lake.conf.sources and lake.conf.sources[name].is_paused:
        raise ConfError(f"source {name} is paused, so bronze reads nothing of it; take `paused` out of sources.yml first.")
    of_kafka = {source.name: source for source in sources(lake.conf) if isinstance(source, Kafka)}
    if name not in of_kafka:
        raise ConfError(
            f"{name} is not a Kafka source; a backfill reads only Kafka sources, and the conf has {', '.join(of_kafka) or 'none'}."
        )
    return of_kafka[name]


def summary(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """A row a partition, COLUMNS; ranges as first-last."""
    rows = []
    for part in parts:
        kinds = (part.to_read, part.in_bronze, part.left_to_source, part.gone)
        ranges = (", ".join(f"{begin}-{end - 1}" for begin, end in kind) for kind in kinds)
        rows.append(dict(zip(COLUMNS, (*part.partition_id, *part.asked, *ranges), strict=True)))
    return rows
