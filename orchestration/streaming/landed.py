"""Claimed files to rows of bronze.events, piece by piece: a batch may be larger than the memory, a line may not."""

import gzip
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

import pyarrow as pa
from deltalake import ColumnProperties, WriterProperties

from bronze.events import LINE_FEED, File, events, identified, lines
from orchestration.streaming.offsets import NewFile

PIECE_BYTES = 16 * 1024 * 1024
LONGEST_HEADER = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SINCE_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def rows(
    files: Iterable[NewFile], intake: Path, with_header: Sequence[str], ingested_at: datetime, bronze_batch: int
) -> Iterator[pa.Table]:
    """Identified events of claims below the folder `intake`; `with_header`: the sources whose files begin with a header."""
    count = 0
    for file in files:
        claim = Path(unquote(file.uri.removeprefix("file:").replace("///", "/")))
        _, _, *below = claim.relative_to(intake).parts
        header = first_line(claim) if file.source in with_header else None
        landed = File(file.source, unquote("/".join(below)), instant(file.modified_ms), header)
        for piece in pieces(claim):
            found = identified(events(lines(piece), landed), ingested_at, bronze_batch, count)
            count += len(found)
            yield found


def pieces(file: Path, length: int = PIECE_BYTES) -> Iterator[bytes]:
    """Whole lines of a file, unpacked where its name ends in `.gz`, without the byte order mark; about so many bytes at a time."""
    with _opened(file) as stream:
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
    with _opened(file) as stream:
        line = stream.readline(LONGEST_HEADER).removesuffix(LINE_FEED)
    return line.decode("utf-8-sig", errors="replace") or None


def properties(first: pa.Table) -> WriterProperties:
    """How a table that begins with these events is written.

    In small row groups, as both cores read one file (measured: one did, with a default of 1,000,000 rows); and no two payloads are alike,
    so that looking for repeats is in vain.
    """
    a_group = PIECE_BYTES * len(first) // max(1, first["payload"].nbytes)
    of_payload = ColumnProperties(dictionary_enabled=False)
    return WriterProperties(compression="SNAPPY", max_row_group_size=max(1, a_group), column_properties={"payload": of_payload})


def instant(milliseconds: int) -> datetime:
    """Since 1970, as Hadoop and Spark note times."""
    return SINCE_1970 + timedelta(milliseconds=milliseconds)


def _opened(file: Path) -> BinaryIO:
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")  # type: ignore[return-value]
