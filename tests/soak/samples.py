"""What a soak takes of the machine, every few seconds: memory and open descriptors of each kind of process, files of the lake."""

import csv
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from orchestration.location import Location
from orchestration.service.process import session_of
from orchestration.storage.delta import version_of
from orchestration.storage.lease import holder_of
from orchestration.supervisor.service_state import folder_of, read_service

EVERY_SECONDS = 3.0
PROCESSES = ("up", "streams", "JVM", "collector", "page")
MEMORY, DESCRIPTORS, FILES, BYTES, BATCHES = "resident_bytes", "descriptors", "files", "bytes", "bronze_batches"
LAKE = "lake"


@dataclass(frozen=True)
class Sample:
    """`at`: seconds since the soak began. `of`: one of PROCESSES, together with what it has started, or LAKE."""

    at: float
    of: str
    measure: str
    value: float


class Samples:
    """Of one lake. `taken`: in order of time."""

    def __init__(self, lake: Path) -> None:
        self._lake = Location(lake)
        self._begin, self._stop = time.monotonic(), threading.Event()
        self.taken: list[Sample] = []

    @property
    def now(self) -> float:
        """As `at` of a sample."""
        return time.monotonic() - self._begin

    @contextmanager
    def running(self) -> Iterator[None]:
        """Taken in a thread, until the block ends."""
        with ThreadPoolExecutor(1, "samples") as thread:
            work = thread.submit(self._take)
            try:
                yield
            finally:
                self._stop.set()
            work.result()

    def write(self, file: Path) -> None:
        """As CSV."""
        with file.open("w", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(["seconds", "of", "measure", "value"])
            writer.writerows([f"{sample.at:.1f}", sample.of, sample.measure, f"{sample.value:.0f}"] for sample in self.taken)

    def series(self, of: str, measure: str, first: float = 0.0, last: float = float("inf")) -> list[tuple[float, float]]:
        """Instants and values, between two instants."""
        chosen = (sample for sample in self.taken if (sample.of, sample.measure) == (of, measure))
        return [(sample.at, sample.value) for sample in chosen if first <= sample.at <= last]

    def _take(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            at = self.now
            for name, process in self._processes():
                with suppress(psutil.Error):  # it has ended meanwhile
                    memory, descriptors = process.memory_info().rss, process.num_fds()
                    self.taken += [Sample(at, name, MEMORY, memory), Sample(at, name, DESCRIPTORS, descriptors)]
            self.taken += self._of_lake(at)

    def _processes(self) -> Iterator[tuple[str, psutil.Process]]:
        """Leaders of sessions, and the JVM; short-lived ones that they start are left out."""
        service = read_service(self._lake)
        holder = holder_of(folder_of(self._lake))
        with suppress(psutil.Error):
            if holder is not None:
                yield "up", psutil.Process(holder.pid)
        for part in service.parts if service else ():
            for process in session_of(part.pid) if part.pid else ():
                with suppress(psutil.Error):
                    if process.pid == part.pid:
                        yield part.name, process
                    elif process.name() == "java":
                        yield "JVM", process

    def _of_lake(self, at: float) -> Iterator[Sample]:
        sizes = [*_sizes(str(self._lake))]
        numbers = {FILES: len(sizes), BYTES: sum(sizes), BATCHES: version_of(self._lake / "bronze" / "events")}
        yield from (Sample(at, LAKE, measure, value) for measure, value in numbers.items())


def growth(series: Sequence[tuple[float, float]]) -> float:
    """The median of the last third of the time, as a multiple of that of the middle third: 1 where nothing grows."""
    first, last = series[0][0], series[-1][0]
    third = (last - first) / 3
    middle = [value for at, value in series if first + third <= at < last - third]
    end = [value for at, value in series if at >= last - third]
    return median(end) / median(middle)


def growth_per_batch(files: Sequence[tuple[float, float]], batches: Sequence[tuple[float, float]]) -> float:
    """Files that a bronze batch adds to the lake in the last third of the batches, as a multiple of those in the middle third."""
    by_batch = [(batch, count) for (_, batch), (_, count) in zip(batches, files, strict=True)]
    first, last = by_batch[0][0], by_batch[-1][0]
    at = [next(count for batch, count in by_batch if batch >= first + (last - first) * third / 3) for third in (1, 2, 3)]
    return (at[2] - at[1]) / (at[1] - at[0])


def _sizes(folder: str) -> Iterator[int]:
    """Of all files below it; of what goes meanwhile, none."""
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                yield os.stat(os.path.join(path, name)).st_size
