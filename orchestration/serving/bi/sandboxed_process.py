"""The process in the sandbox, seen from the host: start it, send it snapshots, read its log, end it."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import orchestration
from orchestration.engine.java import cache
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.serving.bi.messages import ServerSpec, SnapshotViews, ViewsReady
from orchestration.serving.bi.sandbox import Sandbox, java_home, mounts

COMMAND = (sys.executable, "-m", "orchestration.serving.bi.inside")
MAX_LINE_BYTES = 1 << 20
LOG_LINES = 100
"""Last lines of its log that are kept, to report why it ended."""
UNINFORMATIVE = ("\t", " ", "Caused by", "...", "WARNING", "at ")
"""Prefixes of log lines that do not say what happened."""


class SandboxedProcess:
    """The running process. Once it has ended, every call raises TidemarkError with the last line of its log."""

    def __init__(self, process: asyncio.subprocess.Process, on_log: Callable[[str], None]) -> None:
        """`on_log` receives each line of its log."""
        self._process = process
        self._log: deque[str] = deque(maxlen=LOG_LINES)
        self._on_log = on_log
        self._log_reader = asyncio.create_task(self._read_log())

    async def configure(self, spec: ServerSpec) -> None:
        """Send the spec; it must be the first message."""
        await self._send(spec.line())

    async def publish(self, views: SnapshotViews) -> ViewsReady:
        """Return when new sessions see these views and the server accepts clients."""
        await self._send(views.line())
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readline()
            if not line:
                raise await self.wait()
            return ViewsReady.of_line(line.decode())
        except (TypeError, ValueError):
            raise TidemarkError("the server sent an invalid answer: a client may have tampered with it, so it is stopped.") from None

    async def wait(self) -> TidemarkError:
        """Wait until it ends by itself; returns the error that says why."""
        code = await self._process.wait()
        await self._log_reader
        reasons = [line for line in self._log if line and not line.startswith(UNINFORMATIVE)]
        return TidemarkError(f"the server ended by itself, with exit code {code}: {reasons[-1] if reasons else 'its log is empty'}")

    async def kill(self) -> None:
        """End it, and every process that it started."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._log_reader.cancel()

    async def _send(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode())
            await self._process.stdin.drain()
        except ConnectionError:
            raise await self.wait() from None

    async def _read_log(self) -> None:
        """Drain stderr, or the process would block on a full pipe. Lines above MAX_LINE_BYTES are skipped."""
        assert self._process.stderr is not None
        while True:
            try:
                line = await self._process.stderr.readline()
            except ValueError:
                continue
            if not line:
                return
            self._log.append(line.decode(errors="backslashreplace").rstrip())
            self._on_log(self._log[-1])


@contextlib.asynccontextmanager
async def start_process(
    lake: Location, spec: ServerSpec, control_socket: socket.socket, scratch_bytes: int, on_log: Callable[[str], None]
) -> AsyncIterator[SandboxedProcess]:
    """Start the process, in a sandbox if the spec says so; it ends with the context. `control_socket`: its own end, closed here."""
    command, inherited = list(COMMAND), list[int]()
    with contextlib.ExitStack() as context, control_socket:
        if spec.is_sandboxed:
            sandbox = Sandbox([*mounts(map(Path, spec.jars)), lake.local], _environment(spec), scratch_bytes)
            sandbox.check()
            command, inherited = context.enter_context(sandbox.wrap(COMMAND))
        else:
            spec = replace(spec, scratch=context.enter_context(tempfile.TemporaryDirectory(prefix="tidemark-")))
        child = await asyncio.create_subprocess_exec(
            *command,
            env={} if spec.is_sandboxed else os.environ | _environment(spec),
            pass_fds=[control_socket.fileno(), *inherited],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=MAX_LINE_BYTES,
            start_new_session=True,  # Ctrl-C reaches this process only, which then ends the other
        )
        control_socket.close()
        process = SandboxedProcess(child, on_log)
        try:
            await process.configure(spec)
            yield process
        finally:
            await process.kill()


def _environment(spec: ServerSpec) -> dict[str, str]:
    """All environment variables of a sandboxed process; it inherits none."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": spec.scratch,
        "TMPDIR": spec.scratch,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "JAVA_HOME": str(java_home()),
        "TIDEMARK_CACHE": str(cache()),  # holds the class archive
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(Path(orchestration.__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
