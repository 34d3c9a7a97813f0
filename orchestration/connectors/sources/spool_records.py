"""The format of a spool: what `tidemark collect` writes, and a run reads.

A spool is a folder of segments, `000000000007.spool`: files that are only appended to, by one process, which begins one of its own. Numbers
only grow. A segment begins with 8 random bytes, its mark; a record begins with the mark of its segment. So no event that somebody sends
can look like a record. A record holds what came together: several events, in their order.
"""

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MARK_BYTES, KEY = 8, "\0"
HEADER = struct.Struct("<8sII")  # the mark; how many bytes follow the header, and their CRC
BODY = struct.Struct("<qQIH")
"""When it came in µs since 1970; number of the first event in its connection or request; how many events; length of what names those.

Then that name, a length of 4 bytes for each event, and the events. Behind a NUL in the name stands the key of the events. Where the number
is 0, the name alone is the position of the event.
"""
SEGMENT = re.compile(r"(\d{12})\.spool")


class Record(NamedTuple):
    """`end`: where it ends in its segment. `lengths`: of the events in `payloads`, 4 bytes each."""

    begin: int
    end: int
    received_us: int
    first: int
    events: int
    name: str
    lengths: memoryview
    payloads: memoryview


def segments(folder: Path) -> dict[int, Path]:
    """Files by their number, in ascending order."""
    files = ((match, file) for file in folder.glob("*.spool") if (match := SEGMENT.fullmatch(file.name)))
    return dict(sorted((int(match[1]), file) for match, file in files))


def segment_file(folder: Path, number: int) -> Path:
    return folder / f"{number:012d}.spool"


def encoded(mark: bytes, received_us: int, name: str, first: int, payloads: Sequence[bytes]) -> bytes:
    named = name.encode()
    lengths = struct.pack(f"<{len(payloads)}I", *map(len, payloads))
    body = b"".join((BODY.pack(received_us, first, len(payloads), len(named)), named, lengths, *payloads))
    return HEADER.pack(mark, len(body), zlib.crc32(body)) + body


def records(content: bytes, begin: int = MARK_BYTES) -> Iterator[Record]:
    """Yield the whole records behind a byte; `content` is the mark of the segment, and what stands behind that byte. What is no record is
    passed over: a writer was killed there, or the disk has failed."""
    mark, view, before = content[:MARK_BYTES], memoryview(content), begin - MARK_BYTES
    at = MARK_BYTES
    while 0 <= at < len(content):
        if record := _record(mark, view, at):
            at = record.end
            yield record._replace(begin=record.begin + before, end=record.end + before)
        else:
            at = content.find(mark, at + 1)


def waiting(folder: Path, segment: int, byte: int) -> tuple[int, int | None]:
    """Count the bytes behind a byte of a segment; with the time at which the first record of them came, in µs since 1970, if any."""
    total, since = 0, None
    for number, file in segments(folder).items():
        begin = byte if number == segment else MARK_BYTES
        with suppress(FileNotFoundError), file.open("rb") as stream:  # a run may just have removed it
            mark, length = stream.read(MARK_BYTES), file.stat().st_size - begin
            stream.seek(begin)
            head = stream.read(HEADER.size + BODY.size)
            if number >= segment and length > 0:
                total += length
                is_record = head.startswith(mark) and len(head) == HEADER.size + BODY.size
                since = BODY.unpack_from(head, HEADER.size)[0] if since is None and is_record else since
    return total, since


def _record(mark: bytes, content: memoryview, at: int) -> Record | None:
    begin = at + HEADER.size
    if begin > len(content):
        return None
    actual_mark, size, checksum = HEADER.unpack_from(content, at)
    end = begin + size
    if actual_mark != mark or size < BODY.size or end > len(content) or zlib.crc32(content[begin:end]) != checksum:
        return None
    received_us, first, count, named = BODY.unpack_from(content, begin)
    lengths = begin + BODY.size + named
    payloads = lengths + 4 * count
    name = str(content[lengths - named : lengths], "utf-8")
    return Record(at, end, received_us, first, count, name, content[lengths:payloads], content[payloads:end])
