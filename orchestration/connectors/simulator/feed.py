"""The two ways to feed a landing folder: in bulk, and at a rate. Memory stays bounded in both."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np

from orchestration.connectors.simulator.landing import Landing
from orchestration.connectors.simulator.messages import Arrivals, Messages, message_type
from orchestration.connectors.simulator.plan import Plan

SLICE = 200_000
"""Events that are made at once; part of what decides the bytes, so it is no setting."""
MOST_SHUFFLED_FILES = 256
"""All files of a shuffled run are open together, and a process may open about a thousand."""
ROUND_SECONDS = 1.0

Progress = Callable[[Messages], None]
"""Is called with messages after they are written."""


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
    """A file every second with what has arrived since the last, until the plan is done or `stop` is set."""
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
    """All messages in order of arrival, some at a time."""
    arrivals = Arrivals(plan)
    ticks = max(1, SLICE // plan.events_per_tick)
    instant_us = plan.start_us
    while not arrivals.is_over:
        instant_us += ticks * plan.interval_us
        yield arrivals.until(instant_us)
