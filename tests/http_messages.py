"""Requests and answers of HTTP as they pass: their heads, and where each ends."""

import asyncio
import re
from urllib.parse import unquote

PIECE = 1 << 16


class Head:
    """The first line and the headers of a request, or of an answer."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._first, *lines = raw.decode("latin1").rstrip("\r\n").split("\r\n")
        self.headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    @property
    def path(self) -> str:
        return self._first.split()[1]

    @property
    def status(self) -> int:
        return int(self._first.split()[1])

    @property
    def key(self) -> str:
        """The bucket, and the key or the prefix that is listed."""
        path, _, query = self.path.partition("?")
        prefix = re.search(r"(?:^|&)prefix=([^&]*)", query)
        return unquote(path.lstrip("/") + (f"?{prefix[1]}" if prefix else ""))

    @property
    def kind(self) -> str:
        method, (_, _, query) = self._first.split()[0], self.path.partition("?")
        if method == "POST":
            return "DELETE" if re.search(r"(^|&)delete\b", query) else "PUT"
        if method == "GET" and re.search(r"(^|&)(list-type|prefix|delimiter)=", query):
            return "LIST"
        return "COPY" if "x-amz-copy-source" in self.headers else method

    @property
    def waits_for_word(self) -> bool:
        """Whether the client sends the body when it is told to."""
        return "100-continue" in self.headers.get("expect", "")

    @property
    def without_word(self) -> bytes:
        """The head without `Expect`, which no client signs: the proxy has given the word."""
        return re.sub(rb"\r\nexpect:[^\r]*", b"", self.raw, flags=re.IGNORECASE)

    def has_no_body_after(self, request: "Head") -> bool:
        return request.kind == "HEAD" or self.status in {204, 304}


class Held(asyncio.StreamReader):
    """A body that the proxy has, whatever becomes of its client."""

    write = asyncio.StreamReader.feed_data

    async def drain(self) -> None:
        """Do nothing: it takes all that comes."""


async def body(
    head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter | Held | None, *, half: bool = False, before: bytes = b""
) -> int:
    """Pass a body on as it comes, to nobody where there is no writer. Returns its bytes. `half`: half of it, and then the end."""
    write = writer.write if writer else lambda _: None
    write(before)
    length, count = int(head.headers.get("content-length", 0)), 0
    while chunk := await _chunk(head, reader, length - count):
        if half and (count + len(chunk)) * 2 >= length:
            write(chunk[: max(length // 2 - count, 0)])
            raise ConnectionResetError
        count += len(chunk)
        write(chunk)
        if writer:
            await writer.drain()
        if "chunked" in head.headers.get("transfer-encoding", "") and chunk.startswith(b"0\r\n"):
            break
    if half:
        raise ConnectionResetError
    return count


async def _chunk(head: Head, reader: asyncio.StreamReader, left: int) -> bytes:
    """Read the next piece of a body; of a chunked one a chunk with its frame."""
    if "chunked" not in head.headers.get("transfer-encoding", ""):
        piece = await reader.read(min(left, PIECE)) if left > 0 else b""
        if left > 0 and not piece:
            raise ConnectionResetError
        return piece
    line = await reader.readline()
    size = int(line.split(b";")[0], 16)
    if size:
        return line + await reader.readexactly(size + 2)
    while (trailer := await reader.readline()).strip():
        line += trailer
    return line + trailer
