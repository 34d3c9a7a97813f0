"""The process behind the fence, as the host holds it: started, told of cuts, ended."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import orchestration
from orchestration.engine.jars import cache
from orchestration.errors import TidemarkError
from orchestration.serving.bi.messages import Cut, Order, Shown
from orchestration.serving.bi.mounts import java_home, provisions
from orchestration.serving.bi.sandbox import Fence

COMMAND = (sys.executable, "-m", "orchestration.serving.bi.inside")
LONGEST_LINE = 1 << 20
LINES = 100
"""Of its log, kept to tell why it ended."""
UNTOLD = ("\t", " ", "Caused by", "...", "WARNING", "at ")
"""How lines of a log begin that do not say what happened."""


class Behind:
    """The process; whoever asks it while it is ending gets TidemarkError with its last words."""

    def __init__(self, process: asyncio.subprocess.Process, tell_log: Callable[[str], None]) -> None:
        """`tell_log`: each line that it logs."""
        self._process = process
        self._said: deque[str] = deque(maxlen=LINES)
        self._tell_log = tell_log
        self._listening = asyncio.create_task(self._listen())

    async def order(self, order: Order) -> None:
        """The first thing to say to it."""
        await self._say(order.line())

    async def show(self, cut: Cut) -> Shown:
        """Comes back when new sessions see the cut, and clients are taken."""
        await self._say(cut.line())
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readline()
            if not line:
                raise await self.ended()
            return Shown.of_line(line.decode())
        except (TypeError, ValueError):
            raise TidemarkError("the server gave no sensible answer: a client may have meddled with it, so it is ended.") from None

    async def ended(self) -> TidemarkError:
        """Comes back when it has ended by itself, with what there is to say about it."""
        code = await self._process.wait()
        await self._listening
        said = [line for line in self._said if line and not line.startswith(UNTOLD)]
        return TidemarkError(f"the server ended by itself, with exit code {code}: {said[-1] if said else 'it said nothing'}")

    async def end(self) -> None:
        """Whatever it is doing; what it has started ends with it."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._listening.cancel()

    async def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode())
            await self._process.stdin.drain()
        except ConnectionError:
            raise await self.ended() from None

    async def _listen(self) -> None:
        """Somebody has to read its log, or it would wait; a line that is too long to be one is left out."""
        assert self._process.stderr is not None
        while True:
            try:
                line = await self._process.stderr.readline()
            except ValueError:
                continue
            if not line:
                return
            self._said.append(line.decode(errors="backslashreplace").rstrip())
            self._tell_log(self._said[-1])


@contextlib.asynccontextmanager
async def started(
    lake: Path, order: Order, door: socket.socket, scratch_bytes: int, tell_log: Callable[[str], None]
) -> AsyncIterator[Behind]:
    """The process, with its order, behind a fence if the order says so; it ends with the context. `door`: its end, kept by it alone."""
    with contextlib.ExitStack() as folders, door:
        if not order.is_fenced:
            order = replace(order, scratch=folders.enter_context(tempfile.TemporaryDirectory(prefix="tidemark-")))
        with _surrounded(lake, order, scratch_bytes) as (command, inherited, environment):
            process = await asyncio.create_subprocess_exec(
                *command,
                env=environment,
                pass_fds=[door.fileno(), *inherited],
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LONGEST_LINE,
                start_new_session=True,  # a Ctrl-C is for this process, which then ends the other
            )
        door.close()
        behind = Behind(process, tell_log)
        try:
            await behind.order(order)
            yield behind
        finally:
            await behind.end()


@contextlib.contextmanager
def _surrounded(lake: Path, order: Order, scratch_bytes: int) -> Iterator[tuple[Sequence[str], Sequence[int], Mapping[str, str]]]:
    """Command, file descriptors and environment."""
    if not order.is_fenced:
        yield COMMAND, [], os.environ | _environment(order)
        return
    fence = Fence([*provisions(map(Path, order.jars)), lake], _environment(order), scratch_bytes)
    fence.try_out()
    with fence.around(COMMAND) as (command, inherited):
        yield command, inherited, {}


def _environment(order: Order) -> dict[str, str]:
    """All that the process knows of the environment, where it is behind a fence."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": order.scratch,
        "TMPDIR": order.scratch,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "JAVA_HOME": str(java_home()),
        "TIDEMARK_CACHE": str(cache()),  # where the class archive is
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(Path(orchestration.__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
