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

from gold.alerts.spec import Hours
from orchestration.audit.verify.anomaly_scores import PAST, Array, State, StoredModel, Verdict, explained, judged, state_after

REACH = 60
"""Steps of a block of time. Vectors of a block with an amended one are judged again, and those of the next one."""
IN_TIME, AGAIN = "in time", "with late rows"
Cells = dict[str, Any]
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
    """How vectors of a group are judged. `step`: from one vector to the next; `main`, `shadow`: models of both roles."""

    features: Sequence[str]
    step: int
    main: Models
    shadow: Models
    quiet_hours: Hours | None = None


@dataclass
class Chain:
    """An entity behind a vector: values of the last ones, and what goes on in each role."""

    past: Array
    main: State | None = None
    shadow: State | None = None


def rows_of_entity(rules: Rules, entity: str, in_time: Vectors, newest: Vectors, amended: Sequence[int]) -> Iterator[Cells]:
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
    if in_time and in_time.model.is_novelty:
        return deepcopy(in_time)
    return deepcopy(near) if near and before.ends and not near.model.is_novelty else None


def _judged(rules: Rules, entity: str, vectors: Vectors, chain: Chain, judged_as: str) -> Iterator[Cells]:
    """Judge vectors in both roles, and carry the chain on."""
    main = _by(rules, rules.main, entity, vectors, (chain.past, chain.main))
    shadow = _by(rules, rules.shadow, entity, vectors, (chain.past, chain.shadow))
    for start, end, (of_main, chain.main), (of_shadow, chain.shadow) in zip(vectors.starts, vectors.ends, main, shadow, strict=True):
        own = {"entity": entity, "window_start": start, "window_end": end, "judged": judged_as, "shadow_score": of_shadow["score"]}
        yield of_main | own
    chain.past = np.vstack([chain.past, vectors.values])[-PAST:]


def _by(
    rules: Rules, models: Models, entity: str, vectors: Vectors, before: tuple[Array, State | None]
) -> Iterator[tuple[Cells, State | None]]:
    """Yield the cells of vectors by the models of one role, each with the state behind it."""
    past, state = before
    values = np.vstack([past, vectors.values])
    in_force = [next((model for after, model in reversed(models) if after < end), None) for end in vectors.ends]
    for model, rows in groupby(range(len(in_force)), key=lambda n: in_force[n]):
        of_model = [*rows]
        if model is None or not model.knows(entity) or not {*model.features} <= {*rules.features}:
            state = None
            yield from ((_cells(rules, model), None) for _ in of_model)
            continue
        places = [rules.features.index(feature) for feature in model.features]
        state = state_after(state, model, entity, rules.quiet_hours)
        first, last = len(past) + of_model[0], len(past) + of_model[-1] + 1
        own, of_past = values[first:last, places], values[max(first - PAST, 0) : first, places]
        for row, verdict in zip(own.tolist(), judged(state, [vectors.ends[n] for n in of_model], own, of_past), strict=True):
            yield _cells(rules, model, row, verdict), state


def _cells(rules: Rules, model: StoredModel | None, values: Sequence[float] = (), verdict: Verdict | None = None) -> Cells:
    """Return a row without its key. `sizes` and `share_sizes`: of what `expected` and `band`, and `share` are compared by."""
    nothing = [None] * len(rules.features)
    cells: Cells = {"model": model and model.model_id, "score": None, "threshold": None, "is_anomaly": False, "reason": "learning"}
    cells |= dict.fromkeys(("expected", "band", "share", "sizes", "share_sizes"), nothing)
    if model is None or verdict is None:
        return cells
    sizes = [abs(value) + band for value, band in zip(values, verdict.band, strict=True)]
    lists = {"expected": verdict.expected, "band": verdict.band, "share": verdict.share, "sizes": sizes}
    cells |= {name: _in_place(rules, model, numbers) for name, numbers in lists.items()}
    cells["share_sizes"] = [verdict.noise] * len(nothing)
    if not math.isnan(verdict.score):
        reason = explained(model.features, values, verdict) if verdict.is_anomaly else None
        return cells | {"score": verdict.score, "threshold": verdict.threshold, "is_anomaly": verdict.is_anomaly, "reason": reason}
    holes = sum(math.isnan(value) for value in values)
    return cells | {"reason": "too few features"} if 2 * holes > len(values) else cells


def _in_place(rules: Rules, model: StoredModel, numbers: Sequence[float]) -> list[float | None]:
    """Put numbers of the features of a model in the places of those of the group."""
    by_feature = {name: number for name, number in zip(model.features, numbers, strict=True) if not math.isnan(number)}
    return [by_feature.get(feature) for feature in rules.features]
