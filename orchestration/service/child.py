"""A process as a part of `tidemark up`: it ends when `up` has ended, and reports how it ended in a line of JSON."""

import ctypes
import json
import os
import signal
import sys
from pathlib import Path

from orchestration.errors import TidemarkError, describe

PARENT = "TIDEMARK_UP"
"""The variable that holds the process of `up`."""
DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux: the kernel sends the signal when the thread that started this process ends, however it does."""
PREFIX = "tidemark: "
"""With which each line for people begins."""


def begin() -> None:
    """SIGTERM, which drains, for this process once `up` is gone; nothing where it is no part of one."""
    parent = os.environ.get(PARENT)
    if parent and sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGTERM)
        if os.getppid() != int(parent):  # it was gone before that
            sys.exit(1)


def command_line(conf: Path, *arguments: str) -> list[str]:
    """To start `tidemark` in another process."""
    return [sys.executable, "-m", "orchestration.cli.app", "--conf", str(conf), *arguments]


def tell(error: Exception) -> None:
    """Report an error to `up`, and whether another start may help, beside the text for people. An unknown error has no such verdict."""
    if PARENT in os.environ:
        verdict = ("passing" if error.is_passing else "lasting") if isinstance(error, TidemarkError) else "unknown"
        text = describe(error).removeprefix(PREFIX).replace("\n" + PREFIX, "\n")
        print(json.dumps({"error": text, "verdict": verdict}), file=sys.stderr, flush=True)
