"""Settings of metrics.yml, devices.yml, groups.yml and rules.yml: what a plant measures, and what is made of it."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from expectations.settings import (
    CONFIG,
    GroupName,
    Identifier,
    Key,
    MetricName,
    Number,
    OrAbsent,
    Predicate,
    Seconds,
    Setting,
    Text,
    Unique,
    UniqueSome,
)
from gold.spec import Late
from silver.spec import Aggregation

FeatureName = Annotated[Text, Field(description="A metric, or device.metric.", examples=["temperature"])]


@dataclass(frozen=True, config=ConfigDict(**CONFIG, json_schema_extra={"minProperties": 1}))
class ConversionSettings(Setting):
    """Value in the metric's unit = value * multiply + add. At least one of the two is set."""

    multiply: Number = Field(default=1.0, examples=[1000])
    """Factor."""
    add: Number = Field(default=0.0, examples=[-273.15])
    """Offset, added after the factor."""


@dataclass(frozen=True)
class CounterSettings(Setting):
    """How a counter counts."""

    wraps_at: Number = Field(ge=1, examples=[4294967296])
    """The counter rises from 0, and goes on at 0 instead of reaching this. A fall from the upper half of it to the lower half is taken for
    that, and any other for a counter that was reset."""


@dataclass(frozen=True)
class MetricSettings(Setting):
    """One metric: what is measured."""

    aggregation: Aggregation = Field(examples=["average"])
    """How the readings of one window become one value. stddev is that of a sample (null for one reading); median and quantile are exact.
    gold/README.md defines each."""
    step_seconds: Seconds = Field(ge=1, examples=[600, 3600])
    """Coarse grain step: the length of a window. Windows start at multiples of it since 1970 (UTC)."""
    slide_seconds: OrAbsent[Seconds] = Field(default=None, ge=1, examples=[300])
    """Sliding windows: a window starts this often. It divides step_seconds; leave it out for tumbling windows."""
    quantile: OrAbsent[Number] = Field(default=None, ge=0, le=1, examples=[0.95])
    """Of the aggregation type quantile: which one, from 0 to 1."""
    counter: OrAbsent[CounterSettings] = Field(default=None, examples=[{"wraps_at": 4294967296}])
    """Of the aggregation type counter_increase. Absent: the counter does not wrap, and every fall is a reset."""
    unit: OrAbsent[Text] = Field(default=None, examples=["degC"])
    """Unit of the stored values."""
    conversions: dict[Key, ConversionSettings] = Field(default_factory=dict, examples=[{"K": {"add": -273.15}}])
    """Other units that sources may send, as the source writes them: value in the metric's unit = value * multiply + add."""
    words: dict[Key, Number] = Field(default_factory=dict, examples=[{"on": 1, "off": 0}])
    """Texts that stand for a value, such as those of a switch. Upper and lower case are alike."""
    minimum: OrAbsent[Number] = Field(default=None, examples=[-50])
    """Least value that can be true (inclusive); a reading below is quarantined."""
    maximum: OrAbsent[Number] = Field(default=None, examples=[400])
    """Greatest value that can be true (inclusive); a reading above is quarantined."""
    label: OrAbsent[Text] = Field(default=None, examples=["Temperature"])
    """For people: titles of plots and reports."""


@dataclass(frozen=True)
class MetricsFile(Setting):
    """What is measured."""

    metrics: dict[Key, MetricSettings] = Field(min_length=1, examples=[{"temperature": {"aggregation": "average", "step_seconds": 600}}])
    """Metrics by name, as the events (or the sources of wide rows) name them."""


@dataclass(frozen=True)
class DeviceSettings(Setting):
    """One device."""

    groups: Unique[GroupName] = Field(default=(), examples=[["kitchen", "building"]])
    """Groups of groups.yml that the device belongs to."""
    zone: OrAbsent[Text] = Field(default=None, examples=["hall-1"])
    """Where it stands; used where the event does not say."""
    label: OrAbsent[Text] = Field(default=None, examples=["Deck oven, left"])
    """For people."""


@dataclass(frozen=True)
class DevicesFile(Setting):
    """The devices that are declared from the start; `tidemark devices load FILE` adds others."""

    devices: dict[Key, Annotated[DeviceSettings | None, Field(examples=[{"groups": ["kitchen"]}])]] | None = Field(
        examples=[{"oven-01": {"groups": ["kitchen"]}}]
    )
    """Devices by id, as the source names them."""


@dataclass(frozen=True)
class VectorSettings(Setting):
    """The features of one entity at one window, in this order."""

    entity: Literal["device", "group"] = "device"
    """`device`: one vector a device, features are metrics. `group`: one vector for the group, features are device.metric."""
    features: OrAbsent[UniqueSome[FeatureName]] = Field(default=None, examples=[["temperature"], ["oven-01.temperature"]])
    """Components of the vector in order. Absent, with entity device: the metrics of the group."""
    max_fill_seconds: Seconds = Field(default=0, ge=0, examples=[1800])
    """A feature without a fresh window is carried forward from one that ended at most this much earlier; 0 never fills."""


@dataclass(frozen=True)
class GroupSettings(Setting):
    """One group: a set of devices with its own watermark, windows and vector. Devices name their groups, and groups their devices."""

    metrics: UniqueSome[MetricName] = Field(examples=[["temperature", "humidity"]])
    """Metrics of metrics.yml that this group aggregates."""
    lateness_seconds: OrAbsent[Seconds] = Field(default=None, ge=0, examples=[600])
    """How far behind the newest reading a reading may be and still count in its window. Absent: that of the policy."""
    late: Late = Late.AMEND
    """What becomes of readings that come when their window is closed. `amend`: the window is computed again and emitted under the next
    revision. `keep_aside`: windows stay as they were emitted."""
    vector: OrAbsent[VectorSettings] = Field(default=None, examples=[{"entity": "device", "max_fill_seconds": 1800}])
    """The features of one entity at one window. Absent: no vectors."""
    stream: OrAbsent[Identifier] = Field(default=None, examples=["line"])
    """Groups with the same stream share one streaming query, with the largest lateness of theirs. Absent: the group's own name."""
    idle_close_seconds: OrAbsent[Seconds] = Field(default=None, ge=1, examples=[900])
    """Close the last windows when nothing new came for this long. Absent: they wait for newer readings."""
    devices: Unique[Text] = Field(default=(), examples=[["oven-*", "hall-2/*"]])
    """Patterns of ids: devices of devices.yml and of loaded files that match one belong to the group, beside those that name it. `*` stands
    for any text, `?` for one character."""
    label: OrAbsent[Text] = Field(default=None, examples=["Kitchen"])
    """For people."""


@dataclass(frozen=True)
class GroupsFile(Setting):
    """Device groups."""

    groups: dict[Identifier, Annotated[GroupSettings, Field(examples=[{"metrics": ["temperature"]}])]] | None = Field(
        examples=[{"kitchen": {"metrics": ["temperature"]}}]
    )
    """Groups by name; each is shown as `gold.<group>_aggregates` and `gold.<group>_vectors`."""


@dataclass(frozen=True)
class RuleSettings(Setting):
    """One rule."""

    holds: Predicate = Field(examples=["value >= 0", "metric <> 'temperature' or value <> 85"])
    """Condition over a reading (device_id, metric, value, unit, event_time, zone, groups, attributes, source, ingested_at), true for a good
    one; expectations/README.md has the language. What cannot be computed for a reading is null, and null counts as broken."""


@dataclass(frozen=True)
class RulesFile(Setting):
    """What must be true of a reading, beside the built-in rules."""

    rules: dict[Identifier, RuleSettings] | None = Field(examples=[{"value_is_positive": {"holds": "value >= 0"}}])
    """Rules by name. The name says what is true of a good reading; silver.quarantine shows it."""
