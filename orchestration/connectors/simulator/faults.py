"""Labelled faults: for a time a device measures something else than it should. Levels are values in spans of a series, around 0.

What is measured depends on the tick alone, so that time may be cut into any chunks.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Levels = Callable[[Ints, Ints], Floats]
"""Levels without a fault at ticks, a row a tick, of these series, a column a series. Ticks may be before the first one."""


@dataclass(frozen=True)
class Fault:
    """Ticks from `begin` to before `end` are changed. `series`: that in which it is seen first, then the others of the device.

    `day`: ticks of a day. `deviation`: that of a level; its sign says whether the fault goes up.
    """

    kind: str
    begin: int
    end: int
    series: tuple[int, ...]
    day: int
    deviation: float

    def change(self, levels: Floats, ticks: Ints, normal: Levels) -> None:
        """Change levels of all series at ticks, a row a tick."""
        kind, rows = FAULTS[self.kind], np.flatnonzero((self.begin <= ticks) & (ticks < self.end))
        series = np.array(self.series[: kind.width])
        levels[np.ix_(rows, series)] = kind.measured(self, ticks[rows, None], lambda at: normal(at, series))

    def ramp(self, ticks: Ints) -> Floats:
        """Rise from 0 at the begin to 1 at the end."""
        return (ticks - self.begin) / (self.end - self.begin)


@dataclass(frozen=True)
class Kind:
    """`days`: how long it lasts, more or less `vary`. `measured`: levels at ticks, by those that are normal.

    `width`: how many series it changes; None: all of the device. `either_way`: it goes up or down.
    """

    days: float
    measured: Callable[[Fault, Ints, Callable[[Ints], Floats]], Floats | float]
    width: int | None = 1
    either_way: bool = False
    vary: float = 0.0


def _spike(fault: Fault, ticks: Ints, normal: Callable[[Ints], Floats]) -> Floats:
    """Stand out of the noise from tick to tick as well."""
    noise = np.diff(normal(np.arange(fault.begin - 1000, fault.begin)[:, None]), axis=0).std() / 1.4
    return normal(ticks) + 2.5 * fault.deviation + math.copysign(4 * noise, fault.deviation)


FAULTS = {
    "spike": Kind(0, _spike, either_way=True),
    "drift": Kind(1, lambda fault, ticks, normal: normal(ticks) + 3 * fault.deviation * fault.ramp(ticks), either_way=True),
    "stuck": Kind(1 / 3, lambda fault, ticks, normal: normal(np.full((1, 1), fault.begin))),
    "dropout": Kind(0.09, lambda fault, ticks, normal: -4 * fault.deviation, vary=0.05),
    # The day of the device comes a third later.
    "shifted cycle": Kind(1, lambda fault, ticks, normal: normal(ticks - round(0.3 * fault.day)), None),
    # Two sensors are connected crosswise; each is calibrated as the other.
    "swapped sensors": Kind(0.5, lambda fault, ticks, normal: normal(ticks)[:, ::-1], 2),
    # A sensor shows plausible values that have nothing to do with the others: earlier ones, backwards.
    "changed correlation": Kind(0.5, lambda fault, ticks, normal: normal(fault.begin + fault.end - 1 - ticks - 3 * fault.day)),
    "slow leak": Kind(3, lambda fault, ticks, normal: normal(ticks) - 2 * fault.deviation * fault.ramp(ticks)),
}


def drawn(
    kind: str, rng: np.random.Generator, begin: int, series: Sequence[int], *, window: int, day: int, deviation: float, longest: float
) -> Fault:
    """Draw a fault of at least two windows of so many ticks: one of them lies wholly within. It lasts at most `longest` ticks else."""
    drawn_as = FAULTS[kind]
    days = drawn_as.days + (rng.uniform(-drawn_as.vary, drawn_as.vary) if drawn_as.vary else 0)
    sign = float(rng.choice([-1, 1])) if drawn_as.either_way else 1.0
    end = begin + max(2 * window, round(min(days * day, longest)))
    return Fault(kind, begin, end, tuple(series), day, sign * deviation)
