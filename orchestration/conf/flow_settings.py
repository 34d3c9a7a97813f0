"""Settings of flows.yml: sessions, joins, states of devices, and measures that need what came before."""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from orchestration.conf.plant_settings import GroupName, MetricName, Predicate
from orchestration.conf.values import CONFIG, Identifier, Number, OrAbsent, Seconds, Setting, Text, Whole

Condition = Annotated[Predicate, Field(examples=["value > 100"])]
Every = Annotated[Seconds, Field(ge=1, examples=[600])]
AnyMetric = Annotated[OrAbsent[MetricName], Field(default=None, description="A metric of metrics.yml. Absent: readings of any.")]
Longest = Annotated[Whole, Field(ge=-604_800, le=604_800)]
"""Both sides of a join are kept for so long."""


@dataclass(frozen=True)
class SessionSettings(Setting):
    """Sessions: stretches of activity of one device, in gold.sessions."""

    gap_seconds: Every
    """A session ends when no reading came for this long."""
    metric: AnyMetric = None


@dataclass(frozen=True)
class JoinSettings(Setting):
    """Readings of two metrics that belong together, in gold.pairs."""

    left: MetricName = Field(examples=["command"])
    """A metric of metrics.yml."""
    right: MetricName = Field(examples=["acknowledgement"])
    """A metric of metrics.yml; it may be the same."""
    until_seconds: Longest = Field(examples=[30])
    """The right reading comes at most this long after the left one. Negative: before it."""
    from_seconds: Longest = 0
    """And at least this long after it. Negative: it may come before it."""
    by: Literal["device", "zone"] = "device"
    """What both readings have in common."""
    keep: Literal["inner", "left", "full"] = "inner"
    """`left`: also left readings that find no partner, once their time has passed; `full`: also such right readings."""
    left_when: OrAbsent[Condition] = None
    """Of left readings only those of which this is true: SQL over a reading, as in rules.yml."""
    right_when: OrAbsent[Condition] = None
    """The same of right readings."""


@dataclass(frozen=True)
class TransitionSettings(Setting):
    """One way from a state to another: at a reading, or by time."""

    one_of: ClassVar[tuple[str, ...]] = ("when", "after_seconds")

    source: Text = Field(validation_alias="from", examples=["idle"])
    """The state before."""
    target: Text = Field(validation_alias="to", examples=["heating"])
    """The state after."""
    when: OrAbsent[Condition] = None
    """At a reading of which this is true: SQL over a reading, as in rules.yml."""
    after_seconds: OrAbsent[Every] = None
    """When the state has lasted so long."""


@dataclass(frozen=True)
class StateSettings(Setting):
    """The state of each device by a table of transitions, in gold.states: one row a change."""

    metric: MetricName = Field(examples=["power"])
    """A metric of metrics.yml."""
    initial: Text = Field(examples=["idle"])
    """The state of a device at its first reading."""
    transitions: tuple[TransitionSettings, ...] = Field(
        min_length=1, max_length=100, examples=[[{"from": "idle", "to": "heating", "when": "value > 100"}]]
    )
    """Of several that fit the first one counts."""


@dataclass(frozen=True)
class SilenceSettings(Setting):
    """When devices fall silent and are heard again, in gold.states."""

    after_seconds: Every
    """A device is silent when no reading came for longer than this."""
    metric: AnyMetric = None


@dataclass(frozen=True)
class DistanceSettings(Setting):
    """Metres that a device moved, and its greatest speed, in gold.measures: one row a device and window."""

    latitude: MetricName = Field(examples=["latitude"])
    """In degrees. It and the longitude are of one instant."""
    longitude: MetricName = Field(examples=["longitude"])
    """In degrees."""
    every_seconds: Every = Field(examples=[600])
    """Length of a window."""


@dataclass(frozen=True)
class DutyCycleSettings(Setting):
    """Share of time in which something was on, in gold.measures: one row a device and window."""

    metric: MetricName = Field(examples=["power"])
    """A metric of metrics.yml."""
    when: Condition = Field(examples=["value > 100"])
    """On, where this is true: SQL over a reading, as in rules.yml."""
    every_seconds: Every = Field(examples=[600])
    """Length of a window."""
    hold_seconds: Seconds = Field(default=3600, ge=1)
    """A reading holds until the next one, and at most so long; what is behind is unknown and counts neither way."""


@dataclass(frozen=True)
class CounterSettings(Setting):
    """What a counter rose by, in gold.measures: one row a device and window, with glitches, wraps and resets."""

    metric: MetricName = Field(examples=["energy"])
    """A metric of metrics.yml."""
    every_seconds: Every = Field(examples=[600])
    """Length of a window."""
    wraps_at: OrAbsent[Number] = Field(default=None, gt=0, examples=[4294967296])
    """Behind its greatest value the counter begins at 0 again. Absent: it never does, and each fall is a reset."""


@dataclass(frozen=True, config=ConfigDict(**CONFIG, json_schema_extra={"minProperties": 1}))
class FlowSettings(Setting):
    """One flow. It has one kind."""

    one_of: ClassVar[tuple[str, ...]] = ("sessions", "join", "states", "silence", "distance", "duty_cycle", "counter")

    group: OrAbsent[GroupName] = None
    """Only readings of devices of this group. Absent: all."""
    sessions: OrAbsent[SessionSettings] = Field(default=None, examples=[{"metric": "power", "gap_seconds": 300}])
    """Stretches of activity."""
    join: OrAbsent[JoinSettings] = Field(default=None, examples=[{"left": "command", "right": "acknowledgement", "until_seconds": 30}])
    """Readings that belong together."""
    states: OrAbsent[StateSettings] = Field(
        default=None,
        examples=[{"metric": "power", "initial": "idle", "transitions": [{"from": "idle", "to": "heating", "when": "value > 100"}]}],
    )
    """A state machine."""
    silence: OrAbsent[SilenceSettings] = Field(default=None, examples=[{"after_seconds": 60}])
    """Devices that fall silent."""
    distance: OrAbsent[DistanceSettings] = Field(
        default=None, examples=[{"latitude": "latitude", "longitude": "longitude", "every_seconds": 600}]
    )
    """Ways that devices make."""
    duty_cycle: OrAbsent[DutyCycleSettings] = Field(
        default=None, examples=[{"metric": "power", "when": "value > 100", "every_seconds": 3600}]
    )
    """Share of time."""
    counter: OrAbsent[CounterSettings] = Field(default=None, examples=[{"metric": "energy", "every_seconds": 3600}])
    """Rise of a counter."""


@dataclass(frozen=True)
class FlowsFile(Setting):
    """Questions that need more than a window. There may be no such file."""

    flows: dict[Identifier, FlowSettings] | None = Field(examples=[{"baking": {"sessions": {"metric": "power", "gap_seconds": 300}}}])
    """Flows by name; each is shown as `gold.<flow>`."""
