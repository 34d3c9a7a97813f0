"""Count how far a meter rose: the one function of the aggregation type `counter_increase` and of flows of the kind `counter`. Pure.

A meter has one value behind another. Where a value is below the one before it, the meter may have wrapped, may have begun anew at 0, or may
read low for a while. Which of them it was shows only later, so a low reading is counted from, and the value above it is kept: when the
meter is back there, what it rose by is counted from the kept value, less what was counted since.

A low reading may be followed by another one at another level. So a rise that makes good more than half of what is missing waits: the next
rise shows that the meter counts there, or the meter is back at the kept value and has been low for two readings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from math import ceil, inf, log10
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gold.instants import SECOND
from silver.metric import CounterRule

MOST_KEPT = 4
"""A meter that falls and falls, as something that is no counter does, keeps no more values than these."""
NEAR_END = 0.1
"""A wrap leads from the last tenth of the width to the first one."""
DIGITS = 15
"""Significant digits that a float has for certain."""
HOUR = 3600 * SECOND


class Kind(IntEnum):
    """The kind of a step from one reading to the next."""

    RISE = 0
    """The meter stood still or rose."""
    GLITCH = 1
    """A reading that is noise or too fast a rise, or the first one after a low stretch."""
    WRAP = 2
    """The meter passed `wraps_at`."""
    RESET = 3
    """The meter began anew, at 0 or elsewhere."""


class Above(NamedTuple):
    """A value from which the meter fell, or leapt up too fast. `counted`: what was counted since."""

    value: float
    at: int
    counted: float


@dataclass(frozen=True)
class Count:
    """The state of a meter after a reading. `at`: when `last` was read, in microseconds since 1970. `waiting`: a rise that counts if a rise
    is next; then some value is kept."""

    last: float
    at: int
    kept: tuple[Above, ...] = ()
    waiting: float = 0.0

    def to_list(self) -> list[float]:
        """Numbers that a column holds, and from which `from_list` makes it again."""
        kept = (float(number) for above in self.kept for number in above)
        return [self.last, float(self.at), *kept, *([self.waiting] if self.waiting else [])]

    @classmethod
    def from_list(cls, numbers: Sequence[float] | None) -> "Count | None":
        if not numbers:
            return None
        kept = (Above(numbers[n], int(numbers[n + 1]), numbers[n + 2]) for n in range(2, len(numbers) - 2, 3))
        return cls(numbers[0], int(numbers[1]), tuple(kept), numbers[-1] if len(numbers) % 3 == 0 else 0.0)


class Counted(NamedTuple):
    """The steps to readings, in their order, and the state after them. The first reading of a meter has no step: its kind is -1."""

    rises: npt.NDArray[np.float64]
    kinds: npt.NDArray[np.int8]
    state: Count | None


def count(rule: CounterRule, before: Count | None, times: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> Counted:
    """Count readings of one meter in order of time. A value below 0 is none of a counter, and is left out."""
    is_plain = rule.most_per_hour is None and len(values) > 0 and (before is None or not before.kept)
    if is_plain and values[0] >= (before.last if before else 0) and bool((np.diff(values) >= 0).all()):
        rises = np.diff(values, prepend=values[0] if before is None else before.last)
        kinds = np.full(len(values), Kind.RISE, np.int8)
        kinds[:1] = Kind.RISE if before else -1
        return Counted(rises, kinds, Count(float(values[-1]), int(times[-1])))
    rises, kinds, state = np.zeros(len(values)), np.full(len(values), -1, np.int8), before
    for n, (at, value) in enumerate(zip(times.tolist(), values.tolist(), strict=True)):
        if not value >= 0:
            kinds[n] = Kind.GLITCH
        elif state is None:
            state = Count(value, at)
        else:
            rises[n], kinds[n], state = _step(rule, state, at, value)
    return Counted(rises, kinds, state)


def tidied(total: float, size: float) -> float:
    """Round a sum of differences to the digits that values of this size have: 412.8 - 412.6 is 0.2, not 0.19999999999998863."""
    largest = max(abs(total), abs(size))
    return round(total, DIGITS - ceil(log10(largest))) if largest > 0 else total


def _step(rule: CounterRule, state: Count, at: int, value: float) -> tuple[float, Kind, Count]:
    falls = value < state.last - _noise(rule, state.last)
    for n, above in enumerate(state.kept):
        if value >= above.value - _noise(rule, above.value) and (falls or above.value > state.last):
            back = Count(above.value, above.at, state.kept[:n])
            rise, _, state = _rise(rule, replace(back, last=above.value + above.counted), at, value)
            return rise, Kind.GLITCH, replace(state, last=max(value, above.value))
    if not falls:
        return _rise(rule, state, at, value)
    # A meter that begins at 0 is not half as far at its first reading. Elsewhere it may begin at any value, and nothing is counted; at 0
    # it may also have wrapped, or be out of order: the next reading shows which.
    wrapped = _wrapped(rule, state.last, value) if value > 0 else None
    risen = wrapped if wrapped is not None else value if value < state.last / 2 else 0.0
    rise, _, _ = _rise(rule, Count(0.0, state.at), at, risen)
    kind = Kind.WRAP if wrapped is not None else Kind.RESET if value else Kind.RISE
    return rise, kind, Count(value, at, _counting(_keeping(state), rise, value))


def _rise(rule: CounterRule, state: Count, at: int, value: float) -> tuple[float, Kind, Count]:
    """Go on from the last value, or stay there until it is passed again. From 0 the meter shows why it was there."""
    rise, kind, last = max(value - state.last, 0.0), Kind.RISE if value >= state.last else Kind.GLITCH, max(value, state.last)
    if rise > 0 and state.last == 0 and any(above.counted == 0 for above in state.kept):
        wrapped = _wrapped(rule, state.kept[-1].value, value)
        rise, kind = (rise, Kind.RESET) if wrapped is None else (wrapped, Kind.WRAP)
    if rule.most_per_hour is not None and rise > rule.most_per_hour * (at - state.at) / HOUR:
        return 0.0, Kind.GLITCH, Count(value, at, _keeping(state))
    if not rise:
        return 0.0, kind, replace(state, last=last, at=at)
    kept = _counting(state.kept, state.waiting, state.last)
    missing = min((above.value - state.last for above in kept if above.value > state.last), default=inf)
    if rise > missing / 2 and rule.most_per_hour is None:
        return state.waiting, Kind.GLITCH, Count(last, at, kept, rise)
    return state.waiting + rise, Kind.RESET if state.waiting else kind, Count(last, at, _counting(kept, rise, last))


def _wrapped(rule: CounterRule, last: float, value: float) -> float | None:
    """The rise over `wraps_at` from one value to another; None where that is no wrap."""
    width = rule.wraps_at
    if width is None or not width * (1 - NEAR_END) <= last <= width or value > width * NEAR_END:
        return None
    return width - last + value


def _keeping(state: Count) -> tuple[Above, ...]:
    """The values from which the meter fell, with its last one."""
    return (*state.kept, Above(state.last, state.at, 0.0))[-MOST_KEPT:]


def _counting(kept: Sequence[Above], rise: float, last: float) -> tuple[Above, ...]:
    """Forget values of which more than half is made good: the meter gets there by rising, and not at once."""
    more = (above._replace(counted=above.counted + rise) for above in kept)
    return tuple(above for above in more if above.counted <= max(above.value - last, 0.0))


def _noise(rule: CounterRule, value: float) -> float:
    return rule.glitch_share * value if rule.glitch_amount is None else rule.glitch_amount
