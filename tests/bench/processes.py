"""Fresh processes, timed whole, with the peak memory of everything that they start."""

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LOOK_SECONDS = 0.2
PROC = Path("/proc")


@dataclass(frozen=True)
class Run:
    """`peak_bytes`: most resident memory of the process and its descendants together; None where there is no /proc."""

    seconds: float
    peak_bytes: int | None


class FailedError(Exception):
    """A measured process did not end well."""


def timed(command: Sequence[str], folder: Path, log: Path) -> Run:
    """Run a command in a session of its own, by which its descendants (the JVM) are known; its output goes to `log`."""
    with log.open("wb") as output:
        begin = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        over, peak = threading.Event(), [0]
        watcher = threading.Thread(target=_watch, args=(process.pid, over, peak))
        watcher.start()
        code = process.wait()
        seconds = time.perf_counter() - begin
        over.set()
        watcher.join()
    if code != 0:
        raise FailedError(f"{' '.join(command[:4])} ... ended with {code}; the end of {log}:\n{log.read_text(errors='replace')[-2000:]}")
    return Run(seconds, peak[0] or None)


def _watch(session: int, over: threading.Event, peak: list[int]) -> None:
    while not over.wait(LOOK_SECONDS):
        peak[0] = max(peak[0], _resident(session))


def _resident(session: int) -> int:
    """Resident bytes of all processes of a session."""
    pages = 0
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything; behind it the fourth field is the session, the 22nd the resident pages.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[3]) == session:
            pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE")
