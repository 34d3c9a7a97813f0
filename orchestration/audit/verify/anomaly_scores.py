"""Vectors of one entity judged once more, by a model as its file holds it: residuals in arrays, then one vector after another.

NaN stands for a hole: a feature that is missing, filled or no number. Instants are microseconds since 1970.
"""

import json
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from gold.alerts.spec import Hours
from orchestration.audit.verify.alert_hours import MINUTE, is_within
from orchestration.audit.verify.novelty import Novelty

Array = npt.NDArray[np.float64]
DAY = 86_400_000_000
MEAN_OF, HELD_FOR, PAST = 10, 10, 20
"""Vectors before one: in its mean, for which a value stands in for a hole, and that it is judged by."""
KEEPS = 0.5 ** (1 / 3)
WORSE, RISE, HIGHEST = 1.5, 0.2, 3.0
SURE, TINY, UNSEEN = 8.0, 1e-9, 1e100
"""SURE: the largest surprise. TINY: below that, what makes a score is the noise of the last bits. UNSEEN: the spread of a feature that the
training has not seen; a value so large is none."""


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A model. `tails` by family; `entities`: rows of its file, by entity."""

    model_id: str
    detector: str
    features: tuple[str, ...]
    step: int
    rule: Mapping[str, float]
    learning: int
    tails: Mapping[str, Mapping[str, Any]]
    entities: Mapping[str, Mapping[str, Any]]

    @property
    def is_novelty(self) -> bool:
        return self.detector == "novelty"

    def knows(self, entity: str) -> bool:
        return self.is_novelty or entity in self.entities


def stored_model(model_id: str, content: bytes) -> StoredModel:
    """Read the file of a model."""
    table = pq.read_table(pa.BufferReader(content))
    facts = json.loads(table.schema.metadata[b"model"])
    own = (facts["detector"], tuple(facts["features"]), facts["step"], facts["rule"], facts["learning"], facts["tails"])
    return StoredModel(model_id, *own, {row["entity"]: row for row in table.to_pylist()})


class Verdict(NamedTuple):
    """A vector as it is judged, by features of the model. `noise`: how much more than elsewhere shares may differ."""

    score: float
    threshold: float
    is_anomaly: bool
    expected: Sequence[float]
    band: Sequence[float]
    share: Sequence[float]
    noise: float = 1.0


@dataclass
class State:
    """State between two vectors of an entity, and its part of the model. `rise`, `score`, `ago`: of the last alarm, and the
    vectors since."""

    model: StoredModel
    fitted: Mapping[str, Any]
    means: list[float]
    quiet_hours: Hours | None
    rise: float = 0.0
    score: float = 0.0
    ago: float = 1e9
    stood: list[int] = field(default_factory=list)
    last: list[float] = field(default_factory=list)
    novelties: list[Novelty] = field(default_factory=list)

    def alarm(self, score: float, end: int) -> tuple[float, bool]:
        """Return the threshold of the next vector, and whether it is an alarm."""
        is_quiet = self.quiet_hours is not None and is_within(self.quiet_hours, end // MINUTE)
        rule, self.ago = self.model.rule, self.ago + 1
        raised = self.rise * math.exp(-self.ago / rule["decay"])
        threshold = rule["threshold"] + raised
        is_alarm = not is_quiet and score >= threshold and (self.ago > rule["pause"] or score > WORSE * self.score)
        if is_alarm:
            self.rise, self.score, self.ago = min(raised + RISE, HIGHEST), score, 0
        return threshold, is_alarm


def state_after(before: State | None, model: StoredModel, entity: str, quiet_hours: Hours | None = None) -> State:
    """Return the state with which a model begins: that of the vector before, if it is of a model like this one."""
    fitted = model.entities.get(entity, {})
    levels = [family["ends"][1] for family in fitted.get("families", ())]
    if before is None or (before.model.detector, before.model.features) != (model.detector, model.features):
        count, learning = len(model.features), [model.learning] * len(model.features) * model.is_novelty
        return State(model, fitted, levels, quiet_hours, stood=[0] * count, last=[math.nan] * count, novelties=[*map(Novelty, learning)])
    if before.model.model_id != model.model_id:
        before.model, before.fitted, before.means = model, fitted, levels
    return before


def judged(state: State, ends: Sequence[int], values: Array, past: Array) -> Iterator[Verdict]:
    """Judge vectors of an entity in order of time, and carry the state on. `past`: values of at most PAST vectors before them."""
    if state.model.is_novelty:
        yield from (_novel(state, *of_vector) for of_vector in zip(ends, values.tolist(), strict=True))
        return
    fitted = state.fitted
    values = np.where(np.array(fitted["spread"]) < UNSEEN, values, np.nan)
    is_hole = np.isnan(values)
    design = _design(fitted, state.model.step, ends, np.vstack([past, values]), len(past))
    residuals = [_residuals(family, design, is_hole) for family in fitted["families"]]
    squares = [_mean_squares(of_family).tolist() for of_family in residuals]
    spreads = [np.multiply(family["spread"], fitted["spread"]) for family in fitted["families"]]
    for n, row in enumerate(values):
        surprises = list(_surprises(state, fitted["families"], [of_family[n] for of_family in squares]))
        stuck = _stuck(state, row.tolist(), fitted["longest"])
        score = sum(sorted([*surprises, max(stuck)])[-2:]) / 2 if surprises else math.nan
        threshold, is_alarm = state.alarm(score, ends[n])
        largest = max(surprises, default=0.0)
        number = surprises.index(largest) if surprises else 0
        residual, spread = residuals[number][n], spreads[number]
        is_stuck = max(stuck) > largest
        weights = np.where(is_hole[n], np.nan, stuck if is_stuck else residual**2)
        expected = np.where(np.greater(stuck, 0) & is_stuck, np.nan, row - residual * spread)
        band = np.where(is_hole[n], np.nan, 3 * spread)
        yield Verdict(score, threshold, is_alarm, expected.tolist(), band.tolist(), *_shares(weights))


def explained(features: Sequence[str], values: Sequence[float], verdict: Verdict) -> str:
    """Say in words what made an anomaly: its first feature by share, and the second one if it has a twentieth."""
    order = sorted(range(len(features)), key=lambda n: -round(_number(verdict.share[n]), 9))
    texts = [f"{features[n]} {_text(values[n])}{_instead_of(verdict.expected[n], verdict.band[n])}" for n in order[:2]]
    texts[0] += f" ({verdict.share[order[0]] * 100:.0f} % of the score)"
    return ", ".join(texts if len(order) > 1 and _number(verdict.share[order[1]]) >= 0.05 else texts[:1])


def _instead_of(expected: float, band: float) -> str:
    if math.isnan(expected):
        return " is new" if math.isnan(band) else " stands still"
    return f", expected {_text(expected)} ± {_text(band)}"


def _text(number: float) -> str:
    return format(number, ",.0f" if abs(number) >= 10_000 else ".4g")


def _number(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _shares(weights: Array) -> tuple[list[float], float]:
    total = np.nansum(weights)
    return (weights / (total or 1.0)).tolist(), 1.0 if total > TINY else 1 / TINY


def _design(fitted: Mapping[str, Any], step: int, ends: Sequence[int], values: Array, count: int) -> Array:
    """Build inputs of the regressions. The first `count` of `values` are the past; the first row of all stands for what is before it."""
    whole = np.vstack([values[[0] * (PAST - count)], values])
    rows = np.clip((whole - fitted["middle"]) / fitted["spread"], -10, 10)
    there = rows.copy()
    for row, feature in np.argwhere(np.isnan(rows)).tolist():
        before = there[max(row - HELD_FOR, 0) : row, feature]
        before = before[~np.isnan(before)]
        rows[row, feature] = before[-1] if len(before) else 0.0
    means = np.lib.stride_tricks.sliding_window_view(rows, MEAN_OF, axis=0)[PAST - MEAN_OF : -1].mean(axis=2)
    angle = 2 * math.pi * (np.array(ends) % DAY) / DAY
    waves = [wave(n * angle) for n in (1, 2, 3) for wave in (np.cos, np.sin)] if step < DAY else []
    return np.column_stack([rows[PAST:], rows[PAST - 1 : -1], rows[PAST - 2 : -2], means, *waves, np.ones(len(ends))])


def _residuals(family: Mapping[str, Any], design: Array, is_hole: npt.NDArray[np.bool_]) -> Array:
    features = is_hole.shape[1]
    plain = design[:, :features] - design @ np.reshape(family["coefficients"], (-1, features))
    plain[is_hole] = 0.0
    if family["mixed"] is not None:
        plain = plain @ np.reshape(family["mixed"], (features, features))
    residuals: Array = np.clip(plain / family["spread"], -30, 30)
    residuals[is_hole] = np.nan
    return residuals


def _mean_squares(residuals: Array) -> Array:
    """Return NaN where less than half of the features are there."""
    there = np.count_nonzero(~np.isnan(residuals), axis=1)
    means: Array = np.nansum(residuals**2, axis=1) / np.maximum(there, 1)
    means[there * 2 < residuals.shape[1]] = np.nan
    return means


def _surprises(state: State, families: Sequence[Mapping[str, Any]], squares: Sequence[float]) -> Iterator[float]:
    """Yield the surprise of each family, none where too few features are there."""
    for n, (family, square) in enumerate(zip(families, squares, strict=True)):
        if not math.isnan(square):
            state.means[n] = KEEPS * state.means[n] + (1 - KEEPS) * square
            yield _surprise(state.model.tails[family["name"]], state.means[n] / family["ends"][0])


def _surprise(tail: Mapping[str, Any], score: float) -> float:
    """Return -log10 of the share of training scores that are as high: by quantiles, and by a Pareto tail above `high`."""
    chance = 1 - bisect_left(tail["quantiles"], score) / (len(tail["quantiles"]) + 1)
    if score > tail["high"]:
        chance = min(chance, tail["share"] * (score / tail["high"]) ** (-1 / tail["shape"]))
    return min(-math.log10(max(chance, 1e-30)), SURE)


def _stuck(state: State, values: Sequence[float], longest: Sequence[float]) -> list[float]:
    surprises = [0.0] * len(values)
    for n, value in enumerate(values):
        if not math.isnan(value):
            state.stood[n] = state.stood[n] + 1 if value == state.last[n] else 0
            state.last[n] = value
            surprises[n] = min(max(5 * math.log2((state.stood[n] + 1) / (longest[n] + 2)), 0.0), SURE)
    return surprises


def _novel(state: State, end: int, values: Sequence[float]) -> Verdict:
    """Judge a vector by how new its values are: nothing says what was expected."""
    of_features = [novelty.next(value, end) for novelty, value in zip(state.novelties, values, strict=True)]
    every = sorted(surprise for of_feature in of_features for surprise in of_feature)
    score = sum(every[-2:]) / 2 if every else math.nan
    threshold, is_alarm = state.alarm(score, end)
    nothing = [math.nan] * len(values)
    if not every:
        return Verdict(score, threshold, is_alarm, nothing, nothing, nothing)
    weights = [math.nan if math.isnan(value) else max(surprises, default=0.0) for surprises, value in zip(of_features, values, strict=True)]
    return Verdict(score, threshold, is_alarm, nothing, nothing, *_shares(np.array(weights)))
