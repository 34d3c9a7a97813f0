"""The screen of the shell: what is longer than it goes through a pager."""

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable


class Terminal(io.StringIO):
    """Text that is meant for a terminal, so that who writes it leaves nothing in it that steers one."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def shown(write: Callable[[], None], is_wide: bool) -> None:
    """What `write` prints, through a pager where that is longer than the screen. `is_wide`: it is a table, whose lines may be cut."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        write()
        return
    text = io.StringIO() if is_wide else Terminal()
    with contextlib.redirect_stdout(text):
        write()
    lines = text.getvalue().split("\n")
    size = shutil.get_terminal_size()
    is_long = len(lines) >= size.lines or (is_wide and max(map(len, lines)) > size.columns)
    pager = pager_command() if is_long else None
    if pager is None:
        write() if is_wide else sys.stdout.write(text.getvalue())
    else:
        _page(pager, text.getvalue())


def pager_command() -> list[str] | None:
    """What $PAGER says, else less if there is one; None: print."""
    wanted = os.environ.get("PAGER")
    if wanted is not None:
        return shlex.split(wanted) or None
    return ["less", "-S"] if shutil.which("less") else None


def _page(pager: list[str], text: str) -> None:
    try:
        process = subprocess.Popen(pager, stdin=subprocess.PIPE, text=True, encoding="utf-8", errors="backslashreplace")
    except OSError:
        sys.stdout.write(text)
        return
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it was left before the end
        process.stdin.write(text)
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    while process.poll() is None:
        with contextlib.suppress(KeyboardInterrupt):  # that one is for the pager
            process.wait()
