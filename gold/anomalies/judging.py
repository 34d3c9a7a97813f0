"""Vectors of one entity, judged by its model: a score, whether it is an alarm, and what each feature was expected to be. Pure.

Any cut into batches gives the same rows, to the last bit: what a vector needs of those before is their last PAST values, and `carry` of the
last one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gold.anomalies.alarms import Alarmed, alarms
from gold.anomalies.model import Model, Series, phase, stuck, two_largest
from gold.anomalies.residual import LAGS, UNSEEN, held, score, stands, with_past
from gold.anomalies.tail import Floats

PAST = 2 * LAGS
BAND = 3.0
"""Half a band is so many spreads of the residual wide."""


@dataclass(frozen=True)
class Judged:
    """A row a vector. `scores`: NaN where less than half of the features are there. `expected`, `bands` (half of one), `shares`: a column a
    feature, NaN where it is a hole; `expected` also where a value stands that should move.

    `carry`: what the next vector needs; `after`: that of the last one as bytes.
    """

    scores: Floats
    thresholds: Floats
    is_alarm: npt.NDArray[np.bool_]
    expected: Floats
    bands: Floats
    shares: Floats
    carry: Floats
    after: bytes


def judge(model: Model, entity: str, series: Series, past: Floats, before: Floats | None, *, is_of_model: bool = True) -> Judged:
    """Judge vectors in order of time. `past`: values of the last PAST vectors before them, or of all; `before`: `carry` of the last one.

    `is_of_model`: whether this model has left that; of another one with the same features, only alarms and last values go on.
    """
    fitted = model.fitted[entity]
    values = np.where(fitted.scale.spread >= UNSEEN, np.nan, series.values)
    whole = with_past(np.vstack([past, values]), PAST - len(past))
    means, rule, stood, last = _nothing(values.shape[1]) if before is None else _parts(before, values.shape[1])
    scored = score(fitted, whole, phase(model.step, series.ends), means if is_of_model else None)
    surprises = np.stack([model.tails[name].surprise(scored.scores[:, n]) for n, name in enumerate(fitted.families)], axis=1)
    stand = stands(values, stood, last)
    stuck_now = np.where(np.isnan(values), 0.0, stuck(fitted, stand))
    scores = two_largest(np.column_stack([surprises, stuck_now.max(axis=1)]))
    scores = np.where(np.isnan(surprises[:, 0]), np.nan, scores)
    raised = alarms(model.rule, np.where(series.is_quiet, np.nan, scores), Alarmed(*rule))
    certain = np.nan_to_num(surprises)
    number = certain.argmax(axis=1)
    rows = np.arange(len(values))
    residuals = np.stack([*scored.residuals.values()], axis=1)[rows, number]
    spreads = np.stack([family.spread for family in fitted.families.values()])[number] * fitted.scale.spread
    is_stuck = stuck_now.max(axis=1) > certain.max(axis=1)
    weights = np.where(is_stuck[:, None], stuck_now, residuals**2)
    total = np.nansum(weights, axis=1, keepdims=True)
    carry = np.hstack([scored.means, raised.after, stand, held(np.vstack([last, values]))[0][1:]])
    return Judged(
        scores,
        raised.thresholds,
        raised.is_alarm,
        np.where(is_stuck[:, None] & (stuck_now > 0), np.nan, values - residuals * spreads),
        np.where(np.isnan(residuals), np.nan, BAND * spreads),
        np.where(np.isnan(values), np.nan, weights / np.where(total > 0, total, 1.0)),
        carry,
        carry[-1].tobytes(),
    )


def _nothing(features: int) -> tuple[None, tuple[()], Floats, Floats]:
    return None, (), np.zeros(features), np.full(features, np.nan)


def _parts(carry: Floats, features: int) -> list[Floats]:
    families = len(carry) - 3 - 2 * features
    return np.split(carry, [families, families + 3, families + 3 + features])
