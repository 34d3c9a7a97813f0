"""Claimed files to events, piece by piece: a file may be larger than the memory, a line may not."""

import gzip
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from bronze.events import LINE_FEED, File, events, lines
from orchestration.connectors.sources.batching import PIECE_BYTES, PIECE_ROWS
from orchestration.connectors.sources.parquet_rows import PARQUET, as_json, numbered, rows_of, unreadable
from silver.spec import PayloadFormat

LONGEST_HEADER = 1 << 20
LONGEST_LINE = 1 << 30
"""In bytes. Arrow, Parquet and Spark hold less than two of these in one value, and no machine of ours in one row."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SINCE_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def events_of(source: str, claim: Path, position: str, modified_ns: int, shape: PayloadFormat) -> Iterator[pa.Table]:
    """ARRIVED of the lines of a file, or of the rows of a Parquet file, in pieces."""
    landed = File(source, position, instant(modified_ns), first_line(claim) if shape.has_header else None)
    if shape.format == PARQUET:
        yield from numbered((events(as_json(rows), landed) for rows in rows_of(claim)), position)
        return
    for piece in pieces(claim):
        payloads = lines(piece)
        for first in range(0, len(payloads), PIECE_ROWS):
            yield events(payloads[first : first + PIECE_ROWS], landed)


def trouble(file: Path, size: int, format: str, changed_ns: int = 0) -> str | None:
    """Why a file of that payload format would end a run, if it would. `changed_ns`: makes another question of a file that has changed."""
    if format == PARQUET:
        return unreadable(file)
    is_packed = file.suffix == ".gz"
    if not is_packed and size <= LONGEST_LINE:
        return None
    try:
        with opened(file) as stream:
            return f"it has a line of more than {LONGEST_LINE} bytes" if _has_long_line(stream) else None
    except (EOFError, OSError, zlib.error):
        return "it is not a whole gzip file" if is_packed else "it cannot be read"


def _has_long_line(stream: BinaryIO) -> bool:
    length = 0
    while block := stream.read(1 << 20):
        first = block.find(LINE_FEED)
        if length + (len(block) if first < 0 else first) > LONGEST_LINE:
            return True
        length = length + len(block) if first < 0 else len(block) - 1 - block.rfind(LINE_FEED)
    return False


def pieces(file: Path, length: int = PIECE_BYTES) -> Iterator[bytes]:
    """Whole lines of a file, unpacked where its name ends in `.gz`, without the byte order mark; about so many bytes at a time."""
    with opened(file) as stream:
        rest = stream.read(max(length, len(BYTE_ORDER_MARK))).removeprefix(BYTE_ORDER_MARK)
        while block := stream.read(length):
            whole, feed, begun = block.rpartition(LINE_FEED)
            if feed:
                yield rest + whole + feed
                rest = begun
            else:
                rest += block
        if rest:
            yield rest


def first_line(file: Path) -> str | None:
    """The first line of a file; None for one that is empty or starts with no text."""
    with opened(file) as stream:
        line = stream.readline(LONGEST_HEADER).removesuffix(LINE_FEED)
    return line.decode("utf-8-sig", errors="replace") or None


def instant(nanoseconds: int) -> datetime:
    """Since 1970, as file systems note times; the first or the last of Python's, where a file bears a time beyond them."""
    try:
        return SINCE_1970 + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC) if nanoseconds < 0 else datetime.max.replace(tzinfo=UTC)


def opened(file: Path) -> BinaryIO:
    """Its bytes, unpacked where its name ends in `.gz`."""
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")  # type: ignore[return-value]
