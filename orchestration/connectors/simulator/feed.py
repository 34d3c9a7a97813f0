"""The two ways to feed a landing folder: in bulk, and at a rate. Memory stays bounded in both."""

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np

from orchestration.connectors.simulator.arrivals import Arrivals, Messages
from orchestration.connectors.simulator.landing import Landing, OpenFile
from orchestration.connectors.simulator.plan import Plan

SLICE = 200_000
"""Events that are made at once; part of what decides the bytes, so it is no setting."""
MOST_SHUFFLED_FILES = 256
"""All files of a shuffled run are open together, and a process may open about a thousand."""
ROUND_SECONDS = 1.0

Told = Callable[[Messages], None]
"""Is told of messages after they are written."""


def in_order(plan: Plan, landing: Landing, files: int, progress: Told) -> None:
    """Write the whole plan in order of arrival; the files follow each other and are of equal length."""
    ends = iter([plan.events * (n + 1) // files for n in range(files)])
    with _Open(landing) as opened:
        file, end, done = opened.next(), next(ends), 0
        for messages in _slices(plan):
            rest = messages
            while len(rest):
                part, rest = rest[: end - done], rest[end - done :]
                file.write(part)
                done += len(part)
                progress(part)
                if done == end:
                    opened.publish(file)
                    if done < plan.events:
                        file, end = opened.next(), next(ends)


def shuffled(plan: Plan, landing: Landing, files: int, progress: Told) -> None:
    """Write the whole plan without any order: each message goes to a file drawn at random. The files appear together at the end."""
    rng = np.random.default_rng([plan.seed, files])
    with _Open(landing) as opened:
        targets = [opened.next() for _ in range(files)]
        for messages in _slices(plan):
            mixed = rng.permutation(messages)
            drawn = rng.integers(0, files, len(mixed))
            for number, file in enumerate(targets):
                file.write(mixed[drawn == number])
            progress(mixed)
        for file in targets:
            opened.publish(file)


def at_rate(plan: Plan, landing: Landing, stop: threading.Event, progress: Told) -> None:
    """A file every second with what has arrived since the last, until the plan is done or `stop` is set."""
    arrivals = Arrivals(plan)
    with _Open(landing) as opened:
        due = time.monotonic()
        while not arrivals.is_over:
            due += ROUND_SECONDS
            if stop.wait(max(0.0, due - time.monotonic())):
                return
            messages = arrivals.until(time.time_ns() // 1000)
            if len(messages):
                file = opened.next()
                file.write(messages)
                opened.publish(file)
                progress(messages)


class _Open:
    """Files that are being written; whatever is not published in the end is discarded."""

    def __init__(self, landing: Landing) -> None:
        self._landing = landing
        self._files: list[OpenFile] = []

    def __enter__(self) -> "_Open":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.discard()

    def next(self) -> OpenFile:
        self._files.append(self._landing.open())
        return self._files[-1]

    def publish(self, file: OpenFile) -> None:
        self._landing.publish(file)
        self._files.remove(file)


def _slices(plan: Plan) -> Iterator[Messages]:
    """All messages in order of arrival, some at a time."""
    arrivals = Arrivals(plan)
    ticks = max(1, SLICE // plan.lines_per_tick)
    instant_us = plan.start_us
    while not arrivals.is_over:
        instant_us += ticks * plan.interval_us
        yield arrivals.until(instant_us)
