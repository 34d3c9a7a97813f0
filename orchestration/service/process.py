"""Processes of `tidemark up`: started, heard, ended with all that they have started; parts are started again, with growing pauses."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil

from orchestration.service.child import PARENT, command_line
from orchestration.service.journal import parsed
from orchestration.service.parts import Part
from orchestration.supervisor.service_state import STOPPED, PartState, State
from orchestration.utc import to_iso

LONGEST_PAUSE_SECONDS = 60.0
SOUND_SECONDS = 600.0
"""A part that ran so long begins anew to count pauses and errors that are alike."""
MOST_ALIKE = 5
"""Ends with the same error in a row, after which it is taken for a lasting one."""
DRAIN_SECONDS, HUNG_SECONDS, LONG_DRAIN_SECONDS = 60.0, 5.0, 600.0
"""After SIGTERM, before SIGKILL; the second where it hangs, the third where only the conf has changed."""
POLL_SECONDS = 0.1
Write = Callable[[str, str], None]
"""To the journal: who says it, and a line."""


class Command:
    """A command of `tidemark` that runs, and all that it has started. `error`: how it broke, if it did, and the verdict of child.py."""

    def __init__(self, name: str, arguments: Sequence[str], conf: Path, write: Write) -> None:
        """Start the process. The main thread must call this: the kernel ends the process when the thread that started it ends."""
        self._process = subprocess.Popen(
            command_line(conf, *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="backslashreplace",
            env=os.environ | {PARENT: str(os.getpid())},
            start_new_session=True,  # Ctrl-C in a terminal is for `up` alone, and all that the process starts can be found
        )
        self.pid, self.started, self.begun_at = self._process.pid, _started(self._process.pid), time.monotonic()
        self.error: tuple[str, str] | None = None
        self._thread = threading.Thread(target=self._hear, args=(name, write), name=name)
        self._thread.start()

    def exit_code(self) -> int | None:
        """None while it runs; once it has ended, nothing is left of it."""
        code = self._process.poll()
        if code is not None:
            self.end(0.0)
        return code

    def drain(self) -> None:
        """Tell it to end after what it is about."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def end(self, seconds: float) -> None:
        """Drain, at most so long; then nothing of it is left."""
        self.drain()
        end_session(self.pid, self.started, seconds)
        self._process.wait()
        self._thread.join()

    def _hear(self, name: str, write: Write) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as said:
            for line in said:
                facts = parsed(line)
                if "error" in facts:
                    self.error = str(facts["error"]), str(facts.get("verdict"))
                write(name, line.rstrip("\n"))


class Process:
    """A part: kept running."""

    def __init__(self, part: Part, conf: Path, write: Write) -> None:
        """Not started yet."""
        self.part, self._conf, self._write = part, conf, write
        self._command: Command | None = None
        self._pauses = self._alike = 0
        self._has_failed = False
        self._again_at = 0.0
        self._replaced: tuple[str, float] | None = None
        self.state = PartState(part.name, "waiting", None, None, to_iso(datetime.now(UTC)), 0, None)

    def look(self) -> None:
        """Start it, again where it has ended, when it is time; a stopped part stays."""
        if self._command is not None:
            if (code := self._command.exit_code()) is not None:
                self._ended(self._command, code)
            elif self._replaced is not None and time.monotonic() > self._replaced[1]:
                self._command.end(0.0)
        elif self.state.state == "waiting" and time.monotonic() >= self._again_at:
            self._command = Command(self.part.name, self.part.arguments, self._conf, self._write)
            self._is("running", self.state.reason, self.state.restarts + self._has_failed)
            self._has_failed = False

    @property
    def is_draining(self) -> bool:
        """Whether it is to end, and then to be started again."""
        return self._replaced is not None

    def start_again(self, reason: str) -> None:
        """Once it has drained, or where it stopped: what it was started with has changed."""
        self._pauses = self._alike = 0
        if self._command is None:
            self._wait(0.0, reason)
        else:
            self._replaced = reason, time.monotonic() + LONG_DRAIN_SECONDS
            self.drain()

    def break_off(self, reason: str) -> None:
        """End it, and start it again: it hangs, so it will hardly drain."""
        self.end(HUNG_SECONDS)
        self._has_failed = True
        self._wait(0.0, reason)

    def hangs(self, reason: str | None) -> None:
        """Say so, or that it does not any more."""
        if self._command is not None and (reason is not None) != (self.state.state == "hangs"):
            self._is("hangs" if reason else "running", reason or self.state.reason)

    def drain(self) -> None:
        """Tell it to end after what it is about."""
        if self._command is not None:
            self._command.drain()

    def end(self, seconds: float = DRAIN_SECONDS) -> None:
        """Drain, at most so long; then nothing of it is left."""
        if self._command is not None:
            self._command.end(seconds)
            self._command = None
            self._is("stopped", self.state.reason)

    def _ended(self, command: Command, code: int) -> None:
        self._command = None
        if self._replaced is not None:
            (reason, _), self._replaced = self._replaced, None
            self._wait(0.0, reason)
            return
        reason, verdict = command.error or (f"it ended by {cause(code)}", "passing")
        if time.monotonic() - command.begun_at > SOUND_SECONDS:
            self._pauses = self._alike = 0
        self._alike = self._alike + 1 if verdict == "unknown" and reason == self.state.reason else 1
        if verdict == "lasting" or self._alike >= MOST_ALIKE:
            self._is("stopped", f"{reason}\n  {STOPPED}")
        else:
            self._pauses += 1
            self._has_failed = True
            self._wait(min(2.0 ** (self._pauses - 1), LONGEST_PAUSE_SECONDS), reason)

    def _wait(self, seconds: float, reason: str) -> None:
        self._again_at = time.monotonic() + seconds
        self._is("waiting", reason)

    def _is(self, state: State, reason: str | None, restarts: int | None = None) -> None:
        pid, started = (self._command.pid, self._command.started) if self._command is not None else (None, None)
        count = self.state.restarts if restarts is None else restarts
        self.state = PartState(self.part.name, state, pid, started, to_iso(datetime.now(UTC)), count, reason)
        self._write("up", f"{self.part.name}: {state}" + (f": {reason}" if reason and state != "running" else ""))


def end_session(leader: int, started: float | None, seconds: float) -> None:
    """End all processes of the session that this process began at that time: SIGTERM to the process, SIGKILL to what is left of them."""
    if (there := _started(leader)) is not None and started is not None and there != started:
        return  # another process has the number now, so that the session is gone
    end = time.monotonic() + seconds
    if there is not None and seconds:
        _signal(leader, signal.SIGTERM)
    while [*session_of(leader)] and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    for process in session_of(leader):
        _signal(process.pid, signal.SIGKILL)


def session_of(leader: int) -> Iterator[psutil.Process]:
    """Processes that are there, not those that have ended and wait to be asked how."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it has ended meanwhile
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _signal(process: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def _started(process: int) -> float | None:
    try:
        return float(psutil.Process(process).create_time())
    except psutil.Error:
        return None


def cause(code: int) -> str:
    """Describe how a process ended, from the exit code as Popen has it."""
    return signal.Signals(-code).name if code < 0 else f"itself, with exit code {code}"
