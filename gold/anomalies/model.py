"""The model of a group: trained on vectors of the past, applied to those that come. A table of Arrow holds it, a row an entity. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gold.anomalies.alarms import Rule, with_threshold
from gold.anomalies.residual import DAY, LAGS, Family, Fitted, Scale, fit, phase_of
from gold.anomalies.tail import MOST, Floats, Tail, tail_of

RESIDUAL, NOVELTY = "residual", "novelty"
THRESHOLD = 2.5
THRESHOLDS = np.arange(1.5, 6.01, 0.1)
"""Candidates: the lowest is taken that raises no more alarms in the training than are planned."""
PAUSE_DAYS, DECAYS = 1.0, 6.0
WEEK = 7 * DAY
STUCK = 5.0
"""The surprise of a value that stands twice as long as the longest of the training."""


@dataclass(frozen=True)
class Series:
    """Vectors of one entity in order of time: ends of their windows in microseconds since 1970, and values of features.

    NaN: missing or filled. `is_quiet`: where no alarm is wanted.
    """

    ends: npt.NDArray[np.int64]
    values: Floats
    is_quiet: npt.NDArray[np.bool_] | bool = False


@dataclass(frozen=True)
class Model:
    """`detector`: see detectors.py. `features` in order; `step`: microseconds from one vector to the next.

    Of `residual`: `tails` by family, of all entities; `fitted` by entity. Of `novelty`: `learning`, the vectors that it learns from.
    """

    detector: str
    features: tuple[str, ...]
    step: int
    rule: Rule
    tails: Mapping[str, Tail] = field(default_factory=dict)
    fitted: Mapping[str, Fitted] = field(default_factory=dict)
    learning: int = 0


def phase(step: int, ends: npt.NDArray[np.int64]) -> Floats | None:
    """Return the part of the day at these ends; None where windows are days or longer."""
    return phase_of(ends) if step < DAY else None


def train(features: Sequence[str], step: int, history: Iterable[tuple[str, Series]], per_week: float | None = None) -> Model:
    """Fit a model to the history of each entity. `per_week`: alarms of an entity and week that are planned; None: the default threshold."""
    fitted, scores, weeks, vectors = dict[str, Fitted](), dict[str, list[Floats]](), 0.0, 0
    for entity, series in history:
        fitted[entity], of_entity = fit(series.values, phase(step, series.ends))
        for name, of_family in of_entity.items():
            scores.setdefault(name, []).append(of_family)
        vectors, weeks = max(vectors, len(series.ends)), weeks + float(series.ends[-1] - series.ends[0]) / WEEK
    tails = {name: tail_of(np.concatenate(of_family)) for name, of_family in scores.items()}
    rule = Rule(THRESHOLD, PAUSE_DAYS * DAY / step, DECAYS * vectors)
    if per_week is not None:
        surprises = [
            two_largest(np.stack([tails[name].surprise(of_family) for name, of_family in zip(scores, of_entity, strict=True)], axis=1))
            for of_entity in zip(*scores.values(), strict=True)
        ]
        rule = with_threshold(rule, THRESHOLDS.tolist(), surprises, per_week * weeks)
    return Model(RESIDUAL, tuple(features), step, rule, tails, fitted)


def two_largest(surprises: Floats) -> Floats:
    """Return the mean of the two largest surprises of each vector, of the only one where there is one; NaN where it has none."""
    largest = np.sort(surprises, axis=1)[:, -2:]
    return largest[:, 0] if largest.shape[1] == 1 else (largest[:, 0] + largest[:, 1]) / 2


def stuck(model: Fitted, stands: Floats) -> Floats:
    """Return the surprise of the time for which each value has stood."""
    return np.clip(STUCK * np.log2((stands + 1) / (model.longest + 2)), 0.0, MOST)


def to_table(model: Model) -> pa.Table:
    """Write a model down, to the last bit."""
    rows = [
        {
            "entity": entity,
            "middle": fitted.scale.middle,
            "spread": fitted.scale.spread,
            "longest": fitted.longest,
            "families": [
                {"name": name, "coefficients": family.coefficients.ravel(), "mixed": None if family.mixed is None else family.mixed.ravel()}
                | {"spread": family.spread, "ends": [family.own, family.level]}
                for name, family in fitted.families.items()
            ],
        }
        for entity, fitted in model.fitted.items()
    ]
    facts = {"detector": model.detector, "features": model.features, "step": model.step, "rule": asdict(model.rule)}
    facts |= {"past": LAGS, "learning": model.learning}
    tails = {name: asdict(tail) | {"quantiles": tail.quantiles.tolist()} for name, tail in model.tails.items()}
    return pa.Table.from_pylist(rows, _TABLE).replace_schema_metadata({"model": json.dumps(facts | {"tails": tails})})


def from_table(table: pa.Table) -> Model:
    """Read what `to_table` has written."""
    facts = json.loads(table.schema.metadata[b"model"])
    tails = {name: Tail(**tail | {"quantiles": np.array(tail["quantiles"])}) for name, tail in facts["tails"].items()}
    fitted = {row["entity"]: _fitted(row, len(facts["features"])) for row in table.to_pylist()}
    rule = Rule(**facts["rule"])
    return Model(facts["detector"], tuple(facts["features"]), facts["step"], rule, tails, fitted, facts["learning"])


_NUMBERS = pa.list_(pa.float64())
_FAMILY = pa.struct([("name", pa.string()), *((name, _NUMBERS) for name in ("coefficients", "mixed", "spread", "ends"))])
_TABLE = pa.schema(
    [("entity", pa.string()), *((name, _NUMBERS) for name in ("middle", "spread", "longest")), ("families", pa.list_(_FAMILY))]
)


def _fitted(row: Mapping[str, Any], features: int) -> Fitted:
    families = {}
    for family in row["families"]:
        mixed = None if family["mixed"] is None else np.reshape(family["mixed"], (features, features))
        coefficients = np.reshape(family["coefficients"], (-1, features))
        families[family["name"]] = Family(coefficients, mixed, np.array(family["spread"]), *family["ends"])
    return Fitted(Scale(np.array(row["middle"]), np.array(row["spread"])), families, np.array(row["longest"]))
