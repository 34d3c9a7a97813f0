"""A meter once more, written from the page of gold: one reading after the other, with the marks at which it may turn up again."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from silver.metric import CounterRule

MICROS_AN_HOUR = 3_600_000_000
MARKS = 4


class Rise(NamedTuple):
    """A reading's rise, and what it was."""

    amount: float
    glitch: bool = False
    wrap: bool = False
    reset: bool = False


class Mark:
    """A value that a meter left downwards, or by too large a leap. `since`: what has been counted from there on."""

    def __init__(self, value: float, at: int) -> None:
        self.value, self.at, self.since = value, at, 0.0


class Meter:
    """Readings must come in order of time; instants in microseconds."""

    def __init__(self, rule: CounterRule) -> None:
        self._rule = rule
        self._value: float | None = None
        self._at = 0
        self._marks: list[Mark] = []
        self._doubtful = 0.0

    def copy(self) -> "Meter":
        other = Meter(self._rule)
        other._value, other._at, other._doubtful = self._value, self._at, self._doubtful
        for mark in self._marks:
            other._marks.append(Mark(mark.value, mark.at))
            other._marks[-1].since = mark.since
        return other

    def read(self, at: int, value: float) -> Rise | None:
        """None for the first reading of a meter."""
        if value < 0:
            return Rise(0.0, glitch=True)
        if self._value is None:
            self._value, self._at = value, at
            return None
        fell = value < self._least(self._value)
        mark = next(self._reached(value, fell), None)
        if mark is not None:
            return self._returned(mark, at, value)
        if not fell:
            return self._went_on(at, value)
        return self._began(at, value)

    def _least(self, value: float) -> float:
        noise = self._rule.glitch_amount
        return value - (value * self._rule.glitch_share if noise is None else noise)

    def _reached(self, value: float, fell: bool) -> Iterator[Mark]:
        assert self._value is not None
        for mark in self._marks:
            if value >= self._least(mark.value) and (mark.value > self._value or fell):
                yield mark

    def _is_too_fast(self, rise: float, micros: int) -> bool:
        most = self._rule.most_per_hour
        return most is not None and rise > most * micros / MICROS_AN_HOUR

    def _leave(self, value: float, at: int) -> None:
        self._marks = [*self._marks, Mark(value, at)][-MARKS:]

    def _count(self, rise: float, value: float) -> None:
        """A mark is given up when more has been counted from it than is missing to it."""
        for mark in self._marks:
            mark.since += rise
        self._marks = [mark for mark in self._marks if mark.since <= max(mark.value - value, 0.0)]

    def _returned(self, mark: Mark, at: int, value: float) -> Rise:
        self._marks, self._doubtful = self._marks[: self._marks.index(mark)], 0.0
        self._value, self._at = mark.value + mark.since, mark.at
        rise = self._went_on(at, value)
        self._value = max(value, mark.value)
        return Rise(rise.amount, glitch=True)

    def _booked(self, old: float, rise: float, value: float) -> float:
        """Count a rise between two values and what was in doubt; one that leads more than half of the way to a mark is in doubt now."""
        if not rise:
            return 0.0
        before, self._doubtful = self._doubtful, 0.0
        self._count(before, old)
        if self._rule.most_per_hour is None and any(0 < mark.value - old < 2 * rise for mark in self._marks):
            self._doubtful = rise
            return before
        self._count(rise, value)
        return before + rise

    def _went_on(self, at: int, value: float) -> Rise:
        assert self._value is not None
        old = self._value
        rise, was = max(value - old, 0.0), ""
        if old == 0 and rise > 0 and any(mark.since == 0 for mark in self._marks):
            to_wrap = self._to_wrap(self._marks[-1].value, value)
            was, rise = ("reset", rise) if to_wrap is None else ("wrap", to_wrap)
        if self._is_too_fast(rise, at - self._at):
            self._leave(old, self._at)
            self._value, self._at = value, at
            return Rise(0.0, glitch=True)
        was = "reset" if self._doubtful and rise else was
        self._value, self._at = max(value, old), at
        rise, is_new = self._booked(old, rise, self._value), rise > 0
        if is_new and self._doubtful:
            return Rise(rise, glitch=True)
        return Rise(rise, glitch=value < old, wrap=was == "wrap", reset=was == "reset")

    def _began(self, at: int, value: float) -> Rise:
        assert self._value is not None
        wrapped = self._to_wrap(self._value, value) if value > 0 else None
        rise = wrapped if wrapped is not None else value if value < self._value / 2 else 0.0
        if self._is_too_fast(rise, at - self._at):
            rise = 0.0
        self._leave(self._value, self._at)
        self._value, self._at, self._doubtful = value, at, 0.0
        self._count(rise, value)
        return Rise(rise, wrap=wrapped is not None, reset=wrapped is None and value > 0)

    def _to_wrap(self, old: float, value: float) -> float | None:
        """The way over the greatest value of the counter, from its last tenth to its first; None where there is none."""
        width = self._rule.wraps_at
        return width - old + value if width is not None and 0.9 * width <= old <= width and value <= 0.1 * width else None


Overlapping = Callable[[int, int], Iterable[tuple[int, int]]]
"""Begin and end of windows that hold some instant from one until another, or a few more."""


def averages(hold: int, overlapping: Overlapping, readings: list[tuple[int, float]]) -> Iterator[tuple[int, int, float]]:
    """Yield begin and end of each window in which something is known, and the mean of what held: each value until the next, or `hold`.

    All in microseconds; `readings`: instant and value, in order.
    """
    areas, lengths = defaultdict[tuple[int, int], float](float), defaultdict[tuple[int, int], int](int)
    for number, (at, value) in enumerate(readings):
        ended = min([at + hold, *(later for later, _ in readings[number + 1 : number + 2])])
        for begin, end in overlapping(at, ended):
            if (length := min(end, ended) - max(begin, at)) > 0:
                areas[begin, end] += value * length
                lengths[begin, end] += length
    yield from ((*window, areas[window] / length) for window, length in lengths.items())


def increases(rule: CounterRule, slide: int, step: int, rows: Iterable[tuple[int, int, float]]) -> Iterator[tuple[int, float]]:
    """Yield the end of each window of one meter, and what it rose by in it. `rows`: end of the window, instant and value, in order.

    Lengths and instants are in microseconds. A window goes on from the readings before it, as they count in the last of their windows.
    """
    before = Meter(rule)
    for end, of_window in groupby(rows, itemgetter(0)):
        meter, total = before.copy(), 0.0
        for _, at, value in of_window:
            rise = meter.read(at, value)
            total += rise.amount if rise else 0.0
            if at < end - step + slide:
                before = meter.copy()
        yield end, total
