"""Heads of requests are waited for, but not for ever; the clock is the test's own."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvicorn
from uvicorn.server import ServerState

from orchestration.connectors.collector import http_protocol
from orchestration.connectors.collector.http_protocol import BoundedHttpProtocol
from tests.waiting import PATIENCE_SECONDS


class Skipping(asyncio.SelectorEventLoop):
    """Its clock is ahead by what was skipped."""

    skipped = 0.0

    def time(self) -> float:
        return super().time() + self.skipped


def test_who_sends_no_head_is_not_waited_for_but_one_request_may_follow_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 10 * PATIENCE_SECONDS)

    async def answer(scope: object, receive: object, send: Callable[[dict[str, object]], Awaitable[None]]) -> None:
        await pass_by(20 * PATIENCE_SECONDS)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def pass_by(seconds: float) -> None:
        skipping.skipped += seconds
        await asyncio.sleep(0.01)  # what is due by now comes first

    async def work() -> tuple[bytes, bytes]:
        config, loop = uvicorn.Config(answer, lifespan="off", log_config=None, timeout_keep_alive=1 << 30), asyncio.get_running_loop()
        config.load()
        server = await loop.create_server(lambda: BoundedHttpProtocol(config, ServerState(), {}), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        silent, silent_writer = await asyncio.open_connection("127.0.0.1", port)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 3)
        heads = [await reader.readuntil(b"\r\n\r\n") for _ in range(3)]
        await pass_by(20 * PATIENCE_SECONDS)
        answers = await silent.read(), b"".join(heads) + await reader.read()
        for closing_one in (silent_writer, writer):
            closing_one.close()
            await closing_one.wait_closed()
        server.close()
        return answers

    skipping = Skipping()
    with asyncio.Runner(loop_factory=lambda: skipping) as runner:
        nothing, answers = runner.run(work())
    assert (nothing, answers.count(b"204")) == (b"", 3)
