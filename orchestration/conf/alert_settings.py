"""Settings of alerts.yml: what is looked at, when an alert fires, and when it ends."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from expectations.settings import (
    GroupName,
    Identifier,
    MetricName,
    Number,
    OrAbsent,
    Predicate,
    Seconds,
    Setting,
    Text,
    UniqueSome,
    Whole,
    of_pattern,
)
from orchestration.conf.channel_settings import ChannelSettings

Minute = Annotated[str, of_pattern("^([01][0-9]|2[0-3]):[0-5][0-9]$", "write hours and minutes in quotes, such as '06:00'", None)]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEK: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class CountSettings(Setting):
    """Readings in each interval. Intervals start at multiples of their length since 1970 (UTC); a sample is at the end of one."""

    metric: OrAbsent[MetricName] = None
    """Only readings of this metric. Absent: of all."""
    every_seconds: Seconds = Field(default=300, ge=1)
    """Length of an interval."""
    by: Literal["device", "group"] = "device"
    """What is counted by itself: the readings of each device, or of each group."""


@dataclass(frozen=True)
class AccountSettings(Setting):
    """What became of the events of each source in each interval of ingestion, by the ledger."""

    every_seconds: Seconds = Field(default=3600, ge=1)
    """Length of an interval."""


@dataclass(frozen=True)
class NoDataSettings(Setting):
    """What becomes of the alert of a device, group or source that sent samples before and then none. Absent: it stays as it is."""

    after_seconds: Seconds = Field(ge=1, examples=[900])
    """No sample for longer than this, in event time."""
    then: Literal["keep", "fire", "resolve"] = "keep"
    """`keep`: a firing alert goes on firing. `fire`: the alert fires. `resolve`: it ends after after_checks times after_seconds."""
    after_checks: Whole = Field(default=3, ge=1, le=1000)
    """For `resolve`: how many times after_seconds have to pass without a sample."""


@dataclass(frozen=True)
class EscalationSettings(Setting):
    """A higher severity for an alert that goes on firing."""

    after_seconds: Seconds = Field(ge=1, examples=[600])
    """Since the alert first fired."""
    severity: Identifier = Field(examples=["critical"])
    """From then on."""


@dataclass(frozen=True)
class HoursSettings(Setting):
    """When samples count; others change nothing. Absent: always."""

    zone: Text = Field(examples=["Europe/Berlin"])
    """Time zone of the IANA database."""
    days: UniqueSome[Annotated[Day, Field(description="A day of the week.", examples=["mon"])]] = WEEK
    """Days of the week on which the hours begin."""
    begin: Minute = Field(default="00:00", validation_alias="from", examples=["06:00"])
    """First minute, local time."""
    end: Minute = Field(default="00:00", validation_alias="until", examples=["22:00"])
    """First minute after it; one that is not later is of the next day."""


@dataclass(frozen=True)
class FlappingSettings(Setting):
    """When an alert changes so often that only the state `flapping` is written. It ends below half of the share."""

    share: Number = Field(default=0.5, ge=0.01, le=1)
    """More than this share of the last samples changed between true and over."""
    of: Whole = Field(default=20, ge=2, le=50)
    """How many samples those are."""


@dataclass(frozen=True)
class AlertSettings(Setting):
    """One alert: exactly one of reading, window, vector, count and account says what it looks at."""

    one_of: ClassVar[tuple[str, ...]] = ("reading", "window", "vector", "count", "account")

    when: Predicate = Field(examples=["value > 280", "abs(rate) > 2"])
    """Condition over the fields of the signal; expectations/README.md has the language. The alert begins where it is true; null is neither
    true nor over."""
    reading: OrAbsent[MetricName] = None
    """Each reading of a metric. Fields: value, previous, seconds (since the previous one), change, rate (change / seconds), unit, zone,
    attributes."""
    window: OrAbsent[MetricName] = None
    """Each window of a metric in `group`, as first emitted. Fields: value, count, min, max, sum, latest, previous, change."""
    vector: OrAbsent[GroupName] = None
    """Each vector of a group, as first emitted. Fields: its features by name, missing, filled, missing_share."""
    count: OrAbsent[CountSettings] = Field(default=None, examples=[{"every_seconds": 300}])
    """How many readings came from whoever sent some before. Field: readings."""
    account: OrAbsent[AccountSettings] = Field(default=None, examples=[{"every_seconds": 3600}])
    """What became of the events of a source. Fields: events, readings, quarantined, late, duplicates, conflicts, and the shares of the last
    four in all measurements: quarantined_share and so on."""
    group: OrAbsent[GroupName] = None
    """Of reading and count: only devices of this group. Of window: required."""
    recover_when: OrAbsent[Predicate] = Field(default=None, examples=["value < 260"])
    """Condition that ends the alert; where it is false too, nothing changes. Absent: the alert ends where `when` is false."""
    for_seconds: OrAbsent[Seconds] = Field(default=None, ge=1, examples=[120])
    """The alert is pending for so long before it fires, if no sample is over until then. Absent: it fires at once."""
    for_times: OrAbsent[Whole] = Field(default=None, ge=2, le=1_000_000, examples=[3])
    """In place of for_seconds: it fires at so many true samples in a row."""
    keep_firing_seconds: OrAbsent[Seconds] = Field(default=None, ge=1, examples=[300])
    """The alert is recovering for so long before it ends, if no sample is true until then. Absent: it ends at once."""
    severity: Identifier = Field(default="warning", examples=["critical"])
    """A word of your own for how bad it is."""
    summary: Text = Field(default="{alert}: {entity} is {state}", examples=["{entity} is at {value} degC"])
    """For people; may name {alert}, {entity}, {state}, {severity} and {value}, that one with a format such as {value:.1f}."""
    no_data: OrAbsent[NoDataSettings] = Field(default=None, examples=[{"after_seconds": 900, "then": "fire"}])
    """What becomes of the alert without samples."""
    escalate: tuple[EscalationSettings, ...] = Field(default=(), examples=[[{"after_seconds": 600, "severity": "critical"}]])
    """Severities of an alert that goes on firing, the earliest first."""
    hours: OrAbsent[HoursSettings] = Field(default=None, examples=[{"zone": "Europe/Berlin", "from": "06:00", "until": "22:00"}])
    """When samples count."""
    flapping: OrAbsent[FlappingSettings] = Field(default=None, examples=[{"share": 0.5, "of": 20}])
    """When an alert changes too often. Absent: each change is written."""
    channels: OrAbsent[UniqueSome[Identifier]] = Field(default=None, examples=[["night_shift"]])
    """Who is told. Absent: all channels. Told are firing, no data and flapping, and normal after one of them that was told."""
    repeat_seconds: OrAbsent[Seconds] = Field(default=None, ge=60, examples=[3600])
    """Told again so long after it was last told, while it fires and nobody has acknowledged it. Absent: only what changes is told."""
    group_by: OrAbsent[Literal["zone", "group"]] = Field(default=None, examples=["zone"])
    """What changes at once in a zone, or for devices of the same groups, is one message. Absent: one for each entity."""
    inhibited_by: OrAbsent[UniqueSome[Identifier]] = Field(default=None, examples=[["gateway_is_silent"]])
    """Other alerts: while one of them fires for the same entity, for a group of it, or in its zone, nothing is told of this one."""
    max_per_hour: OrAbsent[Whole] = Field(default=None, ge=1, examples=[6])
    """Most messages of an entity in an hour, normal aside. Absent: there is no limit."""
    digest_older_than_seconds: Seconds = Field(default=3600, ge=1)
    """Changes that are older than this when they can be told are one message together, except what still fires."""
    fast: bool = False
    """Of reading: also told within milliseconds where events arrive, before bronze has them (`tidemark alerts watch`, a part of `tidemark
    up`). Then `when` has only the fields value, unit and zone. Only recover_when, for_times, hours and no_data with `then: fire` go with
    it."""


@dataclass(frozen=True)
class AlertsFile(Setting):
    """What to be told of. The file may be absent."""

    alerts: dict[Identifier, Annotated[AlertSettings, Field(examples=[{"reading": "temperature", "when": "value > 280"}])]] | None = Field(
        default=None, examples=[{"oven_too_hot": {"reading": "temperature", "when": "value > 280"}}]
    )
    """Alerts by name."""
    channels: dict[Identifier, ChannelSettings] = Field(default_factory=dict, examples=[{"night_shift": {"apprise": "${env:PAGER_URL}"}}])
    """Who is told, by name. Absent: nobody; what changed is in gold.alerts."""
