"""Flows of flows.yml: sessions, joins, states of devices, and measures that need what came before. Frozen, free of Spark.

Durations are in seconds. Predicates are conditions over a reading; who reads rows evaluates them, and hands them to the layer as columns.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from expectations.settings import (
    CONFIG,
    EntryName,
    GroupName,
    MetricName,
    Number,
    OrAbsent,
    Predicate,
    Problem,
    Seconds,
    Setting,
    Text,
    Whole,
)
from expectations.wording import hint, quoted
from gold.flows import TABLE_OF_FLOW
from silver.metric import CounterRule

Condition = Annotated[Predicate, Field(examples=["value > 100"])]
Every = Annotated[Seconds, Field(ge=1, examples=[600])]
AnyMetric = Annotated[OrAbsent[MetricName], Field(default=None, description="A metric of metrics.yml. Absent: readings of any.")]
Longest = Annotated[Whole, Field(ge=-604_800, le=604_800)]
"""Both sides of a join are kept for so long."""


@dataclass(frozen=True)
class Sessions(Setting):
    """Sessions: stretches of activity of one device, in gold.sessions."""

    gap_seconds: Every
    """A session ends when no reading came for this long."""
    metric: AnyMetric = None
    when: OrAbsent[Condition] = None
    """Only readings that meet this count: a condition over a reading, as in rules.yml."""


class Join(StrEnum):
    """Which rows without a partner are kept."""

    INNER = "inner"
    LEFT = "left"
    FULL = "full"


class By(StrEnum):
    """A property that two readings of a pair have in common."""

    DEVICE = "device"
    ZONE = "zone"


@dataclass(frozen=True)
class Pairs(Setting):
    """Readings of two metrics that belong together, in gold.pairs."""

    left: MetricName = Field(examples=["command"])
    """A metric of metrics.yml."""
    right: MetricName = Field(examples=["acknowledgement"])
    """A metric of metrics.yml; it may be the same."""
    until_seconds: Longest = Field(examples=[30])
    """The right reading comes at most this long after the left one. Negative: before it."""
    from_seconds: Longest = 0
    """And at least this long after it. Negative: it may come before it."""
    by: By = By.DEVICE
    """The property that both readings have in common."""
    join: Join = Field(default=Join.INNER, validation_alias="keep", serialization_alias="keep")
    """`left`: also left readings that find no partner, once their time has passed; `full`: also such right readings."""
    left_when: OrAbsent[Condition] = None
    """A condition that left readings have to meet: a condition over a reading, as in rules.yml."""
    right_when: OrAbsent[Condition] = None
    """The same for right readings."""
    key: OrAbsent[Text] = Field(default=None, examples=["request_id"])
    """An attribute whose text both readings have in common too. Each reading then has one partner at most, the first one in time."""

    def problems(self) -> Iterator[Problem]:
        if self.from_seconds > self.until_seconds:
            text = f"is {self.from_seconds}, behind until_seconds ({self.until_seconds}): no reading is in between; swap them"
            yield Problem(("from_seconds",), text)


@dataclass(frozen=True)
class Transition(Setting):
    """One way from a state to another: at a reading, or by time."""

    one_of: ClassVar[tuple[str, ...]] = ("when", "after_seconds")

    source: Text = Field(validation_alias="from", serialization_alias="from", examples=["idle"])
    """The state before."""
    target: Text = Field(validation_alias="to", serialization_alias="to", examples=["heating"])
    """The state after."""
    when: OrAbsent[Condition] = None
    """At a reading of which this is true: a condition over a reading, as in rules.yml."""
    after_seconds: OrAbsent[Every] = None
    """When the state has lasted so long."""

    def problems(self) -> Iterator[Problem]:
        if self.after_seconds and self.source == self.target:
            yield Problem(("to",), "is the state itself, which it would reach again and again; name another")


@dataclass(frozen=True)
class StateMachine(Setting):
    """The state of each device by a table of transitions, in gold.states: one row a change."""

    metric: MetricName = Field(examples=["power"])
    """A metric of metrics.yml."""
    initial: Text = Field(examples=["idle"])
    """The state of a device at its first reading."""
    transitions: tuple[Transition, ...] = Field(
        min_length=1, max_length=100, examples=[[{"from": "idle", "to": "heating", "when": "value > 100"}]]
    )
    """Ways from state to state. The first one that fits counts."""

    def problems(self) -> Iterator[Problem]:
        """A transition from a state that no device is ever in is a spelling mistake."""
        reached = {self.initial, *(transition.target for transition in self.transitions)}
        for number, transition in enumerate(self.transitions):
            if (state := transition.source) not in reached:
                remedy = hint(state, reached, "reached are " + ", ".join(sorted(reached)))
                yield Problem(("transitions", number, "from"), f"is {quoted(state)}, a state that nothing leads to; {remedy}")


@dataclass(frozen=True)
class Silence(Setting):
    """When devices fall silent and are heard again, in gold.states."""

    after_seconds: Every
    """A device is silent when no reading came for longer than this."""
    metric: AnyMetric = None


@dataclass(frozen=True)
class Distance(Setting):
    """Metres that a device moved, and its greatest speed, in gold.measures: one row a device and window."""

    latitude: MetricName = Field(examples=["latitude"])
    """In degrees. It and the longitude are of one instant."""
    longitude: MetricName = Field(examples=["longitude"])
    """In degrees."""
    every_seconds: Every = Field(examples=[600])
    """Length of a window."""
    most_plausible_speed: Number = Field(default=340.0, gt=0, examples=[40])
    """In metres a second. A place that the device can only have reached faster from its last one is no position; nor is 0, 0, nor what is
    beyond 90 and 180 degrees. `glitches` counts them."""


@dataclass(frozen=True)
class DutyCycle(Setting):
    """Share of time in which something was on, in gold.measures: one row a device and window."""

    metric: MetricName = Field(examples=["power"])
    """A metric of metrics.yml."""
    when: Condition = Field(examples=["value > 100"])
    """On, where this is true: a condition over a reading, as in rules.yml."""
    every_seconds: Every = Field(examples=[600])
    """Length of a window."""
    hold_seconds: Seconds = Field(default=3600, ge=1)
    """A reading holds until the next one, and at most so long; what is behind is unknown and counts neither way."""


@dataclass(frozen=True, kw_only=True)
class Counter(CounterRule):
    """The rise of a counter, in gold.measures: one row a device and window, with glitches, wraps and resets."""

    metric: MetricName = Field(examples=["energy"])
    """A metric of metrics.yml."""
    every_seconds: Every = Field(examples=[600])
    """Length of a window."""


Kind = Sessions | Pairs | StateMachine | Silence | Distance | DutyCycle | Counter


@dataclass(frozen=True, config=ConfigDict(**CONFIG, json_schema_extra={"minProperties": 1}))
class FlowSpec(Setting):
    """One flow. It has one kind."""

    one_of: ClassVar[tuple[str, ...]] = tuple(TABLE_OF_FLOW)

    name: EntryName
    group: OrAbsent[GroupName] = None
    """Only readings of devices of this group. Absent: all."""
    sessions: OrAbsent[Sessions] = Field(default=None, examples=[{"metric": "power", "gap_seconds": 300}])
    """Stretches of activity."""
    join: OrAbsent[Pairs] = Field(default=None, examples=[{"left": "command", "right": "acknowledgement", "until_seconds": 30}])
    """Readings that belong together."""
    states: OrAbsent[StateMachine] = Field(
        default=None,
        examples=[{"metric": "power", "initial": "idle", "transitions": [{"from": "idle", "to": "heating", "when": "value > 100"}]}],
    )
    """A state machine."""
    silence: OrAbsent[Silence] = Field(default=None, examples=[{"after_seconds": 60}])
    """Devices that fall silent."""
    distance: OrAbsent[Distance] = Field(default=None, examples=[{"latitude": "latitude", "longitude": "longitude", "every_seconds": 600}])
    """Ways that devices make."""
    duty_cycle: OrAbsent[DutyCycle] = Field(default=None, examples=[{"metric": "power", "when": "value > 100", "every_seconds": 3600}])
    """Share of time."""
    counter: OrAbsent[Counter] = Field(default=None, examples=[{"metric": "energy", "every_seconds": 3600}])
    """Rise of a counter."""

    @property
    def kind(self) -> Kind:
        """The one that is set."""
        kind: Kind = getattr(self, self.chosen[0])
        return kind

    @property
    def table(self) -> str:
        """The name of FLOW_KINDS."""
        return TABLE_OF_FLOW[self.chosen[0]]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics whose readings it takes; empty for all."""
        match self.kind:
            case Pairs(left=left, right=right):
                return tuple(dict.fromkeys((left, right)))
            case Distance(latitude=latitude, longitude=longitude):
                return latitude, longitude
            case kind:
                return () if kind.metric is None else (kind.metric,)

    @property
    def predicates(self) -> tuple[str, ...]:
        """Conditions over a reading, in the order of the columns `fits_0`, `fits_1` and so on; true where a side of a pair has none."""
        match self.kind:
            case Sessions(when=when):
                return (when,) if when else ()
            case Pairs(left_when=left, right_when=right):
                return left or "true", right or "true"
            case StateMachine(transitions=transitions):
                return tuple(transition.when or "false" for transition in transitions)
            case DutyCycle(when=when):
                return (when,)
            case _:
                return ()
