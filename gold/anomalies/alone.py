"""Series that are judged alone: each learns from its own beginning, by the defaults. Beside it, ways to alarm that know little. Pure."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gold.anomalies.alarms import Rule, alarms, with_threshold
from gold.anomalies.detectors import NOVELTY_THRESHOLD, PAUSE
from gold.anomalies.judging import PAST, judge
from gold.anomalies.model import DECAYS, Series, train, two_largest
from gold.anomalies.novelty import Memory
from gold.anomalies.residual import DAY, LAGS, has_half
from gold.anomalies.tail import Floats

ENOUGH, ENOUGH_VECTORS = 14 * DAY, 2000
"""History from which one feature is judged by its season and its past, and not by novelty."""
Z, AT_ONCE = np.arange(3.0, 12.0, 0.1), 10_000
"""Thresholds of `moving_z`, and rows of which the windows before are in memory at once."""
Alarming = Callable[[Series, int], list[int]]
"""Returns the rows of a series that are alarms; the first rows, so many, are for learning."""


def by_default(series: Series, learned: int) -> list[int]:
    """Judge by `residual` where there are several features or enough to learn from, else by `novelty`."""
    features = series.values.shape[1]
    if features == 1 and (learned < ENOUGH_VECTORS or series.ends[learned] - series.ends[0] < ENOUGH):
        surprises = Memory(learned).judge(series.values[:, 0], series.ends)
        rule = Rule(NOVELTY_THRESHOLD, PAUSE * learned, DECAYS * learned)
        return _rows(alarms(rule, two_largest(surprises)).is_alarm)
    if not has_half(series.values[2 * LAGS : learned]).any():
        return []  # there is nothing to learn from
    past, rest = (Series(series.ends[part], series.values[part]) for part in (slice(learned), slice(learned, None)))
    model = train([str(number) for number in range(features)], int(np.median(np.diff(series.ends))), [("", past)])
    return [learned + row for row in _rows(judge(model, "", rest, past.values[-PAST:], None).is_alarm)]


def moving_z(series: Series, learned: int) -> list[int]:
    """Alarm by `z_scores`, at one alarm in what is learned."""
    scores = z_scores(series, learned)
    rule = with_threshold(Rule(0.0, PAUSE * learned, DECAYS * learned), Z.tolist(), [scores[:learned]], 1)
    return _rows(alarms(rule, scores).is_alarm)


def z_scores(series: Series, learned: int) -> Floats:
    """Compare each feature with mean and deviation of its last rows, a tenth of the learned ones; 0 for the first rows."""
    width, scores = max(learned // 10, 10), np.zeros(len(series.ends))
    windows = np.lib.stride_tricks.sliding_window_view(series.values, width, axis=0)
    for first in range(width, len(scores), AT_ONCE):
        values = series.values[first : first + AT_ONCE]
        before = windows[first - width :][: len(values)]
        mean = before.mean(axis=2)
        spread = before.std(axis=2) + 1e-9 * (1 + np.abs(mean))
        scores[first : first + AT_ONCE] = np.nan_to_num((np.abs(values - mean) / spread).max(axis=1))
    return scores


def alarm_clock(series: Series, learned: int) -> list[int]:
    """Alarm each half of the learning time, whatever the values are."""
    return [*range(learned, len(series.ends), max(learned // 2, 1))]


def always_quiet(_series: Series, _learned: int) -> list[int]:
    return []


def _rows(is_alarm: npt.NDArray[np.bool_]) -> list[int]:
    rows: list[int] = np.flatnonzero(is_alarm).tolist()
    return rows


WAYS: dict[str, Alarming] = {
    "default": by_default,
    "moving z": moving_z,
    "alarm clock": alarm_clock,
    "always quiet": always_quiet,
}
