"""Shows text of the shell, through a pager if it is longer than the screen."""

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable

import click


class Terminal(io.StringIO):
    """A buffer that says it is a terminal, so that writers escape control characters."""

    def isatty(self) -> bool:
        """Always true."""
        return True


def page(write: Callable[[], None], is_wide: bool) -> None:
    """Show what `write` prints, through $PAGER or less if it is longer than the screen. `is_wide`: a table, whose lines less cuts."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        write()
        return
    text = io.StringIO() if is_wide else Terminal()
    with contextlib.redirect_stdout(text):
        write()
    lines = text.getvalue().split("\n")
    size = shutil.get_terminal_size()
    is_long = len(lines) >= size.lines or (is_wide and max(map(len, lines)) > size.columns)
    if is_long and os.environ.get("PAGER") != "":
        os.environ.setdefault("LESS", "-S")
        click.echo_via_pager(text.getvalue())
    elif is_wide:
        write()
    else:
        sys.stdout.write(text.getvalue())
