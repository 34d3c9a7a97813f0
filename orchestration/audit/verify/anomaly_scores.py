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
Quiet = Sequence[tuple[int, Hours | None]]
"""After which end of a window quiet hours hold, in order of time."""
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


class Verdicts(NamedTuple):
    """Vectors as they are judged: a row each, and in `expected`, `band` and `share` a column a feature of the model. `noise`: how much more
    than elsewhere shares may differ."""

    score: Array
    threshold: Array
    is_anomaly: npt.NDArray[np.bool_]
    expected: Array
    band: Array
    share: Array
    noise: Array


@dataclass
class State:
    """State between two vectors of an entity, and its part of the model. `rise`, `score`, `ago`: of the last alarm, and the
    vectors since."""

    model: StoredModel
    fitted: Mapping[str, Any]
    means: list[float]
    quiet_hours: Quiet
    rise: float = 0.0
    score: float = 0.0
    ago: float = 1e9
    stood: list[int] = field(default_factory=list)
    last: list[float] = field(default_factory=list)
    novelties: list[Novelty] = field(default_factory=list)

    def alarms(self, scores: Array, ends: Sequence[int]) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return the thresholds of the next vectors, and which are alarms."""
        every = [self._alarm(*of_vector) for of_vector in zip(scores.tolist(), ends, strict=True)]
        return np.array([threshold for threshold, _ in every]), np.array([is_alarm for _, is_alarm in every], bool)

    def _alarm(self, score: float, end: int) -> tuple[float, bool]:
        hours = next((hours for after, hours in reversed(self.quiet_hours) if after < end), None)
        is_quiet = hours is not None and is_within(hours, end // MINUTE)
        rule, self.ago = self.model.rule, self.ago + 1
        raised = self.rise * math.exp(-self.ago / rule["decay"])
        threshold = rule["threshold"] + raised
        is_alarm = not is_quiet and score >= threshold and (self.ago > rule["pause"] or score > WORSE * self.score)
        if is_alarm:
            self.rise, self.score, self.ago = min(raised + RISE, HIGHEST), score, 0
        return threshold, is_alarm


def state_after(before: State | None, model: StoredModel, entity: str, quiet_hours: Quiet = ()) -> State:
    """Return the state with which a model begins: that of the vector before, if it is of a model like this one."""
    fitted = model.entities.get(entity, {})
    levels = [family["ends"][1] for family in fitted.get("families", ())]
    if before is None or (before.model.detector, before.model.features) != (model.detector, model.features):
        count, learning = len(model.features), [model.learning] * len(model.features) * model.is_novelty
        return State(model, fitted, levels, quiet_hours, stood=[0] * count, last=[math.nan] * count, novelties=[*map(Novelty, learning)])
    if before.model.model_id != model.model_id:
        before.model, before.fitted, before.means = model, fitted, levels
    return before


def judged(state: State, ends: Sequence[int], values: Array, past: Array) -> Verdicts:
    """Judge vectors of an entity in order of time, and carry the state on. `past`: values of at most PAST vectors before them."""
    if state.model.is_novelty:
        return _novel(state, ends, values)
    fitted, families = state.fitted, state.fitted["families"]
    values = np.where(np.array(fitted["spread"]) < UNSEEN, values, np.nan)
    is_hole = np.isnan(values)
    design = _design(fitted, state.model.step, ends, np.vstack([past, values]), len(past))
    residuals = np.stack([_residuals(family, design, is_hole) for family in families])
    surprises = np.array([[*_surprises(state, n, residuals[n])] for n in range(len(families))])
    stuck = np.array([[*_stuck(state, n, column.tolist())] for n, column in enumerate(values.T)]).T
    score = np.sort(np.vstack([surprises, stuck.max(axis=1)]), axis=0)[-2:].mean(axis=0)
    certain = np.nan_to_num(surprises)
    number = certain.argmax(axis=0)
    residual = residuals[number, np.arange(len(values))]
    spread = np.array([np.multiply(family["spread"], fitted["spread"]) for family in families])[number]
    is_stuck = (stuck.max(axis=1) > certain.max(axis=0))[:, None]
    share, noise = _shares(np.where(is_hole, np.nan, np.where(is_stuck, stuck, residual**2)))
    expected = np.where(is_stuck & (stuck > 0), np.nan, values - residual * spread)
    return Verdicts(score, *state.alarms(score, ends), expected, np.where(is_hole, np.nan, 3 * spread), share, noise)


def explained(features: Sequence[str], values: Array, verdicts: Verdicts, n: int) -> str:
    """Say in words what made an anomaly: its first feature by share, and the second one if it has a twentieth."""
    expected, band, share = verdicts.expected[n], verdicts.band[n], np.nan_to_num(verdicts.share[n])
    order = sorted(range(len(features)), key=lambda at: -round(float(share[at]), 9))
    texts = [f"{features[at]} {_text(values[n, at])}{_instead_of(expected[at], band[at])}" for at in order[:2]]
    texts[0] += f" ({share[order[0]] * 100:.0f} % of the score)"
    return ", ".join(texts if len(order) > 1 and share[order[1]] >= 0.05 else texts[:1])


def _instead_of(expected: float, band: float) -> str:
    if math.isnan(expected):
        return " is new" if math.isnan(band) else " stands still"
    return f", expected {_text(expected)} ± {_text(band)}"


def _text(number: float) -> str:
    return format(number, ".8g" if abs(number) >= 1e12 else ",.0f" if abs(number) >= 10_000 else ".4g")


def _shares(weights: Array) -> tuple[Array, Array]:
    total = np.nansum(weights, axis=1)
    return weights / np.where(total > 0, total, 1.0)[:, None], np.where(total > TINY, 1.0, 1 / TINY)


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


def _surprises(state: State, n: int, residuals: Array) -> Iterator[float]:
    """Yield the surprise of one family at each vector; NaN where too few features are there."""
    family = state.fitted["families"][n]
    for square in _mean_squares(residuals).tolist():
        if not math.isnan(square):
            state.means[n] = KEEPS * state.means[n] + (1 - KEEPS) * square
            yield _surprise(state.model.tails[family["name"]], state.means[n] / family["ends"][0])
        else:
            yield math.nan


def _surprise(tail: Mapping[str, Any], score: float) -> float:
    """Return -log10 of the share of training scores that are as high: by quantiles, and by a Pareto tail above `high`."""
    chance = 1 - bisect_left(tail["quantiles"], score) / (len(tail["quantiles"]) + 1)
    if score > tail["high"]:
        chance = min(chance, tail["share"] * (score / tail["high"]) ** (-1 / tail["shape"]))
    return min(-math.log10(max(chance, 1e-30)), SURE)


def _stuck(state: State, n: int, values: Sequence[float]) -> Iterator[float]:
    """Yield how surprising it is that a feature still has its value."""
    longest = state.fitted["longest"][n]
    for value in values:
        if math.isnan(value):
            yield 0.0
            continue
        state.stood[n] = state.stood[n] + 1 if value == state.last[n] else 0
        state.last[n] = value
        yield min(max(5 * math.log2((state.stood[n] + 1) / (longest + 2)), 0.0), SURE)


def _novel(state: State, ends: Sequence[int], values: Array) -> Verdicts:
    """Judge vectors by how new their values are: nothing says what was expected."""
    score, largest, nothing = np.full(len(ends), np.nan), np.full(values.shape, np.nan), np.full(values.shape, np.nan)
    for n, (end, row) in enumerate(zip(ends, values.tolist(), strict=True)):
        of_features = [novelty.next(value, end) for novelty, value in zip(state.novelties, row, strict=True)]
        if every := sorted(surprise for surprises in of_features for surprise in surprises):
            score[n] = sum(every[-2:]) / 2
            largest[n] = [max(surprises, default=0.0) for surprises in of_features]
    share, noise = _shares(np.where(np.isnan(values), np.nan, largest))
    return Verdicts(score, *state.alarms(score, ends), nothing, nothing, share, noise)
