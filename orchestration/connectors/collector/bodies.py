"""Bodies of requests to events: unpacked within a bound, and divided, each event in the bytes in which it was sent."""

import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pyarrow as pa
from backports import zstd

from silver.csv_rows import csv_rows
from silver.json_rows import read_object
from silver.records import UnreadableError
from silver.spec import PayloadFormat

ONE_MESSAGE = ("application/octet-stream", "application/x-protobuf", "application/protobuf", "avro/binary", "application/avro")
JSON, LINES, CSV = "application/json", ("application/x-ndjson", "application/jsonl"), ("text/csv", "text/plain")
WINDOW_LOG = 23
"""The window of a zstd frame, as a power of two: 8 MiB, which every decoder of HTTP has (RFC 9659). A greater one is for memory bombs."""
PIECE_BYTES, MAX_MEMBERS = 64 * 1024, 10_000
_ONE, _SEVERAL = msgspec.json.Decoder(msgspec.Raw), msgspec.json.Decoder(list[msgspec.Raw])
BLANKS, OBJECT_OR_NULL = b" \t\r\n", frozenset(b"{n")
STRING_OR_BOUNDARY = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{},\n]', re.DOTALL)


class RefusedError(Exception):
    """A request that is answered with `status`, and of which nothing is stored."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        """`message`: what is wrong, and what to do."""
        super().__init__(message)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def too_long(most: int) -> RefusedError:
    """A body that is longer than max_body_bytes of conf."""
    return RefusedError(413, f"a body is at most {most:,} bytes long, also unpacked; send fewer events at once")


def unpacked(body: bytes, encoding: str, most: int) -> bytes:
    """The body without its Content-Encoding: all its gzip members or zstd frames, to the end of the last."""
    if encoding in ("", "identity"):
        return body
    if encoding not in _DECODERS:
        remedy = "send gzip, zstd, or the body as it is"
        raise RefusedError(415, f"the encoding {encoding[:50]!r} is not known; {remedy}", Accept_Encoding="gzip, zstd")
    parts, left = [], most
    try:
        for part in _unpacked(body, encoding, most):
            parts.append(part)
            left -= len(part)
            if left < 0:
                raise too_long(most)
    except (zlib.error, zstd.ZstdError) as error:
        raise RefusedError(400, f"the body is not {encoding}: {error}") from error
    return b"".join(parts)


def _unpacked(body: bytes, encoding: str, most: int) -> Iterator[bytes]:
    """Pieces of at most one byte more than `most`. A decoder gets little at a time: it copies what stands behind its end."""
    decoder, at, members = None, 0, 0
    while at < len(body):
        decoder = decoder or _DECODERS[encoding]()
        piece = body[at : at + PIECE_BYTES]
        at += len(piece)
        yield decoder.decompress(piece, most + 1)
        if decoder.eof:
            at -= len(decoder.unused_data)
            decoder, members = None, members + 1
            if members > MAX_MEMBERS:
                raise RefusedError(400, f"the body has more than {MAX_MEMBERS:,} {encoding} members; pack it as one")
    if decoder is not None:
        raise RefusedError(400, f"the {encoding} body ends in the middle; send it again")


def payloads(body: bytes, content_type: str, shape: PayloadFormat) -> tuple[list[bytes], int]:
    """The events of a body, and how many of them silver cannot read: 0 of binary formats, and of decoders, for which a body is an event.
    Only blanks between events are left out."""
    kind = content_type.partition(";")[0].strip().lower()
    if shape.decode:
        return [body] if body else [], 0
    if shape.is_binary:
        if kind and kind not in ONE_MESSAGE:
            raise RefusedError(415, f"this source takes {shape.format}, a message a request; send Content-Type: {ONE_MESSAGE[0]}")
        return [body] if body else [], 0
    if shape.format == "csv":
        if kind and kind not in CSV:
            raise RefusedError(415, "this source takes CSV; send Content-Type: text/csv")
        events = body.removesuffix(b"\n").split(b"\n") if body else []
        return events, _unreadable_rows(events, shape)
    if kind and kind not in (JSON, *LINES):
        raise RefusedError(415, "send Content-Type: application/json (an object or an array), or application/x-ndjson (an object a line)")
    body, is_lines = body.removeprefix(BOM_UTF8).strip(BLANKS), kind in LINES
    is_array = body[:1] == b"[" and not is_lines
    try:
        events = list(map(bytes, _SEVERAL.decode(body) if is_array else _ONE.decode_lines(body)))
        return events, len([event for event in events if event[0] not in OBJECT_OR_NULL])
    except (msgspec.DecodeError, RecursionError):
        pieces = body.split(b"\n") if is_lines else _pieces(body, is_array=is_array)
        events = [event for piece in pieces if (event := piece.strip(BLANKS))]
        return events, sum(not _is_readable(event) for event in events)


def _pieces(body: bytes, *, is_array: bool) -> Iterator[bytes]:
    """Yield the elements of an array, or the lines of a body outside brackets. A bracket that is never closed takes the rest."""
    depth, begin = 0, 0
    for match in STRING_OR_BOUNDARY.finditer(body):
        token = match[0]
        depth += token in (b"[", b"{")
        if (depth == 1 and token in (b"[", b",", b"]")) if is_array else (depth <= 0 and token == b"\n"):
            yield body[begin : match.start()]
            begin = match.end()
        depth -= token in (b"]", b"}")
    yield body[begin:]


def _is_readable(event: bytes) -> bool:
    """Say whether silver can read it: an object, which may hold NaN, or null."""
    try:
        return event == b"null" or read_object(event.decode(errors="replace")) is not None
    except (UnreadableError, RecursionError):
        return False


def _unreadable_rows(lines: list[bytes], shape: PayloadFormat) -> int:
    """Only lines with a quote, or not as many separators as columns ask for, have to be read."""
    separator, quote, count = shape.separator.encode(), shape.quote.encode(), len(shape.columns) - 1
    odd = [line.decode(errors="replace") for line in lines if line.count(separator) != count or quote in line]
    return len(odd) - csv_rows(pa.array(odd, pa.string()), pa.nulls(len(odd), pa.string()), shape).is_readable.true_count if odd else 0


_DECODERS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "x-gzip": lambda: zlib.decompressobj(wbits=31),
    "zstd": lambda: zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW_LOG}),
}
