"""MQTT for the benchmark of the collector: bytes of a publisher, and a tap that sees when the collector acknowledges a message."""

import asyncio
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

TOPIC = b"plant/press-0001/temperature"
PUBLISH, PUBACK = 0x30, 0x40
ANSWER_BYTES = 4


def connect(client_id: bytes) -> bytes:
    """MQTT 3.1.1, a session that ends with the connection."""
    body = b"\x00\x04MQTT\x04\x02\x00\x00" + struct.pack(">H", len(client_id)) + client_id
    return bytes((0x10, len(body))) + body


def publish(payload: bytes) -> bytes:
    """QoS 1. The packet identifier is always the same: mosquitto only repeats it in its answer."""
    body = struct.pack(">H", len(TOPIC)) + TOPIC + b"\x00\x01" + payload
    assert len(body) < 128  # or its length takes two bytes
    return bytes((PUBLISH | 2, len(body))) + body


class Tap:
    """Stands between broker and collector, at `port`. `delays`: seconds from each message to its acknowledgement."""

    def __init__(self, broker: int) -> None:
        self._broker, self.port = broker, 0
        self.delays: list[float] = []
        self._sent: dict[bytes, float] = {}

    async def serve(self, is_listening: threading.Event, is_over: threading.Event) -> None:
        async with await asyncio.start_server(self._connect, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            is_listening.set()
            while not is_over.is_set():
                await asyncio.sleep(0.1)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_broker, to_broker = await asyncio.open_connection("127.0.0.1", self._broker)
        await asyncio.gather(_pump(from_broker, writer, self._see_message), _pump(reader, to_broker, self._see_acknowledgement))

    def _see_message(self, kind: int, body: bytes) -> None:
        if kind == PUBLISH:
            end = 2 + int.from_bytes(body[:2], "big")
            self._sent[body[end : end + 2]] = time.perf_counter()

    def _see_acknowledgement(self, kind: int, body: bytes) -> None:
        if kind == PUBACK:
            self.delays.append(time.perf_counter() - self._sent.pop(body[:2]))


@contextmanager
def tapping(broker: int) -> Iterator[Tap]:
    tap, is_listening, is_over = Tap(broker), threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(tap.serve(is_listening, is_over)))
    thread.start()
    is_listening.wait()
    try:
        yield tap
    finally:
        is_over.set()
        thread.join()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, see: Callable[[int, bytes], None]) -> None:
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readexactly(2)
            while head[-1] & 128:
                head += await reader.readexactly(1)
            body = await reader.readexactly(sum((byte & 127) << 7 * n for n, byte in enumerate(head[1:])))
            see(head[0] & 0xF0, body)
            writer.write(head + body)
            await writer.drain()
    writer.close()
