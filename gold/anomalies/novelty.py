"""The detector `novelty`: how new a value of one feature is, and how new its spread and its steps. It learns while it judges. Pure.

Each of four measures of a vector becomes a surprise: -log10 of the share of its own past that was as high.

| measure | of |
|---|---|
| `value` | distance to the nearest value that was ever there |
| `value at the hour` | the same, with the hour of the day as two more coordinates |
| `spread` | standard deviation of the last vectors |
| `step` | distance between the means of the last vectors and of those before |
"""

from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt

from gold.anomalies.tail import Floats

MEASURES = ("value", "value at the hour", "spread", "step")
HOURS, BINS, BIN = 24, 1001, 0.1
BEHIND = 2
"""A value counts as seen so many vectors later: an event of two vectors is new in both."""
LEVELS, LEAST_LOG, LEVEL = 400, -14.0, 28.0 / 400
"""Bins of the histograms: how many, where they begin and how wide they are, in logarithms of measures."""
TINY, TOP, MEMORY, MOST = 1e-3, 0.005, 12, 6.0
"""TOP: the share of the past above which a tail is fitted. MEMORY: in learning times, after which the past weighs 1/e."""
CENTRES = np.sinh((np.arange(BINS) - BINS // 2) * BIN / 2) * 2
CHORDS = 2 * np.abs(np.sin(np.pi * np.arange(HOURS) / HOURS))
HOUR = 3_600_000_000
LEAST_SPREAD = 1e-50
"""The largest value is so many times as large that its square is a number yet."""


@dataclass
class Memory:
    """The past of one feature of an entity; `judge` changes it. `learning`: how many values it learns before it judges.

    `first`: these values, until they are complete; then `middle` and `spread` are their scale. `recent`: the last scaled values.
    `seen`: hours of the day in which a bin of values was there. `histograms`: decayed, a row a measure; `weight`: of the next measure.
    """

    learning: int
    first: list[tuple[float, int]] = field(default_factory=list)
    middle: float = 0.0
    spread: float = 0.0
    count: int = 0
    recent: list[float] = field(default_factory=list)
    waiting: list[tuple[int, int]] = field(default_factory=list)
    seen: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros((HOURS, BINS), bool))
    histograms: Floats = field(default_factory=lambda: np.zeros((len(MEASURES), LEVELS)))
    weight: float = 1.0
    before: Floats | None = None

    @property
    def _block(self) -> int:
        return 4 * max(1, self.learning // 104)

    def packed(self) -> bytes:
        """Return all of it as bytes."""
        seen, before = np.packbits(self.seen).tobytes(), None if self.before is None else self.before.tobytes()
        return msgspec.msgpack.encode(vars(self) | {"seen": seen, "histograms": self.histograms.tobytes(), "before": before})

    @classmethod
    def unpacked(cls, packed: bytes) -> "Memory":
        """Return what was packed."""
        fields = msgspec.msgpack.decode(packed)
        seen = np.unpackbits(np.frombuffer(fields["seen"], np.uint8), count=HOURS * BINS).reshape(HOURS, BINS).astype(bool)
        histograms = np.frombuffer(fields["histograms"]).reshape(len(MEASURES), LEVELS).copy()
        waiting = [*map(tuple, fields["waiting"])]
        before = None if fields["before"] is None else np.frombuffer(fields["before"])
        return cls(**fields | {"seen": seen, "histograms": histograms, "waiting": waiting, "before": before})

    def judge(self, values: Floats, ends: npt.NDArray[np.int64]) -> Floats:
        """Return the surprises of values in order of time, a column a measure; NaN for a hole and while it learns.

        `ends`: of their windows, in microseconds since 1970.
        """
        surprises = np.full((len(values), len(MEASURES)), np.nan)
        for row, (value, end) in enumerate(zip(values.tolist(), ends.tolist(), strict=True)):
            if np.isnan(value):
                continue
            hour = end // HOUR % HOURS
            if not self.count:
                self.first.append((value, hour))
                if len(self.first) == self.learning:
                    self._learn()
                continue
            surprises[row] = self._next(value, hour)
        return surprises

    def _learn(self) -> None:
        values = np.array([value for value, _ in self.first])
        low, middle, high = np.percentile(values, [5, 50, 95])
        spread = max((high - low) / 3.3, 0.3 * values.std())
        self.middle, self.spread = float(middle), float(max(spread, LEAST_SPREAD) if spread > 0 else max(abs(values[0]) * 0.01, 1e-6))
        first, self.first = self.first, []
        for value, hour in first:
            self._next(value, hour)

    def _next(self, value: float, hour: int) -> Floats:
        scaled = (value - self.middle) / self.spread
        number = int(np.clip(np.round(np.arcsinh(scaled / 2) * 2 / BIN) + BINS // 2, 0, BINS - 1))
        if len(self.waiting) == BEHIND:
            self.seen[self.waiting.pop(0)] = True
        self.waiting.append((hour, number))
        self.recent = [*self.recent[-2 * self._block + 1 :], scaled]
        measures = np.array([*self._distances(hour, number), *self._moves()])
        if self.before is not None and self.count > self.learning // 8:
            self._remember(self.before)
        surprises = self._surprises(measures) if self.count >= self.learning // 2 else np.zeros(len(MEASURES))
        self.before, self.count = measures, self.count + 1
        return surprises

    def _distances(self, hour: int, number: int) -> tuple[float, float]:
        seen = np.flatnonzero(self.seen)
        if not len(seen):
            return 0.0, 0.0
        away, turned = np.abs(CENTRES[seen % BINS] - CENTRES[number]), CHORDS[(seen // BINS - hour) % HOURS]
        return float(away.min()), float(np.sqrt((away**2 + turned**2).min()))

    def _moves(self) -> tuple[float, float]:
        last = np.array(self.recent)
        if len(last) < 2 * self._block:
            return 0.0, 0.0
        return float(last[-max(self._block, 3) :].std(ddof=1)), abs(float(last[self._block :].mean() - last[: self._block].mean()))

    def _remember(self, measures: Floats) -> None:
        self.histograms[np.arange(len(MEASURES)), _levels(measures)] += self.weight
        self.weight /= float(np.exp(-1.0 / (MEMORY * self.learning)))
        if self.weight > 1e100:
            self.histograms, self.weight = self.histograms / self.weight, 1.0

    def _surprises(self, measures: Floats) -> Floats:
        total = self.histograms[0].sum()
        if total <= 0:
            return np.zeros(len(MEASURES))
        logs, rows = np.log(measures + TINY), np.arange(len(MEASURES))
        above = np.cumsum(self.histograms[:, ::-1], axis=1)[:, ::-1]  # of this level and those above
        low = np.maximum((above >= TOP * total).sum(axis=1) - 1, 0)  # the highest level above which there is the TOP share
        beyond = logs - (LEAST_LOG + low * LEVEL)
        share = above[rows, low]
        heights = (np.arange(LEVELS) + 0.5 - low[:, None]) * LEVEL
        excess = np.where(heights > 0, self.histograms * heights, 0.0).sum(axis=1)
        tail = share / total * np.exp(-beyond / np.maximum(excess / share, LEVEL / 2))
        plain = above[rows, _levels(measures)] / total
        return np.asarray(np.clip(-np.log10(np.maximum(np.where(beyond > 0, tail, plain), 1e-300)), 0.0, MOST))


def _levels(measures: Floats) -> npt.NDArray[np.int64]:
    return np.asarray(np.clip(((np.log(measures + TINY) - LEAST_LOG) / LEVEL).astype(np.int64), 0, LEVELS - 1))
