"""uvicorn's HTTP protocol, with bounds for the head of a request: it would wait for it for ever, and keep any length."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 30.0
"""For the head of the first request of a connection, and of one that follows another."""
MAX_HEAD_BYTES = 256 * 1024
"""Far above what proxies add; with what has come of the body in the same piece."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """Closes a connection whose next head is late or long."""

    _deadline: asyncio.TimerHandle | None = None
    _length = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what comes while a head is awaited."""
        super().data_received(data)
        if self._deadline is not None:
            self._length += len(data)
            if self._length > MAX_HEAD_BYTES:
                self.transport.close()

    def on_headers_complete(self) -> None:
        self._end_waiting()
        super().on_headers_complete()

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
