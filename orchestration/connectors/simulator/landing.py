"""Files of simulated messages in a landing folder, and the truth beside it: written in bulk, or at a rate. Memory stays bounded in both.

A file appears whole or not at all, is numbered in order of arrival, and is never overwritten.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from orchestration.connectors.simulator.lines import TRUTH, Lines, truth
from orchestration.connectors.simulator.messages import Arrivals, Messages, message_type
from orchestration.connectors.simulator.plan import Plan
from orchestration.errors import ConfError

NUMBERED = re.compile(r"\.?events-(\d+)\.")
TICK_NS = 1_000_000  # a millisecond: streams order files by modification time, and Spark reads no more of it than that
SLICE = 200_000  # events that are made at once; part of what decides the bytes, so it is no setting
MOST_SHUFFLED_FILES = 256  # all files of a shuffled run are open together, and a process may open about a thousand
ROUND_SECONDS = 1.0
Progress = Callable[[Messages], None]  # is called with messages after they are written


class Landing:
    """A landing folder to which files are added. `truth`: its folder stands beside it, never inside, where a stream would read it."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        """Make the folders; ConfError where one is a file."""
        self.folder = folder.resolve()
        self.truth = self.folder.with_name(f"{self.folder.name}.truth")
        self._plan, self._lines = plan, Lines(plan)
        try:
            for path in (self.folder, self.truth):
                path.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise ConfError(f"{error.filename} is a file, and events need a folder: give another one with --to") from error
        matches = map(NUMBERED.match, [*os.listdir(self.folder), *os.listdir(self.truth)])
        self._number = max((int(match[1]) for match in matches if match), default=0)
        self._newest_ns = 0

    def open(self) -> "OpenFile":
        """Open the next file; its number is ours even when another simulator writes into the same folder."""
        while True:
            self._number += 1
            name = f"events-{self._number:06d}"
            try:
                return OpenFile(self.folder / f"{name}.jsonl", self.truth / f"{name}.parquet", self._plan, self._lines)
            except FileExistsError:
                continue

    def publish(self, file: "OpenFile") -> None:
        """Make the file appear, later than any before it."""
        self._newest_ns = max(time.time_ns(), self._newest_ns + TICK_NS)
        file.publish(self._newest_ns)


class OpenFile:
    """A file that is being written under a hidden name; it is discarded unless it is published."""

    def __init__(self, path: Path, truth_path: Path, plan: Plan, lines: Lines) -> None:
        """FileExistsError where the name is taken."""
        self._paths, self._plan, self._lines = (path, truth_path), plan, lines
        self._hidden, self._hidden_truth = (target.with_name(f".{target.name}") for target in self._paths)
        self._stream = self._hidden.open("xb")
        if path.exists() or truth_path.exists():  # looked at now: while the hidden name is ours nobody else takes it
            self._stream.close()
            self._hidden.unlink()
            raise FileExistsError(path)
        self._truth = pq.ParquetWriter(self._hidden_truth, TRUTH)
        self._written = 0

    def write(self, messages: Messages) -> None:
        if len(messages):  # Arrow gives an array of nothing no bytes at all
            self._stream.write(self._lines.bytes_of(messages))
            self._truth.write_table(truth(messages, self._plan, self._paths[0].name, self._written + 1))
            self._written += len(messages)

    def publish(self, modified_ns: int) -> None:
        """Publish the truth first: whoever sees the events has it."""
        self._stream.close()
        self._truth.close()
        os.utime(self._hidden, ns=(modified_ns, modified_ns))
        self._hidden_truth.rename(self._paths[1])
        self._hidden.rename(self._paths[0])

    def __enter__(self) -> "OpenFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._truth.close()
        self._hidden.unlink(missing_ok=True)
        self._hidden_truth.unlink(missing_ok=True)


def in_order(plan: Plan, landing: Landing, files: int, progress: Progress) -> None:
    """Write the whole plan in order of arrival, into files of equal length."""
    slices, rest, done = _slices(plan), np.zeros(0, message_type(plan.width)), 0
    for end in (plan.events * (n + 1) // files for n in range(files)):
        with landing.open() as file:
            while done < end:
                rest = rest if len(rest) else next(slices)
                part, rest = rest[: end - done], rest[end - done :]
                file.write(part)
                done += len(part)
                progress(part)
            landing.publish(file)


def shuffled(plan: Plan, landing: Landing, files: int, progress: Progress) -> None:
    """Write the whole plan without any order: each message goes to a file drawn at random. The files appear together at the end."""
    rng = np.random.default_rng([plan.seed, files])
    with ExitStack() as stack:
        targets = [stack.enter_context(landing.open()) for _ in range(files)]
        for messages in _slices(plan):
            mixed = rng.permutation(messages)
            drawn = rng.integers(0, files, len(mixed))
            for number, file in enumerate(targets):
                file.write(mixed[drawn == number])
            progress(mixed)
        for file in targets:
            landing.publish(file)


def at_rate(plan: Plan, landing: Landing, stop: threading.Event, progress: Progress) -> None:
    """Write a file every second with what has arrived since the last, until the plan is done or `stop` is set."""
    arrivals = Arrivals(plan)
    due = time.monotonic()
    while not arrivals.is_over:
        due += ROUND_SECONDS
        if stop.wait(max(0.0, due - time.monotonic())):
            return
        messages = arrivals.until(time.time_ns() // 1000)
        if len(messages):
            with landing.open() as file:
                file.write(messages)
                landing.publish(file)
            progress(messages)


def _slices(plan: Plan) -> Iterator[Messages]:
    """Make all messages in order of arrival, some at a time."""
    arrivals = Arrivals(plan)
    ticks = max(1, SLICE // plan.events_per_tick)
    instant_us = plan.start_us
    while not arrivals.is_over:
        instant_us += ticks * plan.interval_us
        yield arrivals.until(instant_us)
