"""Rows of gold.anomalies from vectors of a group, by the models that are in force. Pure.

Vectors of an entity are judged in two ways. *In time*: those of revision 0, one after another; that is what an alarm is raised by.
*Again*: the newest revisions, in blocks of REACH steps, in a block with an amended one and in the next one; what is in time does not go
on from them.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gold.alerts.hours import MINUTE, is_within
from gold.alerts.spec import Hours
from gold.anomalies.detectors import DETECTORS, Before
from gold.anomalies.judging import PAST
from gold.anomalies.model import Model, Series
from gold.anomalies.residual import has_half
from gold.anomalies.tail import Floats
from gold.anomalies.vectors import Vectors
from gold.schema import ANOMALIES, BESIDE

REACH = 60
"""Steps of a block: in so many the score of a family has halved 20 times."""
LEARNING, TOO_FEW = "learning", "too few features"
LEAST_SHARE, MANY, TOO_MANY = 0.05, 10_000, 1e12
"""TOO_MANY: from there on nobody reads all digits, and the last ones are noise."""
ROW = pa.schema([*(named for named in ANOMALIES if named.name not in {"revision", "gold_batch"}), *BESIDE["anomalies"]])
"""Columns of a row without its revision and batch."""
CARRY = ROW.field("carry").type


Carry = tuple[Sequence[float | None] | None, Sequence[float | None] | None]
"""The columns `carry` and `shadow_carry` of a row."""


@dataclass(frozen=True)
class Chain:
    """Models of a group in one role: each from an end of a window on, microseconds since 1970, that is not included. None: no model."""

    after: Sequence[int] = ()
    models: Sequence[tuple[str, Model] | None] = ()

    def parts(self, ends: npt.NDArray[np.int64]) -> list[tuple[slice, tuple[str, Model] | None]]:
        """Cut vectors in order of time where another model is in force."""
        cuts = [bisect_left(ends, after + 1) for after in self.after]
        spans = pairwise([0, *cuts, len(ends)])
        return [(slice(*span), model) for span, model in zip(spans, [None, *self.models], strict=True) if span[0] < span[1]]


@dataclass(frozen=True)
class Judges:
    """Whatever judges a group: features of its vectors, the step from one to the next in microseconds, models, quiet hours, each from an
    end of a window on as models are."""

    group: str
    features: tuple[str, ...]
    step: int
    main: Chain
    shadow: Chain = field(default_factory=Chain)
    quiet_hours: Sequence[tuple[int, Hours | None]] = ()

    @property
    def width(self) -> int:
        """The length of a block in microseconds."""
        return REACH * self.step

    @property
    def learn_as_they_go(self) -> bool:
        """Whether what a model knows of an entity is not in its rows."""
        models = (in_force[1] for chain in (self.main, self.shadow) for in_force in chain.models if in_force)
        return any(not DETECTORS[model.detector].needs_training for model in models)


class Left(NamedTuple):
    """State that a vector leaves for the next one of its entity: by which model, empty for none, and of which features."""

    model: str = ""
    state: bytes | None = None
    features: tuple[str, ...] = ()

    @property
    def learns_as_it_goes(self) -> bool:
        return bool(self.features) and not DETECTORS[self.features[0]].needs_training


NOTHING = Left()


@dataclass(frozen=True)
class JudgingState:
    """An entity before a vector: values of the last PAST vectors, a column a feature of the group, and what each role has left."""

    past: Floats
    main: Left = NOTHING
    shadow: Left = NOTHING


@dataclass(frozen=True)
class Amended:
    """Blocks of an entity in which vectors are judged again.

    `newest`: vectors of the blocks and of those before them; `carries`: of their newest rows, by the end of a window.
    `in_time`: all vectors of revision 0.
    """

    entity: str
    blocks: set[int]
    newest: Vectors
    carries: Mapping[int, Carry]
    in_time: Callable[[], Vectors]


@dataclass
class _Columns:
    """A row a vector, as judged in one role."""

    scores: Floats
    thresholds: Floats
    is_alarm: npt.NDArray[np.bool_]
    lists: npt.NDArray[np.float64]
    reasons: list[str | None] = field(default_factory=list)
    models: list[str | None] = field(default_factory=list)
    carry: list[pa.Array] = field(default_factory=list)


def judged(judges: Judges, entity: str, vectors: Vectors, before: JudgingState) -> tuple[pa.Table, JudgingState]:
    """Judge vectors of an entity, at least one; returns rows of ROW, and how the entity stands behind the last one."""
    main, left = _by(judges, judges.main, entity, vectors, (before.past, before.main))
    count = len(vectors.ends)
    shadow_scores, shadow_carry, shadow_left = pa.nulls(count, pa.float64()), pa.nulls(count, CARRY), NOTHING
    if judges.shadow.models:
        shadow, shadow_left = _by(judges, judges.shadow, entity, vectors, (before.past, before.shadow))
        shadow_scores, shadow_carry = _numbers(shadow.scores), pa.concat_arrays(shadow.carry)
    rows = {
        "device_group": pa.repeat(judges.group, count),
        "entity": pa.repeat(entity, count),
        "window_start": _instants(vectors.starts),
        "window_end": _instants(vectors.ends),
        "score": _numbers(main.scores),
        "threshold": _numbers(main.thresholds),
        "is_anomaly": pa.array(main.is_alarm),
        "reason": pa.array(main.reasons, pa.string()),
        **{name: _lists(values) for name, values in zip(("expected", "band", "share"), main.lists, strict=True)},
        "model": pa.array(main.models, pa.string()),
        "shadow_score": shadow_scores,
        "carry": pa.concat_arrays(main.carry),
        "shadow_carry": shadow_carry,
    }
    past = np.vstack([before.past, vectors.values])[-PAST:]
    return pa.table([rows[name] for name in ROW.names], ROW), JudgingState(past, left, shadow_left)


def amended_blocks(ends: npt.NDArray[np.int64], judges: Judges) -> set[int]:
    """Return the blocks in which vectors are judged again. `ends`: those of the windows of amended vectors of an entity."""
    return {block + later for block in (ends // judges.width).tolist() for later in (0, 1)}


def judged_again(judges: Judges, amended: Amended) -> pa.Table:
    """Judge the newest vectors of blocks again; returns rows of ROW."""
    rows, newest, block_of = [ROW.empty_table()], amended.newest, amended.newest.ends // judges.width
    carries, in_time, state = dict(amended.carries), amended.in_time() if judges.learn_as_they_go else None, nothing(judges)
    for block in sorted(amended.blocks & {*block_of.tolist()}):
        last = max((end for end in carries if end // judges.width == block - 1), default=None)
        lefts = [_left(chain, last, None if last is None else carries[last][n]) for n, chain in enumerate((judges.main, judges.shadow))]
        if in_time is not None:
            is_early = in_time.ends // judges.width < block
            if is_early.any():
                state = judged(judges, amended.entity, in_time[is_early], state)[1]
                in_time = in_time[~is_early]
            learned = [left if left.learns_as_it_goes else NOTHING for left in (state.main, state.shadow)]
            lefts = [own if left is NOTHING else left for own, left in zip(learned, lefts, strict=True)]
        before = JudgingState(newest[block_of == block - 1].values[-PAST:], *lefts)
        made, _ = judged(judges, amended.entity, newest[block_of == block], before)
        rows.append(made)
        carries[int(newest.ends[block_of == block][-1])] = (made["carry"][-1].as_py(), made["shadow_carry"][-1].as_py())
    return pa.concat_tables(rows)


def nothing(judges: Judges) -> JudgingState:
    """Return how an entity stands before its first vector."""
    return JudgingState(np.zeros((0, len(judges.features))))


def _left(chain: Chain, end: int | None, carry: Sequence[float | None] | None) -> Left:
    """Return what the row of a window has left."""
    in_force = None if end is None or carry is None else chain.parts(np.array([end]))[0][1]
    if in_force is None:
        return NOTHING
    model_id, model = in_force
    return Left(model_id, np.array(carry, np.float64).tobytes(), (model.detector, *model.features))


def explained(features: Sequence[str], values: Floats, expected: Floats, bands: Floats, shares: Floats) -> str:
    """Say which features made the score of one vector: the one with the largest share, and the next one if it has LEAST_SHARE."""
    order = np.argsort(-np.nan_to_num(shares).round(9), kind="stable").tolist()  # whoever computes them again may differ in the last bits
    texts = [_explained(features[at], values[at], expected[at], bands[at]) for at in order[:2]]
    first = f"{texts[0]} ({shares[order[0]] * 100:.0f} % of the score)"
    return f"{first}, {texts[1]}" if len(order) > 1 and shares[order[1]] >= LEAST_SHARE else first


def _explained(feature: str, value: float, expected: float, band: float) -> str:
    if not np.isnan(expected):
        return f"{feature} {_text(value)}, expected {_text(expected)} ± {_text(band)}"
    return f"{feature} {_text(value)} {'is new' if np.isnan(band) else 'stands still'}"


def _text(number: float) -> str:
    return f"{number:.4g}" if abs(number) < MANY else f"{number:,.0f}" if abs(number) < TOO_MANY else f"{number:.8g}"


def _by(judges: Judges, chain: Chain, entity: str, vectors: Vectors, before: tuple[Floats, Left]) -> tuple[_Columns, Left]:
    """Judge vectors by the models of one role."""
    count, (past, left) = len(vectors.ends), before
    scores, thresholds = np.full((2, count), np.nan)
    columns = _Columns(scores, thresholds, np.zeros(count, bool), np.full((3, count, len(judges.features)), np.nan))
    values = np.vstack([past, vectors.values])
    for rows, in_force in chain.parts(vectors.ends):
        of_past = values[max(0, len(past) + rows.start - PAST) : len(past) + rows.start]
        left = _part(judges, in_force, entity, vectors[rows], of_past, left, columns, rows)
    return columns, left


def _part(  # noqa: PLR0917
    judges: Judges,
    in_force: tuple[str, Model] | None,
    entity: str,
    vectors: Vectors,
    past: Floats,
    left: Left,
    columns: _Columns,
    rows: slice,
) -> Left:
    """Fill in the rows of vectors that one model judges."""
    count = len(vectors.ends)
    columns.models += [in_force and in_force[0]] * count
    if in_force is None or not _knows(in_force[1], entity, judges.features):
        columns.reasons += [LEARNING] * count
        columns.carry.append(pa.nulls(count, CARRY))
        return NOTHING
    model_id, model = in_force
    at = [judges.features.index(feature) for feature in model.features]
    state = left.state if left.features == (model.detector, *model.features) else None
    series = Series(vectors.ends, vectors.values[:, at], _is_quiet(judges.quiet_hours, vectors.ends))
    judged = DETECTORS[model.detector].judge(model, entity, series, Before(past[:, at], state, left.model == model_id))
    has_score, is_scarce = ~np.isnan(judged.scores), ~has_half(series.values)
    columns.scores[rows], columns.is_alarm[rows] = judged.scores, judged.is_alarm
    columns.thresholds[rows] = np.where(has_score, judged.thresholds, np.nan)
    for values, of_model in zip(columns.lists, (judged.expected, judged.bands, judged.shares), strict=True):
        values[rows, at] = of_model
    columns.reasons += [None] * count
    for row in np.flatnonzero(~has_score).tolist():
        columns.reasons[rows.start + row] = TOO_FEW if is_scarce[row] else LEARNING
    for row in np.flatnonzero(judged.scores >= model.rule.threshold).tolist():
        parts = (series.values[row], judged.expected[row], judged.bands[row], judged.shares[row])
        columns.reasons[rows.start + row] = explained(model.features, *parts)
    columns.carry.append(_lists(judged.carry) if judged.carry.shape[1] else pa.nulls(count, CARRY))
    return Left(model_id, judged.after, (model.detector, *model.features))


def _knows(model: Model, entity: str, features: Sequence[str]) -> bool:
    is_trained = entity in model.fitted or not DETECTORS[model.detector].needs_training
    return is_trained and set(model.features) <= {*features}


def _is_quiet(quiet: Sequence[tuple[int, Hours | None]], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    is_quiet = np.zeros(len(ends), bool)
    for after, hours in quiet:
        first = bisect_left(ends, after + 1)
        is_quiet[first:] = [hours is not None and is_within(hours, minute) for minute in (ends[first:] // MINUTE).tolist()]
    return is_quiet


def _numbers(values: Floats) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


def _lists(values: Floats) -> pa.Array:
    offsets = np.arange(0, values.size + 1, values.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(values.ravel(), mask=np.isnan(values).ravel()))


def _instants(micros: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(micros).cast(ROW.field("window_end").type)
