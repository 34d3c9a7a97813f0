"""One of Spark's servers, as the host sees it: a process behind the fence, the port that leads to it, the snapshots that it is told of."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass

from orchestration.conf.model import Conf
from orchestration.engine.jars import fetched
from orchestration.engine.java import require_java
from orchestration.errors import TidemarkError
from orchestration.serving.bi.messages import Order, Service
from orchestration.serving.bi.password import by_password
from orchestration.serving.bi.relay import Greeting, HostSide, Streams
from orchestration.serving.bi.sandbox import SCRATCH, USER, is_root
from orchestration.serving.bi.sandboxed_process import started
from orchestration.serving.bi.snapshot_follower import Following
from orchestration.serving.bi.snapshots import Choice

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """`seconds`: the longest that a query may take, 0: as long as it likes. `scratch_bytes`: of memory, for what does not fit the heap."""

    service: Service
    host: str
    port: int
    secret: str
    choice: Choice
    driver_memory: str
    scratch_bytes: int
    seconds: int
    is_fenced: bool


def serve(conf: Conf, asked: Asked, tell: Tell, tell_log: Tell) -> None:
    """Until Ctrl-C or SIGTERM; TidemarkError where it cannot begin, or ends by itself.

    `tell`: what happens, a sentence each; `tell_log`: each line of Spark's own log.
    """
    require_java()
    if not conf.lake.is_dir():
        raise TidemarkError(f"there is no lake in {conf.lake} yet that could be served: make one with `tidemark run --once`.")
    with _reserved(asked.host, asked.port) as port:
        asyncio.run(_until_signalled(_served(conf, asked, port, tell, tell_log)))


async def _until_signalled(work: Coroutine[None, None, None]) -> None:
    task = asyncio.create_task(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _served(conf: Conf, asked: Asked, port: socket.socket, tell: Tell, tell_log: Tell) -> None:
    ours, theirs = socket.socketpair()
    order = Order(
        asked.service,
        port=asked.port if asked.is_fenced else _free_port(),
        door=theirs.fileno(),
        jars=[str(jar) for jar in fetched()],
        scratch=SCRATCH,
        driver_memory=asked.driver_memory,
        cores=conf.engine.cores,
        seconds=asked.seconds,
        is_fenced=asked.is_fenced,
        token=asked.secret if asked.service is Service.CONNECT else None,
        user=USER if asked.is_fenced and is_root() else None,
    )
    with ours:
        async with started(conf.lake, order, theirs, asked.scratch_bytes, tell_log) as behind:
            following = Following(conf, asked.choice, behind, tell)
            await following.begin()
            host = HostSide(ours, _greeting(asked, following))
            async with host.open(port):
                tell(_ready(asked, following))
                looking = asyncio.create_task(following.go_on(host.has_clients))
                try:
                    raise await behind.ended()
                finally:
                    looking.cancel()


def _greeting(asked: Asked, following: Following) -> Greeting:
    """A client of notebooks says its token to the server itself, within its protocol."""
    by_word = by_password(asked.secret) if asked.service is Service.THRIFT else None

    async def greeted(client: Streams, server: Streams) -> bool:
        if by_word is not None and not await by_word(client, server):
            return False
        await following.look()
        return True

    return greeted


def _ready(asked: Asked, following: Following) -> str:
    return f"clients are served on {asked.host}:{asked.port}, {following.snapshot or 'a lake without snapshots'}"


@contextlib.contextmanager
def _reserved(host: str, port: int) -> Iterator[socket.socket]:
    """The port, before anything is started for it; nobody can connect yet."""
    try:
        [family, kind, *_, address] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise TidemarkError(f"{host} is no address of this machine ({error}).") from None
    with socket.socket(family, kind) as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            reserved.bind(address)
        except OSError as error:
            raise TidemarkError(f"port {port} of {host} cannot be had ({error.strerror}): give another one with --port.") from None
        yield reserved


def _free_port() -> int:
    """Without a fence the server shares this machine's loopback with all that is there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
