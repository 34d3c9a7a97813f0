"""Messages of simulated devices on their way: sent at once, delayed, sent twice, kept while the network is down, or broken.

Messages come out in the order in which they arrive. Memory: one slice of time, and the messages that are still on their way.
"""

import math
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from orchestration.connectors.simulator.plan import MICROSECONDS, Plan
from orchestration.connectors.simulator.sensors import Ints, Sensors, Spells

Messages = NDArray[np.void]
"""One record a message. `value[j]` is a value of metric number `metric + j`, NaN where there is none."""
FUTURE_US = 4_070_908_800 * MICROSECONDS
"""2099-01-01."""
YEAR_US = 365 * 86_400 * MICROSECONDS


class Kind(IntEnum):
    """How a message was sent; which of them a watermark turns away depends on how batches are cut.

    late: it arrives more than the longest allowed lateness after it was measured. duplicate: the same bytes once more.
    """

    GOOD = 0
    DUPLICATE = 1
    LATE = 2
    MALFORMED = 3
    FUTURE = 4


class Defect(IntEnum):
    """The defect of a malformed message."""

    NONE = 0
    BROKEN_NUMBER = 1
    CUT = 2
    EMPTY = 3
    TWO_OBJECTS = 4
    INVALID_UTF8 = 5


def message_type(width: int) -> np.dtype[np.void]:
    fields = [("arrival_us", "i8"), ("event_us", "i8"), ("device", "i4"), ("metric", "i4"), ("kind", "i1"), ("defect", "i1")]
    return np.dtype([*fields, ("value", "f8", (width,))])


class Arrivals:
    """All messages of a plan: exactly `plan.events`, resent ones included."""

    def __init__(self, plan: Plan) -> None:
        """The seed decides everything, as long as `until` is called with the same instants."""
        self._plan = plan
        self._rng = np.random.default_rng(plan.seed)
        self._sensors = Sensors(plan, self._rng)
        # Long enough that most of what a device says afterwards is late.
        ticks = max(1, 3 * plan.lateness_us // plan.interval_us)
        self._outages = Spells(self._rng, plan.odds.offline, ticks, len(plan.devices))
        self._first = math.ceil(plan.events / (1 + plan.odds.duplicate))
        self._ticks = self._sent = 0
        self._on_the_way = np.zeros(0, message_type(plan.width))

    @property
    def is_over(self) -> bool:
        return self._sent >= self._first and not len(self._on_the_way)

    def until(self, instant_us: int) -> Messages:
        """Return the messages that arrive before the instant and have not come out yet, in order of arrival.

        Once the last measurement is taken, all that are still on their way come out too.
        """
        messages = self._on_the_way
        count = -(-(instant_us - self._plan.start_us) // self._plan.interval_us) - self._ticks
        if count > 0 and self._sent < self._first:
            messages = np.concatenate([messages, self._disturbed(self._measured(count))])
        has_arrived = (messages["arrival_us"] < instant_us) | (self._sent >= self._first)
        self._on_the_way = messages[~has_arrived]
        arrived = messages[has_arrived]
        return arrived[np.argsort(arrived["arrival_us"], kind="stable")]

    def _measured(self, count: int) -> Messages:
        """The next `count` ticks in order of time. Devices take turns within an interval, so that they do not all speak at once."""
        plan, devices = self._plan, np.arange(len(self._plan.devices))
        ticks = np.arange(self._ticks, self._ticks + count)
        self._ticks += count
        turn = devices * plan.interval_us // len(devices)
        event = (plan.start_us + ticks[:, None] * plan.interval_us + turn) // 1000 * 1000
        arrival = event + self._outages.left(ticks) * plan.interval_us
        lines = plan.events_per_tick // len(devices)
        messages = np.zeros((count, len(devices), lines), self._on_the_way.dtype)
        messages["value"] = self._sensors.values(ticks).reshape(*messages.shape, plan.width)
        messages["event_us"], messages["arrival_us"] = event[:, :, None], arrival[:, :, None]
        messages["device"], messages["metric"] = devices[:, None], np.arange(lines)
        is_sent = ~np.isnan(messages["value"]).all(axis=-1)
        sent: Messages = messages[is_sent][: self._first - self._sent]
        return sent

    def _disturbed(self, messages: Messages) -> Messages:
        """Delay, break and resend some; resends stand behind the messages that they repeat."""
        odds, lateness, rng = self._plan.odds, max(self._plan.lateness_us, self._plan.interval_us), self._rng
        is_delayed = rng.random(len(messages)) < odds.late
        messages["arrival_us"][is_delayed] += rng.integers(lateness * 6 // 5, lateness * 3, int(is_delayed.sum()))
        messages["kind"][messages["arrival_us"] - messages["event_us"] > self._plan.lateness_us] = Kind.LATE
        draw = rng.random(len(messages))
        is_malformed = draw < odds.malformed
        is_future = ~is_malformed & (draw < odds.malformed + odds.future)
        messages["kind"][is_malformed], messages["kind"][is_future] = Kind.MALFORMED, Kind.FUTURE
        messages["defect"][is_malformed] = rng.integers(1, len(Defect), int(is_malformed.sum()))
        messages["event_us"][is_future] = FUTURE_US + messages["event_us"][is_future] % YEAR_US
        again = messages[self._resent(len(messages))]
        again["arrival_us"] += rng.integers(0, lateness // 2, len(again))
        again["kind"][np.isin(again["kind"], [Kind.GOOD, Kind.LATE])] = Kind.DUPLICATE
        self._sent += len(messages)
        return np.concatenate([messages, again])

    def _resent(self, count: int) -> Ints:
        """Draw which of the next `count` messages are sent again: evenly spread, so that the total comes out exactly."""
        resent = self._plan.events - self._first
        quota = resent * (self._sent + count) // self._first - resent * self._sent // self._first
        return np.sort(self._rng.choice(count, quota, replace=False))
