"""Fresh processes, timed whole, with the peak memory of everything that they start."""

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Run:
    """A process with its descendants. `peak_bytes`: most resident memory; None for one that ended before the first look."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int | None


@dataclass
class Seen:
    """A session until now. `cpu`: seconds by process."""

    peak_bytes: int = 0
    cpu: dict[int, float] = field(default_factory=dict)


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
    return Run(seconds, sum(seen.cpu.values()), seen.peak_bytes or None)


def used(session: int) -> tuple[float, int]:
    """By what runs now in a session: seconds of CPU so far, and bytes of resident memory."""
    processes = _processes(session)
    return sum(process["cpu"] for process in processes.values()), _resident(processes)


def cpu_seconds(process: psutil.Process) -> float:
    """Seconds that a process has spent until now, without its children."""
    times = process.cpu_times()
    return float(times.user + times.system)


def _watch(session: int, over: threading.Event, seen: Seen) -> None:
    while not over.wait(LOOK_SECONDS):
        processes = _processes(session)
        seen.cpu |= {pid: process["cpu"] for pid, process in processes.items()}
        seen.peak_bytes = max(seen.peak_bytes, _resident(processes))


def _resident(processes: Mapping[int, Mapping[str, Any]]) -> int:
    """Bytes. A process that starts another is there twice for a moment, with the same memory."""
    sizes = {pid: process["memory"].vms for pid, process in processes.items()}
    return sum(process["memory"].rss for process in processes.values() if process["memory"].vms != sizes.get(process["parent"]))


def _processes(session: int) -> dict[int, dict[str, Any]]:
    processes = {}
    for pid in psutil.pids():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):  # it has ended meanwhile
            if os.getsid(pid) == session:
                process = psutil.Process(pid)
                processes[pid] = {"parent": process.ppid(), "cpu": cpu_seconds(process), "memory": process.memory_info()}
    return processes
