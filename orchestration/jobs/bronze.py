"""bronze.events is fed by sources: what those have that are ready is one commit, one bronze batch, and one file of the table.

The commit holds the rows, and the offset up to which each source was read (storage/source_offsets.py). It is a transaction with the number
of the batch: a process that is not the only writer fails instead of writing rows twice.
"""

import mmap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from tempfile import TemporaryFile

import pyarrow as pa
import pyarrow.compute as pc

from bronze.events import ARRIVED, identified
from orchestration import crash
from orchestration.connectors.sources.births import Births
from orchestration.connectors.sources.schemas import Schemas
from orchestration.connectors.sources.source import PIECE_BYTES, Notice, Offset, Source, own_fault
from orchestration.connectors.sources.source import Gap as SourceGap
from orchestration.jobs.repeated_messages import RepeatedMessages
from orchestration.storage.commit import append_pieces
from orchestration.storage.delta import version_of
from orchestration.storage.ops_tables import GAPS, Gap
from orchestration.storage.row_pieces import merged
from orchestration.storage.source_offsets import next_bronze_batch, source_offsets, with_offsets
from orchestration.storage.tables import LakeStore

EVENTS = "bronze.events"


@dataclass(frozen=True)
class PendingBatch:
    """A source, and what it has behind the offset that bronze knows."""

    source: Source
    start: Offset
    end: Offset
    fetched: pa.Buffer | None = None
    """The rows of a remote source, or of one with a registry or births, in a file of this machine."""
    notices: Sequence[Notice] = ()

    def events(self) -> Iterator[pa.Table]:
        if self.fetched is not None:
            return (pa.Table.from_batches([batch]) for batch in pa.ipc.open_stream(self.fetched))
        return (piece for partition in self.source.partitions(self.start, self.end) for piece in self.source.read(partition))


@dataclass(frozen=True)
class CommittedBatch:
    """A batch of bronze. `version`: the version of bronze.events. `rows`: counts by source. `gaps`: gaps of the sources."""

    bronze_batch: int
    version: int
    rows: Mapping[str, int]
    at: datetime
    seconds: float
    gaps: Sequence[Gap] = ()


def poll(lake: LakeStore, source: Source, tell: Callable[[], None] = lambda: None) -> PendingBatch | None:
    """Read one batch of the source at most; None if it has nothing. `tell` is called as soon as it has something.

    A remote source is read here, where nobody waits for it, and not while bronze is held. So is one with a registry, which is asked for the
    schemas of its events, and one of Sparkplug B, whose births are kept: who reads bronze can count on both. Raises SourceDownError if that
    fails.
    """
    stored = source_offsets(lake.table_path(EVENTS)).get(source.name)
    start = stored.offset if stored else {}
    with own_fault(source.name):
        end = source.latest_offset(start)
        if end == start:
            return None
        tell()
        ready = PendingBatch(source, start, end)
        schemas, births = Schemas.of(lake.conf, source.name), Births.of(lake.conf, source.name, start)
        if schemas is None and births is None and not source.is_remote:
            return ready
        fetched = _fetched(lake, ready, schemas, births)
        return replace(ready, fetched=fetched, notices=[notice for kept in (schemas, births) if kept for notice in kept.notices])


def commit_batch(
    lake: LakeStore, ready: Sequence[PendingBatch], is_sole: AbstractContextManager[object], repeats: RepeatedMessages | None = None
) -> CommittedBatch:
    """Bring to bronze what sources have. `is_sole`: held while bronze is written. `repeats`: that of the batch before, if there was one.
    SourceDownError, with its name, if one cannot be read."""
    repeats = repeats or RepeatedMessages(lake)
    table, begin, rows, received = lake.tables[EVENTS], time.monotonic(), Counter[str](), dict[str, int]()
    with is_sole:
        offsets = source_offsets(table.location)
        bronze_batch, ingested_at = next_bronze_batch(offsets), datetime.now(UTC)
        ends = {of_source.source.name: of_source.end for of_source in ready}
        info = partial(with_offsets, offsets, bronze_batch, ends, rows, received)
        gaps = [
            Gap(of_source.source.name, gap.topic, gap.partition, gap.first, gap.last, bronze_batch, ingested_at)
            for of_source in ready
            for gap in _gaps(of_source)
        ]
        _record(lake, gaps)
        repeats.begin(bronze_batch)
        pieces = in_row_groups(_arrived(ready, rows, received, repeats), ingested_at, bronze_batch)
        append_pieces(table.location, pieces, lake.app_id(EVENTS, EVENTS), bronze_batch, info)
        repeats.end(bronze_batch)
        version = version_of(table.location)
    crash.point(crash.Point.EVENTS_WRITTEN)
    return CommittedBatch(bronze_batch, version, rows, ingested_at, time.monotonic() - begin, gaps)


def _arrived(ready: Sequence[PendingBatch], rows: Counter[str], received: dict[str, int], repeats: RepeatedMessages) -> Iterator[pa.Table]:
    """ARRIVED. Counts rows by source, and notes the newest time at which one was received, in µs since 1970."""
    for of_source in ready:
        name = of_source.source.name
        with own_fault(name):
            for events in of_source.events():
                rows[name] += len(events)
                newest = pc.max(events["received_at"]).cast(pa.int64()).as_py()
                if newest is not None:
                    received[name] = max(newest, received.get(name, newest))
                yield repeats.marked(name, events)


def _gaps(of_source: PendingBatch) -> Sequence[SourceGap]:
    with own_fault(of_source.source.name):
        return of_source.source.gaps(of_source.start, of_source.end)


def _record(lake: LakeStore, gaps: Sequence[Gap]) -> None:
    """Add those that are not there yet, before the commit that goes on behind them."""
    key = attrgetter("source", "topic", "partition", "first_offset", "bronze_batch")
    recorded = set(map(key, GAPS.rows(lake.conf.lake))) if gaps else set()
    GAPS.append(lake.conf.lake, [gap for gap in gaps if key(gap) not in recorded])


def _fetched(lake: LakeStore, ready: PendingBatch, schemas: Schemas | None, births: Births | None) -> pa.Buffer:
    """Its rows in a file without a name, which is gone with the buffer, or with this process, however that ends."""
    lake.conf.lake.local.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=lake.conf.lake.local) as scratch:
        with pa.ipc.new_stream(scratch, ARRIVED) as stream:
            for events in ready.events():
                if schemas:
                    schemas.learn(events["payload"])
                stream.write_table(births.named(events) if births else events)
        if births:
            births.keep(ready.end)
        scratch.flush()
        return pa.py_buffer(mmap.mmap(scratch.fileno(), 0, access=mmap.ACCESS_READ))


def in_row_groups(arrived: Iterable[pa.Table], ingested_at: datetime, bronze_batch: int) -> Iterator[pa.Table]:
    """Identify the events of a bronze batch; those of small files come together, as a Parquet file has 32,767 row groups at most."""

    def pieces() -> Iterator[pa.Table]:
        count = 0
        for events in arrived:
            yield identified(events, ingested_at, bronze_batch, count)
            count += len(events)

    return merged(pieces(), most_bytes=PIECE_BYTES)
