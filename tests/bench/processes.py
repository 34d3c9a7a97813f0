"""Fresh processes, timed whole, with the peak memory of everything that they start."""

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

LOOK_SECONDS = 0.2
PROC = Path("/proc")


@dataclass(frozen=True)
class Run:
    """Of a process and its descendants together. `peak_bytes`: most resident memory; None, and no `cpu_seconds`, without /proc."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int | None


@dataclass
class Seen:
    """Of a session until now. `ticks` of CPU, by process."""

    peak_pages: int = 0
    ticks: dict[str, int] = field(default_factory=dict)


class FailedError(Exception):
    """A measured process did not end well."""


def timed(command: Sequence[str], folder: Path, log: Path) -> Run:
    """Run a command in a session of its own, by which its descendants (the JVM) are known; its output goes to `log`."""
    with log.open("wb") as output:
        begin = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        over, seen = threading.Event(), Seen()
        watcher = threading.Thread(target=_watch, args=(process.pid, over, seen))
        watcher.start()
        code = process.wait()
        seconds = time.perf_counter() - begin
        over.set()
        watcher.join()
    if code != 0:
        raise FailedError(f"{' '.join(command[:4])} ... ended with {code}; the end of {log}:\n{log.read_text(errors='replace')[-2000:]}")
    return Run(seconds, sum(seen.ticks.values()) / os.sysconf("SC_CLK_TCK"), seen.peak_pages * os.sysconf("SC_PAGE_SIZE") or None)


def used(session: int) -> tuple[float, int]:
    """By what runs now in a session: seconds of CPU so far, and bytes of resident memory."""
    processes = _processes(session).values()
    ticks, pages = (sum(each[place] for each in processes) for place in (1, 0))
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE")


def _watch(session: int, over: threading.Event, seen: Seen) -> None:
    while not over.wait(LOOK_SECONDS):
        pages = 0
        for process, (of_process, ticks) in _processes(session).items():
            pages += of_process
            seen.ticks[process] = ticks
        seen.peak_pages = max(seen.peak_pages, pages)


def _processes(session: int) -> dict[str, tuple[int, int]]:
    """Of a session: resident pages, and ticks of CPU so far."""
    found = {}
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything. Behind it: session 4th, ticks 12th and 13th, resident pages 22nd field.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[3]) == session:
            found[stat.parent.name] = (int(fields[21]), int(fields[11]) + int(fields[12]))
    return found
