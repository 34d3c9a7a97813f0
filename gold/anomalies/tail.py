"""How rare a score is: -log10 of the share of training scores that are as high, at most MOST. Pure."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
QUANTILES = 1000
MOST = 8.0
TOP = 0.01
"""The share of scores that the Pareto tail is fitted to."""
LEAST_TOP, LEAST_SHAPE = 10, 0.05


@dataclass(frozen=True)
class Tail:
    """Quantiles of the scores of a training, evenly spaced; above `high` a Pareto tail of this `shape` (Hill's estimate).

    `share`: of the scores that are at or above `high`.
    """

    quantiles: Floats
    high: float
    share: float
    shape: float

    def surprise(self, scores: Floats) -> Floats:
        """Return -log10 of the probability of a score or a higher one; NaN where it is NaN."""
        below = np.searchsorted(self.quantiles, scores) / (len(self.quantiles) + 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            beyond = self.share * (np.maximum(scores, 1e-12) / self.high) ** (-1 / self.shape)
            chance = np.where(scores > self.high, np.minimum(beyond, 1 - below), 1 - below)
            return np.where(np.isnan(scores), np.nan, np.minimum(-np.log10(np.maximum(chance, 1e-30)), MOST))


def tail_of(scores: Floats) -> Tail:
    """Fit the tail of scores, of which there is at least one."""
    ordered = np.sort(scores)
    top = min(max(int(TOP * len(ordered)), LEAST_TOP), len(ordered))
    high = max(float(ordered[-top]), 1e-12)
    shape = float(np.log(np.maximum(ordered[-top:], 1e-12) / high).mean())
    return Tail(np.quantile(ordered, np.linspace(0, 1, QUANTILES)), high, top / len(ordered), max(shape, LEAST_SHAPE))
