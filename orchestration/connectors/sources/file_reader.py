"""Claimed files to rows of bronze.events, piece by piece: a batch may be larger than the memory, a line may not."""

import gzip
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

import pyarrow as pa

from bronze.events import LINE_FEED, File, events, identified, lines
from orchestration.location import Location
from orchestration.storage.checkpoints import NewFile

PIECE_BYTES, PIECE_ROWS = 16 * 1024 * 1024, 250_000
LONGEST_HEADER = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SINCE_1970 = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999


def rows(
    files: Iterable[NewFile], intake: Location, with_header: Sequence[str], ingested_at: datetime, bronze_batch: int
) -> Iterator[pa.Table]:
    """Identified events of claims below the folder `intake`; `with_header`: the sources whose files begin with a header."""
    waiting: list[pa.Table] = []
    count, fullness = 0, 0.0
    for arrived in _landed(files, intake, with_header):
        piece = identified(arrived, ingested_at, bronze_batch, count)
        weight = len(piece) / PIECE_ROWS + piece.nbytes / PIECE_BYTES
        # Events of small files together: each table that is handed over becomes a row group, and a file has 32,767 at most.
        if waiting and fullness + weight > 1:
            yield pa.concat_tables(waiting)
            waiting, fullness = [], 0.0
        waiting.append(piece)
        count, fullness = count + len(piece), fullness + weight
    if waiting:
        yield pa.concat_tables(waiting)


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


def instant(milliseconds: int) -> datetime:
    """Since 1970, as Hadoop and Spark note times; the first or the last of Python's, where a file bears a time beyond them."""
    if not FIRST_MS <= milliseconds <= LAST_MS:
        return datetime.min.replace(tzinfo=UTC) if milliseconds < 0 else datetime.max.replace(tzinfo=UTC)
    return SINCE_1970 + timedelta(milliseconds=milliseconds)


def _landed(files: Iterable[NewFile], intake: Location, with_header: Sequence[str]) -> Iterator[pa.Table]:
    for file in files:
        claim = Path(unquote(file.uri.removeprefix("file:").replace("///", "/")))
        _, _, *below = claim.relative_to(intake.local).parts
        header = first_line(claim) if file.source in with_header else None
        landed = File(file.source, unquote("/".join(below)), instant(file.modified_ms), header)
        for piece in pieces(claim):
            payloads = lines(piece)
            for first in range(0, len(payloads), PIECE_ROWS):
                yield events(payloads[first : first + PIECE_ROWS], landed)


def opened(file: Path) -> BinaryIO:
    """Its bytes, unpacked where its name ends in `.gz`."""
    return gzip.open(file) if file.suffix == ".gz" else file.open("rb")  # type: ignore[return-value]
