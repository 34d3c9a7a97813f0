"""Shows text of the shell, through a pager if it is longer than the screen."""

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable


class Terminal(io.StringIO):
    """A buffer that says it is a terminal, so that writers escape control characters."""

    def isatty(self) -> bool:
        """Always true."""
        return True


def page(write: Callable[[], None], is_wide: bool) -> None:
    """Show what `write` prints, through a pager if it is longer than the screen. `is_wide`: a table, whose lines the pager may cut."""
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
        _run_pager(pager, text.getvalue())


def pager_command() -> list[str] | None:
    """The command in $PAGER, or less if it is installed; None: print without a pager."""
    wanted = os.environ.get("PAGER")
    if wanted is not None:
        return shlex.split(wanted) or None
    return ["less", "-S"] if shutil.which("less") else None


def _run_pager(pager: list[str], text: str) -> None:
    try:
        process = subprocess.Popen(pager, stdin=subprocess.PIPE, text=True, encoding="utf-8", errors="backslashreplace")
    except OSError:
        sys.stdout.write(text)
        return
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin:  # the user may quit it before the end
        process.stdin.write(text)
    while process.poll() is None:
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C belongs to the pager
            process.wait()
