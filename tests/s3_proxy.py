"""A proxy before an S3 store, a process of its own: it counts requests by kind, delays them, and does to some what networks do.

Requests go through as they are, `Host` too, so their signatures hold.
"""

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import urlopen

from tests.http_messages import PIECE, Head, Held, body
from tests.server_process import ServerProcess, free_ports
from tests.waiting import until

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("GET", "HEAD", "LIST", "PUT", "COPY", "DELETE")
"""As stores bill them: the parts of a large PUT are PUT, and a DELETE of many keys is one."""
CONTROL = "/-/"
"""Before the paths that the proxy answers itself; no bucket has that name."""


@dataclass(frozen=True)
class Fault:
    """Happens to every nth request of these kinds whose key has the pattern, so many times at most.

    `lose`: the request is done, and its answer cut off. `refuse`: it is not done, and answered 503. `cut`: the connection ends in the
    middle of it. `delay`: it waits so many seconds. `wait`: the proxy has all of it, and passes it on when faults are set anew. `hold`: it
    waits until its client is gone, and is not done; `stall`: it is done, and its answer waits so long.
    """

    does: Literal["lose", "refuse", "cut", "delay", "wait", "hold", "stall"]
    kinds: Sequence[str] = KINDS
    key: str = ""
    every: int = 1
    most: int | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Request:
    """A request that has ended. `status`: 0 where no answer came. `done_to_it`: the faults that it met. `client`: its address.

    `agent`: what it calls itself.
    """

    kind: str
    key: str
    status: int
    sent_bytes: int
    received_bytes: int
    done_to_it: Sequence[str]
    client: str
    agent: str


class Proxy(ServerProcess):
    """Clients take its `endpoint` in place of the store's."""

    def __init__(self, folder: Path, store: str, address: str = "127.0.0.1", inside: Sequence[str] = ()) -> None:
        """`store`: its endpoint. `inside`: begins a command on the machine of that address."""
        self._folder, self._store, self._address, self._inside = folder, store, address, inside
        (self._port,) = free_ports(1)

    @property
    def endpoint(self) -> str:
        return f"http://{self._address}:{self._port}"

    def start(self) -> None:
        command = [*self._inside, sys.executable, "-m", "tests.s3_proxy", self._address, str(self._port), self._store]
        self.launch(command, self._folder / "proxy.log", cwd=ROOT)
        until(lambda: self.listens(self._port, self._address))

    def set_faults(self, *faults: Fault, seconds: float = 0.0) -> None:
        """These alone from now on, and so much latency for every request."""
        meant = [asdict(fault) for fault in faults] + ([asdict(Fault("delay", seconds=seconds))] if seconds else [])
        self._control("faults", json.dumps(meant).encode())

    def requests(self) -> list[Request]:
        """List what has ended since the start, or since `forget`."""
        return [Request(**request) for request in json.loads(self._control("requests"))]

    def counts(self, key: str = "") -> Counter[str]:
        """Count them by kind; those whose key has the pattern."""
        return Counter(request.kind for request in self.requests() if re.search(key, request.key))

    def met(self) -> int:
        """Count how often the faults were met since they were set, also by requests that have not ended."""
        return int(self._control("met"))

    def forget(self) -> None:
        self._control("forget", b"")

    def _control(self, path: str, body: bytes | None = None) -> bytes:
        with urlopen(f"{self.endpoint}{CONTROL}{path}", body) as answer:
            content: bytes = answer.read()
        return content


class Forwarder:
    """What the process does."""

    def __init__(self, store: str) -> None:
        address = urlsplit(store)
        self._host, self._port = address.hostname, address.port
        self._faults: dict[Fault, list[int]] = {}
        """How many requests each could meet, and how many it met."""
        self._happened = 0
        self._set_anew = asyncio.Event()
        self._requests: list[Request] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        store: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while True:
                head = Head(await reader.readuntil(b"\r\n\r\n"))
                if head.path.startswith(CONTROL):
                    await self._answer(head, reader, writer)
                    continue
                if store is None or store[0].at_eof():
                    store = await asyncio.open_connection(self._host, self._port)
                await self._forward(head, (reader, writer), store)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # one of the two has ended it, or a fault
        finally:
            for side in (writer, store[1] if store else None):
                if side:
                    side.close()

    async def _forward(self, head: Head, client: "Side", store: "Side") -> None:
        faults, sent, received, status = self._met(head), 0, 0, 0
        done = [fault.does for fault in faults]
        is_stalled = "stall" in done
        self._happened += 0 if is_stalled or "wait" in done else len(done)
        try:
            if head.waits_for_word:
                client[1].write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await asyncio.sleep(sum(fault.seconds for fault in faults))
            if "wait" in done:
                await body(head, client[0], held := Held())
                client = held, client[1]
                self._happened += len(done)
                await self._set_anew.wait()
            if "hold" in done:
                await _gone(client[0])
            if "refuse" in done:
                await body(head, client[0], None)
                client[1].write(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n")
                status = 503
                return
            store[1].write(head.without_word)
            sent = await body(head, client[0], store[1], half="cut" in done)
            answer = Head(await store[0].readuntil(b"\r\n\r\n"))
            if is_stalled:
                self._happened += len(done)  # only now: who kills the client is sure that the request is done
                await _gone(client[0])
            lost = "lose" in done
            received = 0 if answer.has_no_body_after(head) else await body(answer, store[0], None if lost else client[1], before=answer.raw)
            if lost:
                raise ConnectionResetError
            if answer.has_no_body_after(head):
                client[1].write(answer.raw)
            status = answer.status
            await client[1].drain()
        finally:
            address, agent = client[1].get_extra_info("peername")[0], head.headers.get("user-agent", "")
            self._requests.append(Request(head.kind, head.key, status, sent, received, done, address, agent))

    def _met(self, head: Head) -> list[Fault]:
        met = []
        for fault, counted in self._faults.items():
            if head.kind in fault.kinds and re.search(fault.key, head.key) and (fault.most is None or counted[1] < fault.most):
                counted[0] += 1
                if counted[0] % fault.every == 0:
                    counted[1] += 1
                    met.append(fault)
        return met

    async def _answer(self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        content = await reader.readexactly(int(head.headers.get("content-length", 0)))
        answer = b""
        match head.path.removeprefix(CONTROL):
            case "faults":
                self._happened = 0
                self._set_anew.set()
                self._set_anew = asyncio.Event()
                self._faults = {Fault(**fault | {"kinds": tuple(fault["kinds"])}): [0, 0] for fault in json.loads(content)}
            case "met":
                answer = str(self._happened).encode()
            case "forget":
                self._requests.clear()
            case "requests":
                answer = json.dumps([asdict(request) for request in self._requests]).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))
        await writer.drain()


Side = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _gone(reader: asyncio.StreamReader) -> None:
    """Wait until the client is gone."""
    while await reader.read(PIECE):
        pass
    raise ConnectionResetError


async def main(address: str, port: int, store: str) -> None:
    forwarder = Forwarder(store)
    async with await asyncio.start_server(forwarder.serve, address, port, limit=1 << 20) as server:
        await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
