"""The detector `residual`: how far the features of an entity are from what its season, its past and its other features let expect. Pure.

A row of the design holds the features now, one and two vectors ago, their mean over the last LAGS, harmonics of the day, and one. Three
families of ridge regressions give residuals: `season`; `lags`, with the season; `others`: the other features now, with the season. The
score of a family is the mean square of its residuals, smoothed over a few vectors.

Scores are the same to the last bit however vectors are cut into batches: sums are over rows in a fixed order, never running ones, and
einsum computes products, as those of BLAS differ in the last bit with the number of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from gold.anomalies.tail import Floats

LAGS, HARMONICS, FOLDS = 10, 3, 3
RIDGE, FREE = 0.02, 1e-9
KEEPS = 0.5 ** (1 / 3)
"""The weight of the scores before in the next one: a half after three vectors."""
CLIP, RESIDUAL_CLIP = 10.0, 30.0
OWN = 0.95
"""The quantile of an entity's own scores by which they are divided, before those of a group are put together."""
LEAST_SPREAD, LEAST_OWN = 0.02, 1e-9
LEAST_VALUES, UNSEEN = 2 * LAGS, 1e100
"""A feature with fewer values in the training is not known: the spread of its scale is UNSEEN, and it counts for nothing."""
DAY = 86_400_000_000
SEASON, PAST, OTHERS = "season", "lags", "others"


@dataclass(frozen=True)
class Scale:
    """`middle` and `spread` of each feature."""

    middle: Floats
    spread: Floats

    def scaled(self, values: Floats) -> Floats:
        return np.clip((values - self.middle) / self.spread, -CLIP, CLIP)


@dataclass(frozen=True)
class Family:
    """Regressions of one family. `coefficients`: a column a feature, a row a column of the design, 0 where the family has none of it.

    `mixed`: weights with which residuals of all features make that of one; None where the other features are no inputs. `spread`: of
    residuals out of fold. `own`: the OWN quantile of scores. `level`: the score from which the next one goes on.
    """

    coefficients: Floats
    mixed: Floats | None
    spread: Floats
    own: float
    level: float

    def residuals(self, rows: Floats, predicted: Floats, is_hole: npt.NDArray[np.bool_]) -> Floats:
        """Return residuals in their spread; those of holes are NaN, and count for nothing. `predicted`: by `coefficients`."""
        plain = np.where(is_hole, 0.0, rows[:, : is_hole.shape[1]] - predicted)
        mixed = plain if self.mixed is None else np.einsum("nf,fg->ng", plain, self.mixed)
        return np.where(is_hole, np.nan, np.clip(mixed / self.spread, -RESIDUAL_CLIP, RESIDUAL_CLIP))


@dataclass(frozen=True)
class Fitted:
    """The model of one entity. `longest`: the most vectors in a row that had one value of a feature."""

    scale: Scale
    families: dict[str, Family]
    longest: Floats


@dataclass(frozen=True)
class Scored:
    """A row a vector: scores by family over the entity's own quantile, NaN where less than half of the features are there; the smoothed
    scores that the next vector goes on from; residuals by family."""

    scores: Floats
    means: Floats
    residuals: dict[str, Floats]


def phase_of(ends: npt.NDArray[np.int64]) -> Floats:
    """Return the part of the day (UTC) that has passed at each end of a window, in microseconds since 1970."""
    return np.asarray((ends % DAY) / DAY)


def scale_of(values: Floats) -> Scale:
    """Choose the scale of a training; NaN counts for nothing. A feature that hardly moves keeps a spread, so that its change is seen."""
    low, middle, high = np.nanpercentile(values, [1, 50, 99], axis=0)
    deviation, least, most = np.nanstd(values, axis=0), np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    robust = (high - low) / 4.65  # of a normal distribution that is one standard deviation
    spread = np.where(robust > 0, np.maximum(robust, 0.3 * deviation), deviation)
    floor = np.maximum(1e-3 * np.maximum(np.maximum(np.abs(least), np.abs(most)), 1e-3), 0.02 * (most - least))
    return Scale(middle, np.maximum(spread, floor))


def inputs(scale: Scale, values: Floats) -> Floats:
    """Scale values; in place of a hole is the last value of the LAGS rows before, or the middle."""
    rows = scale.scaled(values)
    kept, newest = held(rows)
    return np.where((newest < 0) | (np.arange(len(rows))[:, None] - newest > LAGS), 0.0, kept)


def held(rows: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return for each row and feature the last value that was there, NaN for none, and its row, -1 for none."""
    newest = np.maximum.accumulate(np.where(np.isnan(rows), -1, np.arange(len(rows))[:, None]), axis=0)
    return np.take_along_axis(rows, np.maximum(newest, 0), axis=0), newest


def design(rows: Floats, phase: Floats | None) -> Floats:
    """Build the design of inputs but the first LAGS, which are the past of the others."""
    count = len(rows) - LAGS
    mean = rows[LAGS - 1 : -1].copy()
    for ago in range(2, LAGS + 1):
        mean += rows[LAGS - ago : LAGS - ago + count]
    waves = [] if phase is None else [wave(2 * np.pi * n * phase)[:, None] for n in range(1, HARMONICS + 1) for wave in (np.cos, np.sin)]
    return np.hstack([rows[LAGS:], rows[LAGS - 1 : -1], rows[LAGS - 2 : -2], mean / LAGS, *waves, np.ones((count, 1))])


def with_past(values: Floats, count: int) -> Floats:
    """Put before the first values of an entity what is taken for so many vectors of their past."""
    return np.vstack([np.repeat(values[:1], count, axis=0), values])


def smoothed(scores: Floats, level: float) -> Floats:
    """Return the mean of scores of which later ones weigh more; a score that is NaN changes nothing, and its mean is that of before."""
    is_there = ~np.isnan(scores)
    means = accumulate(scores[is_there].tolist(), lambda mean, now: KEEPS * mean + (1 - KEEPS) * now, initial=level)
    return np.asarray(np.array([*means])[np.cumsum(is_there)])


def has_half(values: Floats) -> npt.NDArray[np.bool_]:
    """Say for each vector whether half of its features are there: with fewer it has no score, and nothing is learned from it."""
    return np.asarray(2 * (~np.isnan(values)).sum(axis=1) >= values.shape[1])


def mean_squares(residuals: Floats) -> Floats:
    """Return the score of each vector; NaN where less than half of the features are there."""
    is_there = ~np.isnan(residuals)
    count = is_there.sum(axis=1)
    squares = np.where(is_there, residuals, 0.0) ** 2
    total = squares[:, 0].copy()
    for feature in range(1, squares.shape[1]):
        total += squares[:, feature]
    return np.asarray(np.where(has_half(residuals), total / np.maximum(count, 1), np.nan))


def fit(values: Floats, phase: Floats | None) -> tuple[Fitted, dict[str, Floats]]:
    """Fit the model of one entity to vectors in order of time, NaN where a feature is missing or filled.

    Returns with it the scores out of fold, by family: those of the rows of one fold by regressions of the others.
    """
    is_hole = np.isnan(values)
    is_seen = (~is_hole).sum(axis=0) >= LEAST_VALUES
    scale = scale_of(np.where(is_seen, values, 0.0))
    scale = Scale(scale.middle, np.where(is_seen, scale.spread, UNSEEN))
    rows = design(inputs(scale, with_past(values, LAGS)), phase)
    features, ends = values.shape[1], np.linspace(0, len(rows), FOLDS + 1).astype(int)
    folds = [slice(*fold) for fold in pairwise(ends)]
    sums = [rows[fold].T @ rows[fold] for fold in folds]
    total = np.sum(sums, axis=0)
    families, scores = {}, {}
    for name in _families(features, phase):
        apart = np.vstack(
            [_left_over(_solved(name, total - part, features), rows[fold], is_hole[fold]) for fold, part in zip(folds, sums, strict=True)]
        )
        spread = _spread(np.where(is_seen, apart, 0.0))
        squares = mean_squares(np.clip(apart / spread, -RESIDUAL_CLIP, RESIDUAL_CLIP))
        means = smoothed(squares, float(np.nanmedian(squares)))
        own = max(float(np.quantile(means[2 * LAGS :], OWN)), LEAST_OWN)
        whole = _solved(name, total, features)
        families[name] = Family(whole.coefficients, whole.mixed, spread, own, float(means[-1]))
        scores[name] = means[2 * LAGS :][~np.isnan(squares[2 * LAGS :])] / own
    longest = stands(values, np.zeros(features), np.full(features, np.nan)).max(axis=0)
    return Fitted(scale, families, np.where(is_seen, longest, UNSEEN)), scores


def _left_over(family: Family, rows: Floats, is_hole: npt.NDArray[np.bool_]) -> Floats:
    return family.residuals(rows, rows @ family.coefficients, is_hole)


def score(model: Fitted, values: Floats, phase: Floats | None, means: Sequence[float] | Floats | None = None) -> Scored:
    """Score vectors of one entity in order of time. The first 2 * LAGS of `values` are the past of the others; see with_past.

    `means`: the smoothed scores of the last vector before, by family; None: those of the training.
    """
    is_hole, rows = np.isnan(values[2 * LAGS :]), design(inputs(model.scale, values)[LAGS:], phase)
    families = model.families.values()
    predicted = np.einsum("nj,jf->nf", rows, np.hstack([family.coefficients for family in families]))
    by_family = zip(model.families.items(), np.split(predicted, len(families), axis=1), strict=True)
    residuals = {name: family.residuals(rows, of_family, is_hole) for (name, family), of_family in by_family}
    levels = [family.level for family in families] if means is None else means
    squares = {name: mean_squares(of_family) for name, of_family in residuals.items()}
    after = [smoothed(of_family, level) for of_family, level in zip(squares.values(), levels, strict=True)]
    scores = [
        np.where(np.isnan(squares[name]), np.nan, mean / family.own)
        for (name, family), mean in zip(model.families.items(), after, strict=True)
    ]
    return Scored(np.stack(scores, axis=1), np.stack(after, axis=1), residuals)


def stands(values: Floats, before: Floats, last: Floats) -> Floats:
    """Count for each vector and feature the vectors before it, in a row, that had the same value; a hole changes nothing.

    `before`: the counts of the last vector before; `last`: the last values that were there, NaN for none.
    """
    return np.stack([_stands(*of_feature) for of_feature in zip(values.T, before, last, strict=True)], axis=1)


def _stands(values: Floats, before: float, last: float) -> Floats:
    is_there = ~np.isnan(values)
    there = values[is_there]
    number = np.arange(len(there))
    changed = np.maximum.accumulate(np.where(there != np.concatenate([[last], there[:-1]]), number, -1))
    counts = np.where(changed < 0, before + 1 + number, number - changed)
    return np.asarray(np.concatenate([[before], counts])[np.cumsum(is_there)])


def _families(features: int, phase: Floats | None) -> Sequence[str]:
    return [*([SEASON] if phase is not None else []), PAST, *([OTHERS] if features > 1 else [])]


def _solved(name: str, sums: Floats, features: int) -> Family:
    """Solve the regressions of a family by the sums of products of the columns of the design."""
    width = len(sums)
    columns = np.arange(features if name == PAST else 4 * features, width)
    means = sums / sums[-1, -1]  # the last column is one
    penalty = np.where(columns == width - 1, FREE, RIDGE)
    few = np.linalg.solve(means[np.ix_(columns, columns)] + np.diag(penalty), means[columns, :features])
    coefficients, mixed = np.zeros((width, features)), None
    coefficients[columns] = few
    if name == OTHERS:
        left = means[:features, :features] - means[:features, columns] @ few
        inverse = np.linalg.inv((left + left.T) / 2 + RIDGE * np.eye(features))
        mixed = inverse / np.diag(inverse)
    return Family(coefficients, mixed, np.ones(features), 1.0, 0.0)


def _spread(residuals: Floats) -> Floats:
    low, high = np.nanpercentile(residuals, [0.5, 99.5], axis=0)
    return np.asarray(np.sqrt(np.nanmean(np.clip(residuals, low, high) ** 2, axis=0)) + LEAST_SPREAD)
