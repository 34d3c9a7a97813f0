"""A shell on a pseudo-terminal, typed into and read as a person would, with the DuckDB engine over the lake in a folder."""

import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path
from types import TracebackType

from tests.bench.processes import used
from tests.waiting import PATIENCE_SECONDS, until

ROOT = Path(__file__).parents[4]
STARTED = """
import fcntl, os, sys, termios
from pathlib import Path
if sys.stdin.isatty():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C on it is a signal
from orchestration.serving.sql.answer import Limits
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.serving.sql.session import Session
from orchestration.serving.sql.shell import script
from orchestration.serving.sql.shell_prompt import shell
from tests.lakes import conf
made = conf(Path(sys.argv[1]))
session = Session(DuckDbEngine(made, Limits(seconds=120)), made)
code = shell(session) if sys.stdin.isatty() else script(session, sys.stdin)
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # as cli.app.main leaves: DuckDB may complain when Python cleans up
"""
STEERING = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_=>])")
"""What a terminal would do and not show."""
PROMPT = r"\ntidemark> ?$"
"""Where a line begins with it; it comes within one as well, when that is drawn anew."""


def command(folder: Path) -> list[str]:
    """That starts a shell over the lake in a folder."""
    return [sys.executable, "-c", STARTED, str(folder)]


def environment(folder: Path, **more: str) -> dict[str, str]:
    """In which nothing of who runs the test is kept or changed."""
    own = {"XDG_STATE_HOME": str(folder / "state"), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "PAGER": "", "PYTHONPATH": str(ROOT)}
    return os.environ | own | more


class Terminal:
    """Of 30 lines and 100 columns. Leaving it ends the shell."""

    def __init__(self, folder: Path, **more: str) -> None:
        """`more`: of the environment."""
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            command(folder),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment(folder, **more),
            cwd=ROOT,
            start_new_session=True,
        )
        os.close(slave)
        self._unread = b""

    def __enter__(self) -> "Terminal":
        self.reads(PROMPT)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def types(self, keys: str) -> None:
        """Press them."""
        os.write(self._master, keys.encode())

    def answers(self, line: str) -> str:
        """Enter the line; what is shown until the next prompt is there."""
        self.types(line + "\r")
        return self.reads(PROMPT)

    def reads(self, text: str) -> str:
        """What is shown, once the text (a regular expression) is; without what steers the terminal."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not re.search(text, shown := self._shown()):
            assert time.monotonic() < end, f"{text!r} did not come; {self._shown()!r}"
            if select.select([self._master], [], [], 0.5)[0]:
                self._unread += os.read(self._master, 65536)
        self._unread = b""
        return shown

    def works(self) -> None:
        """Returns once it has spent a second of CPU."""
        before, _ = used(self.process.pid)
        until(lambda: used(self.process.pid)[0] > before + 1)

    def left(self) -> int:
        """Its exit code, once it is left."""
        return self.process.wait(PATIENCE_SECONDS)

    def _shown(self) -> str:
        return STEERING.sub("", self._unread.decode("utf-8", "replace")).replace("\r", "")
