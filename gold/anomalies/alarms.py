"""The alarm rule: one alarm an event, and a threshold that rises with each alarm and comes down again. Pure.

Scores come in order of time, cut anywhere: all that an alarm leaves is `Alarmed`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gold.anomalies.tail import Floats

WORSE = 1.5
"""Within the pause after an alarm there is another one only where the score is so many times as high."""
RISE, HIGHEST_RISE = 0.2, 3.0


@dataclass(frozen=True)
class Rule:
    """`threshold`: of a score; `pause`: vectors after an alarm without another one; `decay`: vectors in which its rise falls to 1/e."""

    threshold: float
    pause: float
    decay: float


@dataclass(frozen=True)
class Alarmed:
    """The last alarm before a vector: by how much it left the threshold higher, its score, and vectors since."""

    rise: float = 0.0
    score: float = 0.0
    ago: float = 1e9


@dataclass(frozen=True)
class Alarms:
    """A row a vector: whether it is an alarm, the threshold that its score was compared with, the fields of `Alarmed` after it."""

    is_alarm: npt.NDArray[np.bool_]
    thresholds: Floats
    after: Floats


def alarms(rule: Rule, scores: Floats, before: Alarmed = Alarmed()) -> Alarms:
    """Judge vectors of one entity in order of time. A score that is NaN is no alarm."""
    is_alarm = np.zeros(len(scores), bool)
    last = np.full(len(scores), -before.ago - 1)  # where the last alarm before a vector is
    rise, score = np.full(len(scores), before.rise), np.full(len(scores), before.score)
    rises = list[float]()
    for at in np.flatnonzero(scores >= rule.threshold).tolist():
        ago = at - last[at]
        raised = rise[at] * np.exp(-ago / rule.decay)
        if scores[at] >= rule.threshold + raised and (ago > rule.pause or scores[at] > score[at] * WORSE):
            is_alarm[at] = True
            rises.append(min(raised + RISE, HIGHEST_RISE))
            last[at + 1 :], rise[at + 1 :], score[at + 1 :] = at, rises[-1], scores[at]
    since = np.arange(len(scores)) - last
    thresholds = rule.threshold + rise * np.exp(-since / rule.decay)
    after = np.stack([rise, score, since], axis=1)
    after[is_alarm] = np.stack([np.array(rises), scores[is_alarm], np.zeros(len(rises))], axis=1)
    return Alarms(is_alarm, thresholds, after)


def with_threshold(rule: Rule, thresholds: Iterable[float], scores: Sequence[Floats], most: float) -> Rule:
    """Return the rule with the lowest of ascending thresholds that raises at most so many alarms in all scores, else the highest."""
    for threshold in thresholds:
        rule = replace(rule, threshold=threshold)
        if sum(int(alarms(rule, of_entity).is_alarm.sum()) for of_entity in scores) <= most:
            break
    return rule
