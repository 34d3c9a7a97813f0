"""Detectors by name: each trains a model, and judges vectors of one entity by it. A new one is a file, and a line in DETECTORS. Pure.

What a detector carries from one vector to the next is bytes: of `residual` the `carry` of a row, of `novelty` its memories.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from gold.anomalies.alarms import Alarmed, Rule, alarms, with_threshold
from gold.anomalies.judging import Judged, judge
from gold.anomalies.model import DECAYS, NOVELTY, RESIDUAL, THRESHOLDS, WEEK, Model, Series, train, two_largest
from gold.anomalies.novelty import MEASURES, Memory
from gold.anomalies.tail import Floats

NOVELTY_THRESHOLD, PAUSE = 2.0, 0.3
"""PAUSE: vectors after an alarm of `novelty` without another one, as a share of those that it learned from."""
LEARNED_SHARE, LEARNED_WEEKS, LEAST_LEARNED, MOST_LEARNED = 0.15, 2, 50, 750
"""`novelty` learns from a share of so many weeks, within these bounds."""


class Before(NamedTuple):
    """Values of the last PAST vectors before one, or of all; the state that the last one left; whether by the same model."""

    past: Floats
    state: bytes | None = None
    is_of_model: bool = True


class Detector(NamedTuple):
    """`train`: see model.train. `judge`: vectors of an entity in order of time. `needs_training`: only entities of the training."""

    train: Callable[[Sequence[str], int, Iterable[tuple[str, Series]], float | None], Model]
    judge: Callable[[Model, str, Series, Before], Judged]
    needs_training: bool


def train_novelty(features: Sequence[str], step: int, history: Iterable[tuple[str, Series]], per_week: float | None = None) -> Model:
    """Choose how long `novelty` learns, and its threshold: it knows nothing of the history beyond that."""
    learning = int(np.clip(LEARNED_SHARE * LEARNED_WEEKS * WEEK / step, LEAST_LEARNED, MOST_LEARNED))
    rule = Rule(NOVELTY_THRESHOLD, PAUSE * learning, DECAYS * learning)
    if per_week is not None:
        scores, weeks = list[Floats](), 0.0
        for _, series in history:
            scores.append(_scores(series, [Memory(learning) for _ in features]))
            weeks += float(series.ends[-1] - series.ends[0]) / WEEK
        rule = with_threshold(rule, THRESHOLDS.tolist(), scores, per_week * weeks) if scores else rule
    return Model(NOVELTY, tuple(features), step, rule, learning=learning)


def _residual(model: Model, entity: str, series: Series, before: Before) -> Judged:
    state = None if before.state is None else np.frombuffer(before.state)
    return judge(model, entity, series, before.past, state, is_of_model=before.is_of_model)


def _novelty(model: Model, _entity: str, series: Series, before: Before) -> Judged:
    alarmed, packed = (None, []) if before.state is None else msgspec.msgpack.decode(before.state)
    memories = [*map(Memory.unpacked, packed)] or [Memory(model.learning) for _ in model.features]
    surprises = _surprises(series, memories)
    scores = _score(surprises)
    raised = alarms(model.rule, np.where(series.is_quiet, np.nan, scores), Alarmed(*alarmed or ()))
    of_feature = np.nan_to_num(surprises).reshape(len(scores), -1, len(MEASURES)).max(axis=2)
    total = of_feature.sum(axis=1, keepdims=True)
    shares = np.where(np.isnan(series.values) | np.isnan(scores)[:, None], np.nan, of_feature / np.where(total > 0, total, 1.0))
    nothing = np.full(series.values.shape, np.nan)
    after = msgspec.msgpack.encode((raised.after[-1].tolist(), [memory.packed() for memory in memories]))
    return Judged(scores, raised.thresholds, raised.is_alarm, nothing, nothing, shares, np.zeros((len(scores), 0)), after)


def _surprises(series: Series, memories: Sequence[Memory]) -> Floats:
    return np.hstack([memory.judge(values, series.ends) for memory, values in zip(memories, series.values.T, strict=True)])


def _score(surprises: Floats) -> Floats:
    """Return the mean of the two largest; NaN where there is none."""
    there = np.where(np.isnan(surprises), -np.inf, surprises)
    return np.where(np.isinf(there.max(axis=1)), np.nan, two_largest(there))


def _scores(series: Series, memories: Sequence[Memory]) -> Floats:
    return _score(_surprises(series, memories))


DETECTORS = {
    RESIDUAL: Detector(train, _residual, needs_training=True),
    NOVELTY: Detector(train_novelty, _novelty, needs_training=False),
}
