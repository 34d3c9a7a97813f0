"""uvicorn's HTTP protocol, with bounds for the head of a request, and for a client that asks for another protocol."""

import asyncio
from operator import itemgetter
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 30.0  # for the head of the first request of a connection, and of one that follows another
MAX_HEAD_BYTES = 256 * 1024  # far above what proxies add; with what has come of the body in the same piece


class BoundedHttpProtocol(HttpToolsProtocol):
    """Closes a connection whose next head is late or long, and ignores `Upgrade`, as RFC 9110 (7.8) lets a server do.

    Where there are `most_connections`, the one that has waited longest for a head is closed for a new one; the new one if none waits.
    """

    most_connections = 1900  # fewer than the requests at once that a server takes before it answers 503

    _deadline: asyncio.TimerHandle | None = None
    _length = 0
    parser: "_Parser"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.parser = _Parser(self)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > self.most_connections:
            others = (other for other in self.connections if isinstance(other, BoundedHttpProtocol) and not other.transport.is_closing())
            waiting = [(deadline.when(), other) for other in others if (deadline := other._deadline) is not None]
            min(waiting, key=itemgetter(0))[1].transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._deadline is not None:
            self._length += len(data)
            if self._length > MAX_HEAD_BYTES:
                self.transport.close()

    def on_headers_complete(self) -> None:
        if self.parser.asks_for_another_protocol():
            return
        self._end_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self.parser.asks_for_another_protocol():
            super().on_message_complete()

    def head_without_upgrade(self) -> bytes:
        """Write the newest head again, without its `Upgrade`."""
        request_line = b"%s %s HTTP/%s\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        return request_line + b"".join(b"%s: %s\r\n" % header for header in self.headers if header[0] != b"upgrade") + b"\r\n"

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._await_head()

    def _await_head(self) -> None:
        self._end_waiting()
        if self.cycle is None or self.cycle.response_complete:  # and no other one was sent behind it already
            self._deadline, self._length = self.loop.call_later(HEAD_SECONDS, self.transport.close), 0

    def _end_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None


class _Parser(httptools.HttpRequestParser):
    """Reads a request with `Upgrade` as if it had none. httptools takes the body of such a request for the other protocol."""

    def __init__(self, protocol: BoundedHttpProtocol) -> None:
        super().__init__(protocol)
        self.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own parser
        self._protocol = protocol

    def asks_for_another_protocol(self) -> bool:
        """Tell whether this head has to be read again. A CONNECT is left: it asks for a tunnel, and has no body."""
        return bool(self.should_upgrade() and self.get_method() != b"CONNECT")

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]
        """Feed it, and after each head with `Upgrade` another parser: with `Connection: close` this one would skip all that follows."""
        parser = self
        while True:
            try:
                return super(_Parser, parser).feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                if not parser.asks_for_another_protocol():
                    raise
                data = self._protocol.head_without_upgrade() + data[upgrade.args[0] :]
                parser = self._protocol.parser = _Parser(self._protocol)
