"""One of Spark's servers, seen from the host: the sandboxed process, the port that leads to it, and the snapshots that it serves."""

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
from orchestration.serving.bi.messages import ServerSpec, Service
from orchestration.serving.bi.password import password_handshake
from orchestration.serving.bi.relay import Handshake, HostRelay, Streams
from orchestration.serving.bi.sandbox import SCRATCH, USER, is_root
from orchestration.serving.bi.sandboxed_process import start_process
from orchestration.serving.bi.snapshots import SnapshotChoice, SnapshotFollower

Notify = Callable[[str], None]


@dataclass(frozen=True)
class ServerConfig:
    """`seconds`: the longest query, 0: no limit. `scratch_bytes`: of memory, for what does not fit the heap."""

    service: Service
    host: str
    port: int
    token: str
    choice: SnapshotChoice
    driver_memory: str
    scratch_bytes: int
    seconds: int
    is_sandboxed: bool


def serve(conf: Conf, config: ServerConfig, notify: Notify, on_log: Notify) -> None:
    """Serve until Ctrl-C or SIGTERM; TidemarkError if the server cannot start, or ends by itself.

    `notify` receives what happens, one sentence a call; `on_log` each line of Spark's log.
    """
    require_java()
    if not conf.lake.is_dir():
        raise TidemarkError(f"there is no lake in {conf.lake} yet: create it with `tidemark run --once`.")
    with _bind(config.host, config.port) as port:
        asyncio.run(_until_signalled(_serve(conf, config, port, notify, on_log)))


async def _until_signalled(work: Coroutine[None, None, None]) -> None:
    task = asyncio.create_task(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _serve(conf: Conf, config: ServerConfig, port: socket.socket, notify: Notify, on_log: Notify) -> None:
    ours, theirs = socket.socketpair()
    spec = ServerSpec(
        config.service,
        port=config.port if config.is_sandboxed else _free_port(),
        control_socket=theirs.fileno(),
        jars=[str(jar) for jar in fetched()],
        scratch=SCRATCH,
        driver_memory=config.driver_memory,
        cores=conf.engine.cores,
        seconds=config.seconds,
        is_sandboxed=config.is_sandboxed,
        token=config.token if config.service is Service.CONNECT else None,
        user=USER if config.is_sandboxed and is_root() else None,
    )
    with ours:
        async with start_process(conf.lake, spec, theirs, config.scratch_bytes, on_log) as process:
            follower = SnapshotFollower(conf, config.choice, process, notify)
            await follower.start()
            relay = HostRelay(ours, _handshake(config, follower))
            async with relay.open(port):
                notify(f"clients are served on {config.host}:{config.port}, {follower.snapshot or 'a lake without snapshots'}")
                refreshing = asyncio.create_task(follower.refresh_forever(relay.has_clients))
                try:
                    raise await process.wait()
                finally:
                    refreshing.cancel()


def _handshake(config: ServerConfig, follower: SnapshotFollower) -> Handshake:
    """Check the password of a JDBC client. A notebook sends its token to the server itself, within its protocol."""
    check_password = password_handshake(config.token) if config.service is Service.THRIFT else None

    async def handshake(client: Streams, server: Streams) -> bool:
        if check_password is not None and not await check_password(client, server):
            return False
        await follower.refresh()
        return True

    return handshake


@contextlib.contextmanager
def _bind(host: str, port: int) -> Iterator[socket.socket]:
    """Reserve the port before anything is started for it; clients cannot connect yet."""
    try:
        [family, kind, *_, address] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise TidemarkError(f"{host} is no address of this machine ({error}).") from None
    with socket.socket(family, kind) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(address)
        except OSError as error:
            raise TidemarkError(f"port {port} of {host} is not available ({error.strerror}): choose another one with --port.") from None
        yield bound


def _free_port() -> int:
    """Without a sandbox the server shares the loopback interface of this machine, so its own port must be a free one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
