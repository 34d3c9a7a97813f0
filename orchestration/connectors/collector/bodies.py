"""Bodies of requests to events: unpacked within a bound, checked, and divided, each event in the bytes in which it was sent."""

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from backports import zstd

from silver.spec import BINARY

ONE_MESSAGE = ("application/octet-stream", "application/x-protobuf", "application/protobuf", "avro/binary", "application/avro")
JSON, LINES, CSV = "application/json", ("application/x-ndjson", "application/jsonl"), ("text/csv", "text/plain")
WINDOW_LOG = 23
"""The window of a zstd frame, as a power of two: 8 MiB, which every decoder of HTTP has (RFC 9659). A greater one is for memory bombs."""
PIECE_BYTES, MAX_MEMBERS = 64 * 1024, 10_000
_ONE, _SEVERAL = msgspec.json.Decoder(msgspec.Raw), msgspec.json.Decoder(list[msgspec.Raw])


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


def payloads(body: bytes, content_type: str, format: str) -> list[bytes]:
    """The events of a body; of CSV its lines, and one where they are no text."""
    kind = content_type.partition(";")[0].strip().lower()
    if format in BINARY:
        if kind and kind not in ONE_MESSAGE:
            raise RefusedError(415, f"this source takes {format}, a message a request; send Content-Type: {ONE_MESSAGE[0]}")
        return [body] if body else []
    if format == "csv":
        if kind and kind not in CSV:
            raise RefusedError(415, "this source takes CSV; send Content-Type: text/csv")
        events = body.split(b"\n")
        return events if events[-1] else events[:-1]
    if kind and kind not in (JSON, *LINES):
        raise RefusedError(415, "send Content-Type: application/json (an object or an array), or application/x-ndjson (an object a line)")
    try:
        events = list(map(bytes, _raw(body, is_lines=kind in LINES)))
    except (msgspec.DecodeError, RecursionError) as error:
        raise RefusedError(400, f"the body is not JSON: {error}") from error
    if odd := next((n for n, event in enumerate(events, 1) if event[:1] != b"{"), None):
        raise RefusedError(400, f"event {odd} is no JSON object")
    return events


def _raw(body: bytes, *, is_lines: bool) -> list[msgspec.Raw]:
    if is_lines:
        return _ONE.decode_lines(body)
    return _SEVERAL.decode(body) if body.lstrip()[:1] == b"[" else [_ONE.decode(body)]


_DECODERS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "x-gzip": lambda: zlib.decompressobj(wbits=31),
    "zstd": lambda: zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW_LOG}),
}
