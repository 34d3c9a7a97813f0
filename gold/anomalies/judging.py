"""Vectors of one entity, judged by its model: a score, whether it is an alarm, and what each feature was expected to be. Pure.

Any cut into batches gives the same rows, to the last bit: what a vector needs of those before is their last PAST values, and `carry` of the
last one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gold.anomalies.alarms import Alarmed, alarms
from gold.anomalies.model import Model, Series, phase, stuck, two_largest
from gold.anomalies.residual import LAGS, held, score, stands, with_past
from gold.anomalies.tail import Floats

PAST = 2 * LAGS
BAND = 3.0
"""Half a band is so many spreads of the residual wide."""


@dataclass(frozen=True)
class Judged:
    """A row a vector. `scores`: NaN where less than half of the features are there. `expected`, `bands` (half of one), `shares`: a column a
    feature, NaN where it is a hole; `expected` also where a value stands that should move. `carry`: what the next vector needs."""

    scores: Floats
    thresholds: Floats
    is_alarm: npt.NDArray[np.bool_]
    expected: Floats
    bands: Floats
    shares: Floats
    carry: Floats


def judge(model: Model, entity: str, series: Series, past: Floats, carry: Floats | None) -> Judged:
    """Judge vectors in order of time. `past`: values of the last PAST vectors before them, or of all; `carry`: that of the last one."""
    fitted, values = model.fitted[entity], series.values
    families = len(fitted.families)
    whole = with_past(np.vstack([past, values]), PAST - len(past))
    means, rule, stood, last = _nothing(values.shape[1]) if carry is None else np.split(carry, _places(families, values.shape[1]))
    scored = score(fitted, whole, phase(model.step, series.ends), means)
    surprises = np.stack([model.tails[name].surprise(scored.scores[:, n]) for n, name in enumerate(fitted.families)], axis=1)
    stand = stands(values, stood, last)
    stuck_now = np.where(np.isnan(values), 0.0, stuck(fitted, stand))
    scores = two_largest(np.column_stack([surprises, stuck_now.max(axis=1)]))
    scores = np.where(np.isnan(surprises[:, 0]), np.nan, scores)
    raised = alarms(model.rule, scores, Alarmed(*rule))
    certain = np.nan_to_num(surprises)
    number = certain.argmax(axis=1)
    rows = np.arange(len(values))
    residuals = np.stack([*scored.residuals.values()], axis=1)[rows, number]
    spreads = np.stack([family.spread for family in fitted.families.values()])[number] * fitted.scale.spread
    is_stuck = stuck_now.max(axis=1) > certain.max(axis=1)
    weights = np.where(is_stuck[:, None], stuck_now, residuals**2)
    total = np.nansum(weights, axis=1, keepdims=True)
    return Judged(
        scores,
        raised.thresholds,
        raised.is_alarm,
        np.where(is_stuck[:, None] & (stuck_now > 0), np.nan, values - residuals * spreads),
        np.where(np.isnan(residuals), np.nan, BAND * spreads),
        np.where(np.isnan(values), np.nan, weights / np.where(total > 0, total, 1.0)),
        np.hstack([scored.means, raised.after, stand, held(np.vstack([last, values]))[0][1:]]),
    )


def _nothing(features: int) -> tuple[None, tuple[()], Floats, Floats]:
    return None, (), np.zeros(features), np.full(features, np.nan)


def _places(families: int, features: int) -> list[int]:
    return [families, families + 3, families + 3 + features]
