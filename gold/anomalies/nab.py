"""The score of the Numenta Anomaly Benchmark: an alarm early in a labelled window counts most, one outside costs. Pure.

A. Lavin, S. Ahmad: Evaluating Real-time Anomaly Detection Algorithms - the Numenta Anomaly Benchmark (2015), profile "standard".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

Window = tuple[int, int]
"""The first and the last row of what is labelled."""
OF_FALSE, OF_MISSED = 0.11, 1.0
LEARNED, MOST_LEARNED = 0.15, 750
"""The share of a series in which nothing is scored, and its most rows."""


@dataclass(frozen=True)
class Counted:
    """`score`: of one series or several, in parts of one window that is hit at its first row. `hits`: windows with an alarm."""

    score: float
    hits: int
    windows: int
    false: int

    def __add__(self, other: "Counted") -> "Counted":
        return Counted(self.score + other.score, self.hits + other.hits, self.windows + other.windows, self.false + other.false)

    @property
    def normalized(self) -> float:
        """Return 0 for a detector that never alarms, 100 for one that tells each window at its first row and nothing else."""
        return 100 * (self.score + OF_MISSED * self.windows) / ((1 + OF_MISSED) * self.windows)


def learned(rows: int) -> int:
    """Return the rows at the beginning of a series that are for learning."""
    return min(int(LEARNED * rows), MOST_LEARNED)


def counted(alarms: Iterable[int], windows: Sequence[Window], rows: int) -> Counted:
    """Score the alarms of one series, by their rows."""
    best, false, cost = [-OF_MISSED] * len(windows), 0, 0.0
    for row in alarms:
        if row < learned(rows):
            continue
        inside = [number for number, (first, last) in enumerate(windows) if first <= row <= last]
        for number in inside:
            first, last = windows[number]
            best[number] = max(best[number], _sigmoid(-(last - row + 1) / (last - first + 1)) / _sigmoid(-1.0))
        if not inside:
            false, cost = false + 1, cost + OF_FALSE * _after(row, windows)
    hits = sum(of_window > -OF_MISSED for of_window in best)
    return Counted(sum(best) + cost, hits, len(windows), false)


def _after(row: int, windows: Sequence[Window]) -> float:
    """Return the score of a false alarm, from 0 right after a window to -1 far behind it."""
    before = [(first, last) for first, last in windows if last < row]
    if not before:
        return -1.0
    first, last = before[-1]
    return _sigmoid((row - last) / max(last - first, 1))


def _sigmoid(position: float) -> float:
    return -1.0 if position > 3 else float(2 / (1 + np.exp(5 * position)) - 1)
