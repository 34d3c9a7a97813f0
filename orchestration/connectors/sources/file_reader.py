"""Claimed files to events, piece by piece: a file may be larger than the memory, a line may not."""

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bronze.events import LINE_FEED, File, events, lines
from expectations.wording import counted
from orchestration.connectors.sources.parquet_rows import PARQUET, as_json, numbered, rows_of, unreadable
from orchestration.connectors.sources.source import PIECE_BYTES, Notice
from orchestration.storage.row_pieces import PIECE_ROWS
from orchestration.utc import from_micros
from silver.csv_rows import above_rows, headers_among, is_numbered, twice_named, values_of
from silver.quoted_rows import joined_rows, row_test
from silver.reasons import shortened
from silver.repeated_hours import RepeatedHours
from silver.spec import PayloadFormat
from silver.text_encoding import encoded

BEGINNING, JUDGED_ROWS = 1 << 20, 1_000
"""Bytes and rows by which it is known what a file is: its encoding, its header, and whether its rows are numbered."""
LONGEST_LINE = 1 << 30  # In bytes. Arrow, Parquet and Spark hold less than two of these in one value, and no machine of ours in one row.
ABOVE = "hold no number and no time: they are kept as events without measurements; let the file have one line of header to have none"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HIDDEN = re.compile(r"[._]|~\$|(?:thumbs\.db|desktop\.ini)$", re.IGNORECASE)
"""Names of files and folders that are work in progress, or belong to an operating system: neither is read or told."""
MARK, MARKED = "\ufeff", ("utf-8", "utf-32", "utf-32-be", "utf-16", "utf-16-be")  # the byte order mark, and encodings that are known by it
REPLACED = "it is read once it has been replaced"


def events_of(
    source: str, claim: Path, position: str, modified_ns: int, shape: PayloadFormat, *, notices: list[Notice]
) -> Iterator[pa.Table]:
    """ARRIVED of the lines of a file, or of the rows of a Parquet file, in pieces. `notices` gets what is odd about its headers."""
    landed = File(source, position, instant(modified_ns))
    if shape.format == PARQUET:
        yield from numbered((events(as_json(rows), landed) for rows in rows_of(claim)), position)
        return
    end, before, first = _beginning(claim, shape)[1:]
    hint = next((line for line in before if _is_hint(line, shape.encoding)), None)
    number, count, above = "", 0, [line for line in before if line != hint]
    if shape.has_header and first:
        header, *rows = (line.decode(shape.encoding, "replace") for line in first)
        number = shape.separator if is_numbered(header, [row for row in rows if row.strip()], shape) else ""
        landed = replace(landed, header=number + header, header_line=first[0])
        if below := [first[n + 1] for n in above_rows(rows, shape) if not rows[n].startswith(shape.comment)]:
            above += below
            example = shortened(below[0].decode(shape.encoding, "replace"))
            reason = f"{counted(len(below), 'line')} between its header and its rows, such as {example}, {ABOVE}"
            notices.append(Notice("file with further headers", {"file": position, "reason": reason}))
    hours = RepeatedHours(shape) if shape.time.repeated_hour == "in_order" else None
    for rows_of_piece in _rows(pieces(claim, PIECE_BYTES, end, encoded(MARK, shape.encoding)), end, landed.header, shape):
        begin, payloads = 0, rows_of_piece
        if hint is not None:
            payloads = payloads.filter(pc.not_equal(payloads, pa.scalar(hint, pa.binary())))
        for at, header in [*_further_headers(payloads, landed, shape), (len(payloads), "")]:
            for start in range(begin, at, PIECE_ROWS):
                arrived = events(payloads[start : min(start + PIECE_ROWS, at)], landed)
                count += len(arrived)
                arrived = _beside_themselves(arrived, above, shape.encoding) if above else arrived
                yield hours.with_hours(arrived) if hours else arrived
            if at < len(payloads):
                landed, begin = replace(landed, header=number + header.removeprefix(MARK), header_line=payloads[at].as_py()), at + 1

    if not count and shape.has_header and len(first) > 1:
        notices.append(Notice("file without events", {"file": position, "reason": "each of its lines is a header"}))


def _rows(pieces: Iterable[bytes], end: bytes, header: str | None, shape: PayloadFormat) -> Iterator[pa.BinaryArray]:
    """Lines of pieces; of CSV those that are one row are joined."""
    names = shape.columns or values_of(header or "", shape) or ()
    quote, rest, is_row = encoded(shape.quote, shape.encoding), pa.array([], pa.binary()), row_test(shape, len(names))
    for piece in pieces:
        rows = lines(piece, end)
        if shape.format == "csv" and (len(rest) or quote in piece):
            rows, rest = joined_rows(pa.concat_arrays([rest, rows]), quote, end, is_row)
        yield rows
    if len(rest):
        yield rest


def _beside_themselves(arrived: pa.Table, headers: Sequence[bytes], encoding: str) -> pa.Table:
    """The same events, where a line that is one of these headers is its own: it holds nothing."""
    texts = pa.array([line.decode(encoding, "replace") for line in headers], pa.string())
    own = texts.take(pc.index_in(arrived["payload"].combine_chunks(), pa.array(headers, pa.binary())))
    at = arrived.schema.get_field_index("header")
    return arrived.set_column(at, arrived.schema.field(at), pc.coalesce(own, arrived["header"]))


def _further_headers(payloads: pa.BinaryArray, landed: File, shape: PayloadFormat) -> Iterator[tuple[int, str]]:
    """Lines that name columns anew, with their text: what follows them is read by them."""
    if landed.header is None or shape.columns:
        return
    may_be = np.flatnonzero(pc.match_substring(payloads, encoded(shape.header_field, shape.encoding)))
    texts = [line.decode(shape.encoding, "replace") for line in payloads.take(pa.array(may_be)).to_pylist()]
    yield from ((int(may_be[n]), texts[n]) for n in headers_among(pa.array(texts, pa.string()), landed.header, shape))


def left_out(file: Path, stat: os.stat_result, shape: PayloadFormat) -> str | None:
    """Why a run leaves a file out, if it does: it would end the run, or it is not in the encoding that conf declares."""
    return _trouble(file, stat.st_size, shape.format, stat.st_ctime_ns) or foreign(file, shape)


@lru_cache(maxsize=1000)
def _trouble(file: Path, size: int, format: str, _changed_ns: int) -> str | None:
    """Why a file of that payload format would end a run, if it would. A file that has changed is read again."""
    if format == PARQUET:
        return unreadable(file)
    is_packed = file.suffix.lower() == ".gz"
    if not is_packed and size <= LONGEST_LINE:
        return None
    try:
        with opened(file) as stream:
            return f"it has a line of more than {LONGEST_LINE} bytes; {REPLACED}" if _has_long_line(stream) else None
    except (EOFError, OSError, zlib.error):
        return f"it {'is not a whole gzip file' if is_packed else 'cannot be read'}; {REPLACED}"


def foreign(file: Path, shape: PayloadFormat) -> str | None:
    """Why a text file is not in the encoding that conf declares, or its header names no columns, and the way out, if its beginning shows
    that."""
    own = shape.encoding
    try:
        content, _, _, first = (b"", b"", [], []) if shape.format == PARQUET else _beginning(file, shape)
    except OSError as error:  # what is gone is claimed by nobody
        if isinstance(error, PermissionError):
            return "it may not be read (permission denied): change its owner or its mode"
        return None if isinstance(error, FileNotFoundError) else f"it cannot be read; {REPLACED}"
    zeros = [byte == 0 for byte in content[:4]]  # in UTF-16, beside each letter of ASCII
    by_zeros = "utf-16" if zeros == [False, True] * 2 else "utf-16-be" if zeros == [True, False] * 2 else None
    other = next((name for name in MARKED if content.startswith(encoded(MARK, name))), by_zeros)
    if other and encoded(MARK, other) != encoded(MARK, own):
        return f"its first bytes are {content[:4].hex(' ')}, as in {other}, and not {own}; set `encoding: {other}`"
    if content and len(encoded("\n", own)) > 1 and not any(map(str.isascii, content.decode(own, "replace"))):
        return f"its first bytes are {content[:4].hex(' ')}, and nothing in it is of ASCII in {own}; set `encoding` to what it is"
    return _odd_header(first[0], shape) if first and shape.has_header else None


def _is_hint(line: bytes, encoding: str) -> bool:
    """Whether a spreadsheet wrote the line above the header: `sep=;`."""
    return re.fullmatch(r"\ufeff?\"?sep=.\"?", line.decode(encoding, "replace").strip(), re.IGNORECASE) is not None


def _lines_before(lines: Sequence[bytes], shape: PayloadFormat) -> int:
    """How many lines stand before the header, or before the first row where there is none."""
    texts = [line.decode(shape.encoding, "replace").removeprefix(MARK) for line in lines]
    at, has_hint = shape.skip_lines, False
    while at < len(texts) and shape.format == "csv":
        is_hint = shape.has_header and not has_hint and _is_hint(lines[at], shape.encoding)
        if texts[at].strip() and not is_hint and not texts[at].startswith(shape.comment):
            break
        at, has_hint = at + 1, has_hint or is_hint
    return at


def _odd_header(header: bytes, shape: PayloadFormat) -> str | None:
    """Why a header does not name the columns below it, if it does not."""
    own, carriage_return = shape.encoding, encoded("\r", shape.encoding)
    if at := header.rstrip(carriage_return).find(carriage_return) + 1:
        return f"its header has a carriage return at place {at}, where its line goes on; let its lines end alike, by line feeds"
    if shape.columns:
        return None
    try:
        odd = header.find(0) if "\0" in header.decode(own) else None
    except UnicodeDecodeError as error:
        odd = error.start
    if odd is not None:
        what = f"the byte 0x{header[odd]:02X} at place {odd}, which is not {own}"
        return f"its header has {what}; set `encoding` to what it is, such as latin-1"
    twice = " and ".join(twice_named(header.decode(own), shape))
    return f"its header names {twice} twice; give each column a name of its own, or name all `columns` in sources.yml" if twice else None


def _has_long_line(stream: BinaryIO) -> bool:
    length = 0
    while block := stream.read(1 << 20):
        first = block.find(LINE_FEED)
        if length + (len(block) if first < 0 else first) > LONGEST_LINE:
            return True
        length = length + len(block) if first < 0 else len(block) - 1 - block.rfind(LINE_FEED)
    return False


def pieces(file: Path, length: int = PIECE_BYTES, end: bytes = LINE_FEED, mark: bytes = BYTE_ORDER_MARK) -> Iterator[bytes]:
    """Whole lines of a file, unpacked where its name ends in `.gz`, without the byte order mark; about so many letters at a time."""
    with opened(file) as stream:
        rest = stream.read(max(length * len(end), len(mark))).removeprefix(mark)
        while block := stream.read(length * len(end)):
            if behind := _behind_last(end, block):
                yield rest + block[:behind]
                rest = block[behind:]
            else:
                rest += block
        if rest:
            yield rest


def _behind_last(letter: bytes, content: bytes) -> int:
    """The place behind its last occurrence among letters of this length; 0 where there is none."""
    at = content.rfind(letter)
    while at > 0 and at % len(letter):
        at = content.rfind(letter, 0, at + len(letter) - 1)
    return at + len(letter) if at >= 0 else 0


def _beginning(file: Path, shape: PayloadFormat) -> tuple[bytes, bytes, list[bytes], list[bytes]]:
    """Read the first bytes of a text file, its line end, the lines before its header that are not blank, and its first whole lines from
    there. The line end is a carriage return where these bytes have one and no line feed, else a line feed."""
    encoding = shape.encoding
    with opened(file) as stream:
        content = stream.read(BEGINNING)
    feed, carriage_return, mark = (encoded(letter, encoding) for letter in f"\n\r{MARK}")
    end = carriage_return if carriage_return in content and feed not in content else feed
    rows = lines(content.removeprefix(mark), end)
    whole = rows[: min(JUDGED_ROWS, len(rows) - (len(content) == BEGINNING))].to_pylist()
    at = _lines_before(whole, shape)
    return content, end, [line for line in whole[:at] if line.decode(encoding, "replace").strip()], whole[at:]


def instant(nanoseconds: int) -> datetime:
    """Since 1970, as file systems note times; the first or the last of Python's, where a file bears a time beyond them."""
    try:
        return from_micros(nanoseconds // 1000)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC) if nanoseconds < 0 else datetime.max.replace(tzinfo=UTC)


def opened(file: Path) -> BinaryIO:
    """Its bytes, unpacked where its name ends in `.gz`."""
    return gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb")  # type: ignore[return-value]
