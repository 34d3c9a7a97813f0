"""What a user declares about alerts: frozen, free of Arrow and Spark, made by orchestration.conf from alerts.yml. Durations in seconds."""

from dataclasses import dataclass

SUMMARY_NAMES = ("alert", "entity", "state", "severity", "value")
"""What a summary may name."""


@dataclass(frozen=True)
class NoData:
    """What happens to an entity that sends no sample for longer than `after_seconds`.

    `then`: "keep" lets a firing alert fire, "fire" fires, "resolve" ends the alert after `after_checks` times as long.
    """

    after_seconds: int
    then: str = "keep"
    after_checks: int = 3


@dataclass(frozen=True)
class Escalation:
    """The severity of an alert that has been firing for so long."""

    after_seconds: int
    severity: str


@dataclass(frozen=True)
class Hours:
    """The part of a week in which samples count. `days`: 0 is Monday. `begin`, `end`: minutes of a local day; an end that is not later is
    of the next day.
    """

    zone: str
    days: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Flapping:
    """Too many changes: more than `share` of the last `of` samples."""

    share: float
    of: int


@dataclass(frozen=True)
class Signal:
    """What an alert looks at. `kind`: reading, window, vector, count or account; a sample is one row of one entity at one instant.

    `features`: of a vector, in the order of the group. `every_seconds` and `by` ("device", "group"): of count and account.
    """

    kind: str
    metric: str | None = None
    group: str | None = None
    features: tuple[str, ...] = ()
    every_seconds: int = 0
    by: str = "device"


@dataclass(frozen=True)
class Alert:
    """`when` and `recover_when` are conditions in DuckDB's SQL over the fields of the signal. `recover_when` None: when `when` is false.

    `fast`: it is also told where events arrive (gold/fast_alerts.py).
    """

    name: str
    signal: Signal
    when: str
    recover_when: str | None = None
    for_seconds: int = 0
    for_times: int = 0
    keep_firing_seconds: int = 0
    severity: str = "warning"
    summary: str = "{alert}: {entity} is {state}"
    no_data: NoData | None = None
    escalate: tuple[Escalation, ...] = ()
    hours: Hours | None = None
    flapping: Flapping | None = None
    fast: bool = False


@dataclass(frozen=True)
class NoticePolicy:
    """Who is told about one alert, and how often; no part of the alert, as it changes no state. `channels` None: all. 0: no limit."""

    channels: tuple[str, ...] | None = None
    repeat_seconds: int = 0
    group_by: str | None = None
    inhibited_by: tuple[str, ...] = ()
    max_per_hour: int = 0
    digest_older_than_seconds: int = 3600
