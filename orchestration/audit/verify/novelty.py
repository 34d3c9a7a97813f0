"""How new a value of one feature is, once more: distances to what was seen, and the shares of the past that were as large."""

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

HOUR, HOURS = 3_600_000_000, 24
VALUES, WIDTH = 500, 0.1
"""Bins of values on either side of the middle, and their width: of the inverse hyperbolic sine of half a value, twice."""
LEVELS, LEAST, LEVEL = 400, -14.0, 0.07
"""Bins of logarithms of measures."""
LEAST_MEASURE, TOP, LASTING, MOST = 1e-3, 0.005, 12, 6.0
LEAST_SPREAD = 1e-50
MEASURES = 4
CENTRES = 2 * np.sinh(np.arange(-VALUES, VALUES + 1) * WIDTH / 2)


@dataclass
class Novelty:
    """The past of one feature of an entity. `learning`: how many values it learns from before it judges one.

    `nearest`: the distance of each bin of values to what was seen; `nearest_at`: with the hour of the day as a circle, squared.
    """

    learning: int
    first: list[tuple[float, int]] = field(default_factory=list)
    scale: tuple[float, float] | None = None
    scaled: list[float] = field(default_factory=list)
    count: int = 0
    unseen: list[tuple[int, int]] = field(default_factory=list)
    nearest: npt.NDArray[np.float64] = field(default_factory=lambda: np.full(2 * VALUES + 1, math.inf))
    nearest_at: npt.NDArray[np.float64] = field(default_factory=lambda: np.full((HOURS, 2 * VALUES + 1), math.inf))
    pasts: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((MEASURES, LEVELS)))
    waiting: list[float] | None = None

    def next(self, value: float, end: int) -> list[float]:
        """Return the surprises of a value, one a measure; none for a hole and while it learns."""
        if math.isnan(value):
            return []
        if self.scale is not None:
            return self._judge(value, end // HOUR % HOURS)
        self.first.append((value, end // HOUR % HOURS))
        if len(self.first) == self.learning:
            self._learn([value for value, _ in self.first])
        return []

    def _learn(self, values: list[float]) -> None:
        low, middle, high = (float(quantile) for quantile in np.quantile(values, [0.05, 0.5, 0.95]))
        spread = max((high - low) / 3.3, 0.3 * float(np.std(values)))
        self.scale = middle, max(spread, LEAST_SPREAD) if spread > 0 else max(abs(values[0]) / 100, 1e-6)
        for value, hour in self.first:
            self._judge(value, hour)

    def _judge(self, value: float, hour: int) -> list[float]:
        assert self.scale is not None
        scaled = (value - self.scale[0]) / self.scale[1]
        cell = min(max(round(2 * math.asinh(scaled / 2) / WIDTH), -VALUES), VALUES) + VALUES
        if len(self.unseen) == 2:
            self._see(*self.unseen.pop(0))
        self.unseen.append((hour, cell))
        measures = [*self._distances(hour, cell), *self._moves(scaled)]
        if self.waiting is not None and self.count > self.learning // 8:
            self.pasts *= math.exp(-1 / (LASTING * self.learning))
            for of_measure, measure in zip(self.pasts, self.waiting, strict=True):
                of_measure[_level(measure)] += 1
        surprises = [_surprise(of_measure, measure) for of_measure, measure in zip(self.pasts, measures, strict=True)]
        self.waiting, self.count = measures, self.count + 1
        return surprises

    def _see(self, hour: int, cell: int) -> None:
        turn = 2 * np.sin(math.pi * ((np.arange(HOURS) - hour) % HOURS) / HOURS)
        away = np.abs(CENTRES - CENTRES[cell])
        self.nearest = np.minimum(self.nearest, away)
        self.nearest_at = np.minimum(self.nearest_at, away**2 + turn[:, None] ** 2)

    def _distances(self, hour: int, cell: int) -> tuple[float, float]:
        distance = float(self.nearest[cell])
        return (0.0, 0.0) if math.isinf(distance) else (distance, math.sqrt(self.nearest_at[hour, cell]))

    def _moves(self, scaled: float) -> tuple[float, float]:
        """Return the spread of the last values, and how far their mean is from that of those before."""
        block = max(self.learning // 104, 1) * 4
        self.scaled = [*self.scaled, scaled][-2 * block :]
        if len(self.scaled) < 2 * block:
            return 0.0, 0.0
        before, last = self.scaled[:block], self.scaled[block:]
        return float(np.std(last, ddof=1)), abs(math.fsum(last) / block - math.fsum(before) / block)


def _level(measure: float) -> int:
    return min(max(int((math.log(measure + LEAST_MEASURE) - LEAST) / LEVEL), 0), LEVELS - 1)


def _surprise(past: npt.NDArray[np.float64], measure: float) -> float:
    """Return -log10 of the share of the past that was as high: counted, and above the TOP share by an exponential tail."""
    above = past[::-1].cumsum()[::-1]
    if above[0] <= 0:
        return 0.0
    low = int(np.flatnonzero(above >= TOP * above[0])[-1])
    beyond = math.log(measure + LEAST_MEASURE) - (LEAST + low * LEVEL)
    share = above[_level(measure)] / above[0]
    if beyond > 0:
        excess = float(past[low:] @ ((np.arange(LEVELS - low) + 0.5) * LEVEL)) / above[low]
        share = above[low] / above[0] * math.exp(-beyond / max(excess, LEVEL / 2))
    return float(min(max(-math.log10(max(share, 1e-300)), 0.0), MOST))
