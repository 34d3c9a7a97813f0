"""Fresh processes, timed whole, with the peak memory of everything that they start."""

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

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


class Process(NamedTuple):
    """As the kernel tells it: `size` is that of its address space in bytes, `pages` are resident, `ticks` of CPU it has used so far."""

    parent: str
    size: int
    pages: int
    ticks: int


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
    processes = _processes(session)
    ticks = sum(each.ticks for each in processes.values())
    return ticks / os.sysconf("SC_CLK_TCK"), _pages(processes) * os.sysconf("SC_PAGE_SIZE")


def _watch(session: int, over: threading.Event, seen: Seen) -> None:
    while not over.wait(LOOK_SECONDS):
        processes = _processes(session)
        seen.ticks |= {name: each.ticks for name, each in processes.items()}
        seen.peak_pages = max(seen.peak_pages, _pages(processes))


def _pages(processes: Mapping[str, Process]) -> int:
    """Resident ones. A process that starts another is there twice for a moment, with the same memory."""
    sizes = {name: each.size for name, each in processes.items()}
    return sum(each.pages for each in processes.values() if each.size != sizes.get(each.parent))


def _processes(session: int) -> dict[str, Process]:
    """Those of a session, by their numbers."""
    found = {}
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything. Behind it: parent 2nd, session 4th, ticks 12th and 13th, size 21st, pages 22nd.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[3]) == session:
            ticks = int(fields[11]) + int(fields[12])
            found[stat.parent.name] = Process(fields[1], int(fields[20]), int(fields[21]), ticks)
    return found
