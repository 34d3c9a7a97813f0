"""The spool of pushed events as a source: an offset is a segment, and the byte of it up to which bronze has it.

Only what bronze has is removed: whole segments, and never the newest, to which a collector may be writing. A run may read what is not
synced yet; if that is lost with the power, its sender has no acknowledgement, and its segment ends before the offset: nobody appends to it.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bronze.events import ARRIVED
from bronze.schema import HEADERS, INSTANT
from orchestration.connectors.sources.source import PIECE_BYTES, Notice, Offset, Source
from orchestration.connectors.sources.spool_records import KEY, MARK_BYTES, Record, records, segments
from orchestration.storage.row_pieces import PIECE_ROWS, gather

SEGMENT, BYTE = "segment", "byte"


class Part(NamedTuple):
    """A part of a segment: from one byte to another, or to its end for None."""

    file: Path
    begin: int
    end: int | None


@dataclass
class Spool(Source):
    """Read beside a `tidemark collect` that writes, or without one."""

    is_remote = False
    folder: Path
    max_batch_bytes: int
    _limit: tuple[int, int] | None = None  # for a run that ends: the newest segment when it first looked, and its length then
    _told: set[tuple[Path, int]] = field(default_factory=set)

    def latest_offset(self, start: Offset) -> Offset:
        """Step over as many records as fit a batch, one at least. `start` is in a commit of bronze: segments before it are removed."""
        files, left, end = segments(self.folder), self.max_batch_bytes, start
        newest = max(files, default=-1)
        if self._is_ending and self._limit is None and files:
            self._limit = newest, files[newest].stat().st_size
        for number, file in files.items():
            if number < int(start.get(SEGMENT, -1)):
                file.unlink()
                continue
            begin = passed = _begin(start, number)
            for record in records(content := _content(file, begin), begin):
                left -= record.end - record.begin
                if (left < 0 and end != start) or (self._limit and (number, record.end) > self._limit):
                    return end
                self._tell_of_damage(file, passed, record.begin)
                passed, end = record.end, {**start, SEGMENT: number, BYTE: record.end}
            if number < newest:  # nobody writes to it any more
                self._tell_of_damage(file, passed, begin - MARK_BYTES + len(content))
                if passed == begin:
                    file.unlink()
        return end

    def describe(self, offset: Offset) -> str:
        return f"segment {offset[SEGMENT]}, byte {offset[BYTE]}" if BYTE in offset else ""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Part]:
        numbers = range(int(start.get(SEGMENT, -1)), end[SEGMENT] + 1)
        files = {number: file for number, file in segments(self.folder).items() if number in numbers}
        return [Part(file, _begin(start, number), end[BYTE] if number == end[SEGMENT] else None) for number, file in files.items()]

    def read(self, partition: Part) -> Iterator[pa.Table]:
        """Its events, in the order in which they were written."""
        whole = records(_content(partition.file, partition.begin, partition.end), partition.begin)
        for together in gather(whole, lambda record: (record.events, len(record.payloads)), PIECE_BYTES):
            yield _events(self.name, together)

    def _tell_of_damage(self, file: Path, begin: int, end: int) -> None:
        if begin < end and (file, begin) not in self._told:
            self._told.add((file, begin))
            reason = f"bytes {begin} to {end} are no whole record: a collector was killed while it wrote them, or the disk has failed"
            self._notices.append(Notice("spool damaged", {"file": str(file), "reason": reason}))


def spooled(source: str, folder: Path) -> Generator[pa.Table]:
    """All that is there, from the oldest on; nothing is removed."""
    for file in segments(folder).values():
        yield from Spool(source, folder, 0).read(Part(file, MARK_BYTES, None))


def behind(source: str, file: Path, begin: int, at_once: int) -> Iterator[tuple[pa.Table, int]]:
    """Events of the whole records behind a byte of a segment, about so many at once, each with the byte behind them."""
    whole = records(_content(file, begin), begin)
    for together in gather(whole, lambda record: (record.events * (PIECE_ROWS // at_once), len(record.payloads)), PIECE_BYTES):
        yield _events(source, together), together[-1].end


def _begin(start: Offset, number: int) -> int:
    return int(start[BYTE]) if number == start.get(SEGMENT) else MARK_BYTES


def _content(file: Path, begin: int, end: int | None = None) -> bytes:
    """The mark of a segment, and what stands behind a byte."""
    with file.open("rb") as stream:
        mark = stream.read(MARK_BYTES)
        stream.seek(begin)
        return mark + stream.read(-1 if end is None else end - begin)


def _events(source: str, together: Sequence[Record]) -> pa.Table:
    """ARRIVED; the position is the name of the record and a number, such as `request/<id>/<n>`, counted from 1."""
    counts = np.array([record.events for record in together])
    rows, total = np.repeat(np.arange(len(together)), counts), int(counts.sum())
    offsets = np.zeros(total + 1, np.int32)
    np.cumsum(np.frombuffer(b"".join(record.lengths for record in together), "<u4"), out=offsets[1:])
    payloads = b"".join(record.payloads for record in together)
    shift = np.array([record.first for record in together]) - (np.cumsum(counts) - counts)
    numbers = pa.array(np.arange(total) + shift[rows]).cast(pa.string())
    named = [record.name.partition(KEY) for record in together]
    names = pa.array([name for name, _, _ in named]).take(pa.array(rows))
    keys = pa.array([key.encode() if is_keyed else None for _, is_keyed, key in named], pa.binary())
    received = pa.array(np.array([record.received_us for record in together])[rows])
    return pa.table(
        {
            "payload": pa.BinaryArray.from_buffers(pa.binary(), total, [None, pa.py_buffer(offsets), pa.py_buffer(payloads)]),
            "header": pa.nulls(total, pa.string()),
            "source": pa.repeat(pa.scalar(source), total),
            "position": pc.if_else(pc.equal(numbers, "0"), names, pc.binary_join_element_wise(names, numbers, "/")),
            "received_at": received.cast(INSTANT),
            "key": keys.take(pa.array(rows)),
            "headers": pa.nulls(total, HEADERS),
        },
        ARRIVED,
    )
