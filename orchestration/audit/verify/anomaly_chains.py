"""Rows of gold.anomalies of one entity once more: vectors in time by the models in force, and again those that late rows may change.

Instants are microseconds since 1970.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from orchestration.audit.verify.anomaly_scores import PAST, Array, Quiet, State, StoredModel, Verdicts, explained, judged, state_after

REACH = 60
"""Steps of a block of time. Vectors of a block with an amended one are judged again, and those of the next one."""
IN_TIME, AGAIN = "in time", "with late rows"
Cells = dict[str, Any]
EXPECTED = pa.schema(
    [
        *((name, pa.string()) for name in ("entity", "judged", "reason", "model")),
        *((name, pa.timestamp("us")) for name in ("window_start", "window_end")),
        *((name, pa.float64()) for name in ("score", "threshold", "shadow_score")),
        ("is_anomaly", pa.bool_()),
        *((name, pa.list_(pa.float64())) for name in ("expected", "band", "share", "sizes", "share_sizes")),
    ]
)
Models = Sequence[tuple[int, StoredModel | None]]
"""After which end of a window each is in force, in order of time; None: no model."""


class Vectors(NamedTuple):
    """Vectors of an entity in order of time. `values`: NaN where a feature is a hole."""

    starts: Sequence[int]
    ends: Sequence[int]
    values: Array

    def between(self, first: float, last: float) -> "Vectors":
        """Return those that end from one instant to another, both included."""
        rows = slice(bisect_left(self.ends, first), bisect_right(self.ends, last))
        return Vectors(self.starts[rows], self.ends[rows], self.values[rows])


@dataclass(frozen=True)
class Rules:
    """How vectors of a group are judged. `step`: from one vector to the next; `main`, `shadow`: models of both roles; `quiet_hours`: from
    an end of a window on, as models."""

    features: Sequence[str]
    step: int
    main: Models
    shadow: Models
    quiet_hours: Quiet = ()


@dataclass
class Chain:
    """An entity behind a vector: values of the last ones, and what goes on in each role."""

    past: Array
    main: State | None = None
    shadow: State | None = None


def rows_of_entity(rules: Rules, entity: str, in_time: Vectors, newest: Vectors, amended: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an entity: all of revision 0, and the newest ones of blocks that are judged again. `amended`: ends of vectors."""
    chain, again, width = Chain(in_time.values[:0]), Chain(in_time.values[:0]), REACH * rules.step
    blocks, first = {end // width + later for end in amended for later in (0, 1)}, -math.inf
    for block in sorted(blocks):
        begin = block * width
        yield from _judged(rules, entity, in_time.between(first, begin - 1), chain, IN_TIME)
        before, near = newest.between(begin - width, begin - 1), again if block - 1 in blocks else chain
        states = (_going_on(near.main, chain.main, before), _going_on(near.shadow, chain.shadow, before))
        again, first = Chain(before.values[-PAST:], *states), begin
        yield from _judged(rules, entity, newest.between(begin, begin + width - 1), again, AGAIN)
    yield from _judged(rules, entity, in_time.between(first, math.inf), chain, IN_TIME)


def _going_on(near: State | None, in_time: State | None, before: Vectors) -> State | None:
    """Return what a block goes on from: what the last vector of the block before has left, if there is one; memories of those in time."""
    if near and before.ends and not near.model.is_novelty:
        return deepcopy(near)
    return deepcopy(in_time) if in_time and in_time.model.is_novelty else None


def _judged(rules: Rules, entity: str, vectors: Vectors, chain: Chain, judged_as: str) -> Iterator[pa.RecordBatch]:
    """Judge vectors in both roles, and carry the chain on."""
    if not vectors.ends:
        return
    cells, chain.main = _by(rules, rules.main, entity, vectors, (chain.past, chain.main))
    of_shadow, chain.shadow = _by(rules, rules.shadow, entity, vectors, (chain.past, chain.shadow))
    chain.past = np.vstack([chain.past, vectors.values])[-PAST:]
    cells |= {"entity": [entity] * len(vectors.ends), "judged": [judged_as] * len(vectors.ends), "shadow_score": of_shadow["score"]}
    cells |= {"window_start": np.array(vectors.starts), "window_end": np.array(vectors.ends)}
    yield pa.RecordBatch.from_arrays([_column(cells[field.name], field.type) for field in EXPECTED], schema=EXPECTED)


def _by(rules: Rules, models: Models, entity: str, vectors: Vectors, before: tuple[Array, State | None]) -> tuple[Cells, State | None]:
    """Return the cells of vectors by the models of one role, and the state behind them. `sizes`, `share_sizes`: of what `expected` and
    `band`, and `share` are compared by."""
    (past, state), count = before, len(vectors.ends)
    values = np.vstack([past, vectors.values])
    cells: Cells = {name: np.full(count, np.nan) for name in ("score", "threshold")}
    cells |= {name: np.full(vectors.values.shape, np.nan) for name in ("expected", "band", "share", "sizes", "share_sizes")}
    cells |= {"is_anomaly": np.zeros(count, bool), "reason": ["learning"] * count}
    in_force = [next((model for after, model in reversed(models) if after < end), None) for end in vectors.ends]
    for model, rows in groupby(range(count), key=lambda n: in_force[n]):
        first, *others = rows
        here = slice(first, first + 1 + len(others))
        if model is None or not model.knows(entity) or not {*model.features} <= {*rules.features}:
            state = None
            continue
        state = state_after(state, model, entity, rules.quiet_hours)
        places = [rules.features.index(feature) for feature in model.features]
        own, of_past = vectors.values[here, places], values[max(len(past) + first - PAST, 0) : len(past) + first, places]
        verdicts = judged(state, vectors.ends[here], own, of_past)
        has_score = ~np.isnan(verdicts.score)
        cells["score"][here], cells["is_anomaly"][here] = verdicts.score, verdicts.is_anomaly
        cells["threshold"][here] = np.where(has_score, verdicts.threshold, np.nan)
        lists = {"expected": verdicts.expected, "band": verdicts.band, "share": verdicts.share, "sizes": abs(own) + verdicts.band}
        for name, numbers in lists.items():
            cells[name][here, places] = numbers
        cells["share_sizes"][here] = verdicts.noise[:, None]
        cells["reason"][here] = _reasons(model, own, verdicts)
    return cells | {"model": [model and model.model_id for model in in_force]}, state


def _reasons(model: StoredModel, values: Array, verdicts: Verdicts) -> list[str | None]:
    is_scarce = 2 * np.isnan(values).sum(axis=1) > values.shape[1]
    reasons: list[str | None] = [None] * len(values)
    for n in np.flatnonzero(np.isnan(verdicts.score)).tolist():
        reasons[n] = "too few features" if is_scarce[n] else "learning"
    for n in np.flatnonzero(verdicts.score >= model.rule["threshold"]).tolist():
        reasons[n] = explained(model.features, values, verdicts, n)
    return reasons


def _column(cells: Any, kind: pa.DataType) -> pa.Array:
    """NaN becomes null."""
    if not pa.types.is_list(kind):
        return pa.array(cells, from_pandas=True).cast(kind)
    offsets = np.arange(0, cells.size + 1, cells.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(cells.ravel(), from_pandas=True))
