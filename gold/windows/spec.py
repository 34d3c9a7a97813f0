"""Device groups of groups.yml: frozen, free of Spark."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic.dataclasses import dataclass

from expectations.settings import EntryName, Identifier, MetricName, OrAbsent, Seconds, Setting, Text, Unique, UniqueSome
from gold.anomalies.spec import Anomalies
from silver.aggregation import Aggregation
from silver.metric import Metric

FeatureName = Annotated[Text, Field(description="A metric, or device.metric.", examples=["temperature"])]

IN_ORDER = (Aggregation.TIME_WEIGHTED_AVERAGE, Aggregation.COUNTER_INCREASE)
NEEDS = {
    **{Aggregation(name): (name,) for name in ("first", "stddev", "median", "quantile")},
    **dict.fromkeys(IN_ORDER, ("series",)),
    Aggregation.CIRCULAR_MEAN: ("east", "north"),
}
"""Measures that an open window keeps for an aggregation type, beside those that every window has."""


@dataclass(frozen=True)
class Vector(Setting):
    """The features of one entity at one window, in this order."""

    entity: Literal["device", "group"] = "device"
    """`device`: one vector a device, features are metrics. `group`: one vector for the group, features are device.metric."""
    features: Unique[FeatureName] = Field(default=(), examples=[["temperature"], ["oven-01.temperature"]])
    """Components of the vector in order. Absent, with entity device: the metrics of the group."""
    max_fill_seconds: Seconds = Field(default=0, ge=0, examples=[1800])
    """A feature without a fresh window is carried forward from one that ended at most this much earlier; 0 never fills."""


class Late(StrEnum):
    """The fate of rows that come when their window is closed."""

    AMEND = "amend"
    """They are folded in: the window comes again with a higher revision."""
    KEEP_ASIDE = "keep_aside"
    """They stay in silver.late and gold.late, and windows stay as they were emitted."""


def _with_features(vector: Vector | None, info: ValidationInfo) -> Vector | None:
    """Fill in the metrics of the group where a vector of its devices names no features."""
    if vector is None or vector.features or vector.entity == "group":
        return vector
    return Vector(vector.entity, info.data.get("metrics", ()), vector.max_fill_seconds)


@dataclass(frozen=True)
class Group(Setting):
    """One group: a set of devices with its own watermark, windows and vector. Devices name their groups, and groups their devices."""

    name: EntryName
    metrics: UniqueSome[MetricName] = Field(examples=[["temperature", "humidity"]])
    """Metrics of metrics.yml that this group aggregates."""
    lateness_seconds: Seconds = Field(default=None, ge=0, examples=[600])  # type: ignore[assignment]  # until sources are known
    """How far behind the newest reading a reading may be and still count in its window. Absent: that of the source, where all sources that
    may bring its metrics have the same; else that of the policy."""
    stream: Identifier = Field(default_factory=lambda data: data["name"], examples=["line"])
    """Groups with the same stream share one streaming query, with the largest lateness of theirs. Absent: the group's own name."""
    vector: Annotated[OrAbsent[Vector], AfterValidator(_with_features)] = Field(
        default=None, examples=[{"entity": "device", "max_fill_seconds": 1800}]
    )
    """The features of one entity at one window. Absent: no vectors."""
    anomalies: OrAbsent[Anomalies] = Field(default=None, examples=[{"false_alarms_per_week": 1}])
    """Judge each vector: gold.<group>_anomalies. Absent: vectors are not judged."""
    idle_close_seconds: OrAbsent[Seconds] = Field(default=None, examples=[900])
    """Close the last windows when nothing new came for this long; 0: at the end of each step, which suits files of a past that is over.
    Absent: they wait for newer readings."""
    label: OrAbsent[Text] = Field(default=None, examples=["Kitchen"])
    """For people."""
    devices: Unique[Text] = Field(default=(), examples=[["oven-*", "hall-2/*"]])
    """Patterns of ids: devices of devices.yml and of loaded files that match one belong to the group, beside those that name it. `*` stands
    for any text, `?` for one character."""
    late: Late = Late.AMEND
    """The fate of readings that come when their window is closed. `amend`: the window is computed again and emitted under the next
    revision. `keep_aside`: windows stay as they were emitted."""


def kept_in_state(metrics: Mapping[str, Metric]) -> list[str]:
    """List the measures of NEEDS that the metrics ask for."""
    return sorted({name for metric in metrics.values() for name in NEEDS.get(metric.aggregation, ())})
