"""Alerts of alerts.yml: what an alert looks at, when it fires and when it ends, and who is notified. Frozen, free of Spark.

Durations are in seconds. Conditions are over the fields of a sample; who reads rows evaluates them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass as plain_dataclass
from string import Formatter
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, GetCoreSchemaHandler, ValidationInfo
from pydantic.dataclasses import dataclass
from pydantic_core import CoreSchema, core_schema

from expectations.settings import (
    AlertName,
    ChannelName,
    EntryName,
    Flag,
    GroupName,
    Hidden,
    Identifier,
    MetricName,
    Number,
    OrAbsent,
    Predicate,
    Problem,
    Seconds,
    Setting,
    Text,
    Unique,
    UniqueSome,
    Whole,
    of_pattern,
    problems_of_zone,
)
from expectations.wording import hint, quoted

SUMMARY_NAMES = ("alert", "entity", "state", "severity", "value", "reason")
"""Names that a summary may hold."""
DEFAULT_SUMMARY = "{alert}: {entity} is {state}"
"""Messages complete it, as they do a summary that names nothing. Of an alert on anomalies that fires it has the reason behind it."""
WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""Days as alerts.yml names them; in `Hours` each is its index."""
ORDERED = ("for_seconds", "keep_firing_seconds", "wait_seconds", "expected", "escalate", "flapping")
"""Settings that a fast alert does not have."""


@plain_dataclass(frozen=True)
class _Coded:
    """Behind `int`: YAML has a text, of which `number` makes the value; Python passes the value itself."""

    text: Any
    number: Callable[[str], int]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_wrap_validator_function(self._read, handler.generate_schema(self.text))

    def _read(self, value: Any, handler: Callable[[Any], str], info: ValidationInfo) -> int:
        return value if isinstance(value, int) and info.context is None else self.number(handler(value))


_TIME_OF_DAY = of_pattern("^([01][0-9]|2[0-3]):[0-5][0-9]$", "write hours and minutes in quotes, such as '06:00'", None)
Minute = Annotated[int, _Coded(Annotated[str, _TIME_OF_DAY], lambda text: int(text[:2]) * 60 + int(text[3:]))]
Day = Annotated[
    int,
    _Coded(Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], WEEK.index),
    Field(description="A day of the week.", examples=["mon"]),
]


@dataclass(frozen=True)
class Count(Setting):
    """Readings in each interval. Intervals start at multiples of their length since 1970 (UTC); a sample is at the end of one."""

    metric: OrAbsent[MetricName] = None
    """Only readings of this metric. Absent: of all."""
    every_seconds: Seconds = Field(default=300, ge=1)
    """Length of an interval."""
    by: Literal["device", "group"] = "device"
    """The unit that is counted by itself: the readings of each device, or of each group."""


@dataclass(frozen=True)
class Account(Setting):
    """The fate of the events of each source in each interval of ingestion, by the ledger."""

    every_seconds: Seconds = Field(default=3600, ge=1)
    """Length of an interval."""


@dataclass(frozen=True)
class NoData(Setting):
    """The fate of the alert of a device, group or source that sent samples before and then none. Absent: it stays as it is."""

    after_seconds: Seconds = Field(ge=1, examples=[900])
    """Nothing came for longer than this, by the clock; with hours, within these."""
    then: Literal["keep", "fire", "resolve"] = "keep"
    """`keep`: a firing alert goes on firing. `fire`: the alert fires. `resolve`: it ends after after_checks times after_seconds."""
    after_checks: Whole = Field(default=3, ge=1, le=1000)
    """For `resolve`: how many times after_seconds have to pass without a sample."""


@dataclass(frozen=True)
class Escalation(Setting):
    """A higher severity for an alert that goes on firing."""

    after_seconds: Seconds = Field(ge=1, examples=[600])
    """Since the alert first fired."""
    severity: Identifier = Field(examples=["critical"])
    """From then on."""


@dataclass(frozen=True)
class Hours(Setting):
    """Hours of some days of the week."""

    zone: Text = Field(examples=["Europe/Berlin"])
    """Time zone of the IANA database."""
    days: UniqueSome[Day] = Field(default=tuple(range(7)), json_schema_extra={"default": list(WEEK)})
    """Days of the week on which the hours begin."""
    begin: Minute = Field(
        default=0, validation_alias="from", serialization_alias="from", examples=["06:00"], json_schema_extra={"default": "00:00"}
    )
    """First minute, local time."""
    end: Minute = Field(
        default=0, validation_alias="until", serialization_alias="until", examples=["22:00"], json_schema_extra={"default": "00:00"}
    )
    """First minute after it; one that is not later is of the next day."""

    def problems(self) -> Iterator[Problem]:
        yield from problems_of_zone("zone", self.zone)


@dataclass(frozen=True)
class Flapping(Setting):
    """When an alert changes so often that only the state `flapping` is written. It ends below half of the share."""

    share: Number = Field(default=0.5, ge=0.01, le=1)
    """More than this share of the last samples changed between true and over."""
    of: Whole = Field(default=20, ge=2, le=50)
    """How many samples those are."""


@plain_dataclass(frozen=True)
class Signal:
    """Samples of an alert: rows of one entity at one instant. `kind`: one of Watched, or anomaly: a vector with its row of gold.anomalies.
    `features`: of a vector, in the order of the group. `every_seconds` and `by` ("device", "group"): of count and account."""

    kind: str
    metric: str | None = None
    group: str | None = None
    features: tuple[str, ...] = ()
    every_seconds: int = 0
    by: str = "device"

    @property
    def is_of_devices(self) -> bool:
        """Whether its entities are devices: they join and leave by the registry."""
        return self.kind in {"reading", "window"} or (self.kind == "count" and self.by == "device")

    @property
    def is_of_gold(self) -> bool:
        """Whether a sample is a window or a vector."""
        return self.kind in {"window", "vector", "anomaly"}


@dataclass(frozen=True, kw_only=True)
class Watched(Setting):
    """Exactly one of reading, window, vector, count and account says what an alert looks at."""

    one_of: ClassVar[tuple[str, ...]] = ("reading", "window", "vector", "count", "account")

    reading: OrAbsent[MetricName] = Field(default=None)
    """Each reading of a metric. Fields: value, previous, seconds (since the previous one), change, rate (change / seconds), unit, zone,
    attributes."""
    window: OrAbsent[MetricName] = Field(default=None)
    """Each window of a metric in `group`, in its first revision. Fields: value, count, min, max, sum, latest, previous, change."""
    vector: OrAbsent[GroupName] = Field(default=None)
    """Each vector of a group, in its first revision. Fields: its features by name, missing, filled, missing_share; of a group with
    `anomalies` score and is_anomaly too."""
    count: OrAbsent[Count] = Field(default=None, examples=[{"every_seconds": 300}])
    """How many readings came from whoever sent some before. Field: readings."""
    account: OrAbsent[Account] = Field(default=None, examples=[{"every_seconds": 3600}])
    """The fate of the events of a source. Fields: events, readings, quarantined, late, duplicates, conflicts, and the shares of the last
    four in all measurements: quarantined_share and so on."""
    group: OrAbsent[GroupName] = Field(default=None)
    """For reading and count: only devices of this group. For window: required."""

    def signal_of(self, features: Mapping[str, tuple[str, ...]]) -> Signal:
        """The signal of the alert. `features`: of the vectors of groups, by the name of the group."""
        (kind,) = self.chosen
        metric, every_seconds, by = self.reading or self.window, 0, "device"
        if self.count:
            metric, every_seconds, by = self.count.metric, self.count.every_seconds, self.count.by
        if self.account:
            every_seconds = self.account.every_seconds
        return Signal(kind, metric, self.vector or self.group, features.get(self.vector or "", ()), every_seconds, by)


@dataclass(frozen=True)
class Alert(Setting):
    """One alert: when it fires and when it ends. `signal` is no setting of YAML: `Watched` says it."""

    name: EntryName
    signal: Hidden[Signal] = None  # type: ignore[assignment]  # until the groups are known
    when: Predicate = Field(default=..., examples=["value > 280", "abs(rate) > 2"])
    """Condition over the fields of the signal; expectations/README.md has the language. The alert begins where it is true; null is neither
    true nor over."""
    recover_when: OrAbsent[Predicate] = Field(default=None, examples=["value < 260"])
    """Condition that ends the alert; where it is false too, nothing changes. Absent: the alert ends where `when` is false."""
    for_seconds: Seconds = Field(default=0, ge=0, examples=[120])
    """The alert is pending for so long before it fires, if no sample is over until then. 0: it fires at once."""
    for_times: Whole = Field(default=0, ge=0, le=1_000_000, examples=[3])
    """In place of for_seconds: it fires at so many true samples in a row."""
    keep_firing_seconds: Seconds = Field(default=0, ge=0, examples=[300])
    """The alert is recovering for so long before it ends, if no sample is true until then. 0: it ends at once."""
    severity: Identifier = Field(default="warning", examples=["critical"])
    """A word of your own for how bad it is."""
    summary: Text = Field(default=DEFAULT_SUMMARY, examples=["{entity} is at {value} degC"])
    """For people; may name {alert}, {entity}, {state}, {severity}, {value}, that one with a format such as {value:.1f}, and {reason}, that
    of an anomaly. To one that names nothing, and to the default, messages add the entity, its value and unit, the condition, since when,
    and the page's address."""
    wait_seconds: Seconds = Field(default=0, ge=0, examples=[60])
    """Judged only so long after its time, by the clock of the signal, so that what comes meanwhile is judged in order of time."""
    no_data: OrAbsent[NoData] = Field(default=None, examples=[{"after_seconds": 900, "then": "fire"}])
    """The fate of the alert without samples."""
    expected: OrAbsent[Literal["devices.yml"]] = Field(default=None, examples=["devices.yml"])
    """For reading and window with no_data, and for count: the devices of devices.yml, of `group` only its own, are to send, also those that
    never did. Absent: whoever sent something."""
    escalate: tuple[Escalation, ...] = Field(default=(), examples=[[{"after_seconds": 600, "severity": "critical"}]])
    """Severities of an alert that goes on firing, the earliest first."""
    hours: OrAbsent[Hours] = Field(default=None, examples=[{"zone": "Europe/Berlin", "from": "06:00", "until": "22:00"}])
    """When samples count; others change nothing. Of an interval, a duration or a silence all must lie within. Absent: always."""
    flapping: OrAbsent[Flapping] = Field(default=None, examples=[{"share": 0.5, "of": 20}])
    """When an alert changes too often. Absent: each change is written."""
    fast: Flag = Field(default=False)
    """For reading: also told within milliseconds where events arrive, before bronze has them (`tidemark alerts watch`, a part of `tidemark
    up`). Then `when` has only the fields value, unit and zone. Of what changes states only recover_when, for_times, hours and no_data with
    `then: fire` go with it."""


@dataclass(frozen=True, kw_only=True)
class NoticePolicy(Setting):
    """Who is told about one alert, and how often; no part of the alert, as it changes no state."""

    channels: OrAbsent[Unique[ChannelName]] = Field(default=None, examples=[["night_shift"]])
    """Who is told: absent all channels, empty nobody. Told are firing, no data and flapping, and normal after one of them was told."""
    repeat_seconds: OrAbsent[Seconds] = Field(default=None, ge=60, examples=[3600])
    """Told again so long after it was last told, while it fires and nobody has acknowledged it. Absent: only what changes is told."""
    group_by: OrAbsent[Literal["zone", "group"]] = Field(default=None, examples=["zone"])
    """Changes at one time in a zone, or for devices of the same groups, are one message. Absent: one for each entity."""
    inhibited_by: Unique[AlertName] = Field(default=(), examples=[["gateway_is_silent"]])
    """Other alerts: while one of them fires for the same entity, for a group of it, or in its zone, nothing is told of this one."""
    max_per_hour: OrAbsent[Whole] = Field(default=None, ge=1, examples=[6])
    """Most messages of an entity in an hour, normal aside. Absent: there is no limit."""
    digest_older_than_seconds: Seconds = Field(default=3600, ge=1)
    """Changes that are older than this when they can be told are one message together, except what still fires."""


@dataclass(frozen=True)
class AlertSettings(NoticePolicy, Alert, Watched):
    """One alert: exactly one of reading, window, vector, count and account says what it looks at."""

    def problems(self) -> Iterator[Problem]:
        if self.window and not self.group:
            yield Problem(("group",), "is missing: windows are those of a group; add it")
        if self.group and (self.vector or self.account):
            yield Problem(("group",), "is for reading, window and count; remove it")
        if self.for_seconds and self.for_times:
            yield Problem(("for_times",), "is set beside for_seconds; keep one of them")
        if self.expected and not (self.count and self.count.by == "device") and not ((self.reading or self.window) and self.no_data):
            yield Problem(("expected",), "is for a count by device, and for reading and window with no_data; add no_data, or remove it")
        after = [step.after_seconds for step in self.escalate]
        if after != sorted(set(after)):
            yield Problem(("escalate",), "does not have its steps in order of after_seconds; sort them")
        yield from self._problems_of_summary()
        if self.fast:
            yield from self._problems_of_fast()

    def _problems_of_summary(self) -> Iterator[Problem]:
        try:
            for _, name, form, conversion in Formatter().parse(self.summary):
                if name is not None and (name not in SUMMARY_NAMES or conversion):
                    remedy = hint(name, SUMMARY_NAMES, "it may name " + ", ".join(SUMMARY_NAMES))
                    yield Problem(("summary",), f"names {quoted(name)}, which an alert does not have; {remedy}")
                elif form:
                    format(0.5 if name == "value" else "", form)
        except ValueError as error:
            text = f"cannot be filled in ({error}); write for example {{value:.1f}}, and {{{{ for a bracket"
            yield Problem(("summary",), text)

    def _problems_of_fast(self) -> Iterator[Problem]:
        if not self.reading:
            yield Problem(("fast",), f"is for reading, and this looks at {self.chosen[0]}; remove it")
        if ordered := [name for name in ORDERED if getattr(self, name)]:
            text = "needs all readings in order of time, and a fast alert judges each as it comes; remove fast"
            yield Problem((ordered[0],), text)
        if self.no_data and self.no_data.then != "fire":
            yield Problem(("no_data", "then"), f"is {quoted(self.no_data.then)}, and a fast alert has only 'fire'; remove fast")
