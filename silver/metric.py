"""Metrics of metrics.yml: frozen, free of Spark."""

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar, NamedTuple

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from expectations.settings import CONFIG, EntryName, Key, Number, OrAbsent, Problem, Seconds, Setting, Text, Trimmed, problems_of_zone
from expectations.wording import quoted
from silver.aggregation import Aggregation


@dataclass(frozen=True, config=ConfigDict(**CONFIG, json_schema_extra={"minProperties": 1}))
class Conversion(Setting):
    """Value in the metric's unit = value * multiply + add. At least one of the two is set."""

    multiply: Number = Field(default=1.0, examples=[1000])
    """Factor."""
    add: Number = Field(default=0.0, examples=[-273.15])
    """Offset, added after the factor."""

    def problems(self) -> Iterator[Problem]:
        if self.multiply == 0:
            yield Problem(("multiply",), "is 0, which makes every value the same; write the factor")


@dataclass(frozen=True, kw_only=True)
class CounterRule(Setting):
    """How a counter counts, and which of its readings are noise."""

    wraps_at: OrAbsent[Number] = Field(default=None, ge=1, examples=[4294967296])
    """The counter rises from 0, and goes on at 0 instead of reaching this. A fall from the upper tenth of it to the lower tenth is taken
    for that. A reading of the metric above it is quarantined. Absent: the counter does not wrap."""
    glitch_share: Number = Field(default=0.02, ge=0, le=0.5, examples=[0.02])
    """A fall of at most this share of the last value is noise of the meter: it counts for nothing until it is passed again."""
    glitch_amount: OrAbsent[Number] = Field(default=None, ge=0, examples=[0.5])
    """The same as an amount, in the unit of the metric, in place of the share."""
    most_per_hour: OrAbsent[Number] = Field(default=None, ge=0, examples=[50])
    """A rise that is faster than this is none: the counter goes on from the new value, and may come back. Absent: every rise counts."""


class CalendarStep(StrEnum):
    """The length of a window by the local calendar; it is longer or shorter where clocks change."""

    DAY = "day"
    """A window begins when the local clock first shows a date."""
    WEEK = "week"
    """A window begins with the weekday that `week_starts` names."""
    MONTH = "month"
    """A window begins with the first day of a month."""


class Weekday(StrEnum):
    """The day that a week begins with."""

    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"


OF_ONE_AGGREGATION = {
    "quantile": Aggregation.QUANTILE,
    "counter": Aggregation.COUNTER_INCREASE,
    "max_hold_seconds": Aggregation.TIME_WEIGHTED_AVERAGE,
}
"""Settings that only metrics of one aggregation type have."""
DAYS = {CalendarStep.DAY: 1, CalendarStep.WEEK: 7, CalendarStep.MONTH: 31}
DAY_SECONDS = 86_400


class Calendar(NamedTuple):
    """The windows of a metric by the calendar. `first_day`: of a week, 0 is Monday."""

    step: CalendarStep
    time_zone: str
    first_day: int


@dataclass(frozen=True)
class Metric(Setting):
    """One metric: what is measured."""

    one_of: ClassVar[tuple[str, ...]] = ("step_seconds", "step")
    name: EntryName
    aggregation: Aggregation = Field(examples=["average"])
    """How the readings of one window become one value. stddev is that of a sample (null for one reading); median and quantile are exact.
    gold/README.md defines each."""
    step_seconds: OrAbsent[Seconds] = Field(default=None, ge=1, examples=[600, 3600])
    """Coarse grain step: the length of a window. Windows start at multiples of it since 1970 (UTC)."""
    unit: OrAbsent[Text] = Field(default=None, examples=["degC"])
    """Unit of the stored values."""
    slide_seconds: OrAbsent[Seconds] = Field(default=None, ge=1, examples=[300])
    """Sliding windows: a window starts this often. It divides step_seconds; leave it out for tumbling windows."""
    step: OrAbsent[CalendarStep] = Field(default=None, examples=["day"])
    """Windows by the calendar, in place of step_seconds: days, weeks or months of `time_zone`. A day has 23 or 25 hours when
    clocks change."""
    time_zone: OrAbsent[Text] = Field(default=None, examples=["Europe/Brussels"])
    """The time zone of `step`; absent: UTC."""
    week_starts: OrAbsent[Weekday] = Field(default=None, examples=["sunday"])
    """The first day of a week, for `step: week`; absent: monday."""
    quantile: OrAbsent[Number] = Field(default=None, ge=0, le=1, examples=[0.95])
    """The quantile to take, from 0 to 1; for the aggregation type quantile."""
    counter: OrAbsent[CounterRule] = Field(default=None, examples=[{"wraps_at": 4294967296}])
    """How a meter counts; for the aggregation type counter_increase. Absent: it does not wrap, and no rise is too fast."""
    max_hold_seconds: OrAbsent[Seconds] = Field(default=None, ge=1, examples=[7200])
    """A value holds until the next one, and at most so long; for the aggregation type time_weighted_average. Absent: a day."""
    conversions: dict[Trimmed, Conversion] = Field(default_factory=dict, examples=[{"K": {"add": -273.15}}])
    """Other units that sources may send, as the source writes them: value in the metric's unit = value * multiply + add."""
    words: dict[Key, Number] = Field(default_factory=dict, examples=[{"on": 1, "off": 0}])
    """Texts that stand for a value, such as those of a switch. Upper and lower case are alike."""
    minimum: OrAbsent[Number] = Field(default=None, examples=[-50])
    """Least value that can be true (inclusive); a reading below is quarantined."""
    maximum: OrAbsent[Number] = Field(default=None, examples=[400])
    """Greatest value that can be true (inclusive); a reading above is quarantined."""
    label: OrAbsent[Text] = Field(default=None, examples=["Temperature"])
    """For people: titles of plots and reports."""

    @property
    def calendar(self) -> Calendar | None:
        """None for windows of step_seconds."""
        if self.step is None:
            return None
        return Calendar(self.step, self.time_zone or "UTC", [*Weekday].index(self.week_starts or Weekday.MONDAY))

    @property
    def window_seconds(self) -> int:
        """The length of a window; by the calendar its days of 24 hours, and of a month the most."""
        return self.step_seconds or DAYS[CalendarStep(self.step or "")] * DAY_SECONDS

    @property
    def every_seconds(self) -> int:
        """From the begin of one window to that of the next."""
        return self.slide_seconds or self.window_seconds

    @property
    def longest_seconds(self) -> int:
        """The most that a window can last: by the calendar a day more, as clocks change by up to a day."""
        return self.window_seconds + (DAY_SECONDS if self.step else 0)

    @property
    def hold_seconds(self) -> int:
        """How long a value holds at most; 0 where none holds."""
        return (self.max_hold_seconds or DAY_SECONDS) if self.aggregation is Aggregation.TIME_WEIGHTED_AVERAGE else 0

    @property
    def window(self) -> str:
        """The windows in words."""
        if self.step is None:
            return f"{self.step_seconds} s" + (f" every {self.slide_seconds} s" if self.slide_seconds else "")
        week = f" from {self.week_starts or Weekday.MONDAY}" if self.step is CalendarStep.WEEK else ""
        return f"a {self.step}{week} in {self.time_zone or 'UTC'}"

    @property
    def is_state(self) -> bool:
        """Say whether a value holds until the next one, so that a chart of it has steps."""
        return bool(self.words) or self.aggregation in (Aggregation.LATEST, Aggregation.FIRST)

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The least and the greatest value that can be true. A counter is never below 0, nor above where it wraps."""
        if self.aggregation is not Aggregation.COUNTER_INCREASE:
            return self.minimum, self.maximum
        least = 0.0 if self.minimum is None else self.minimum
        return least, self.counter.wraps_at if self.counter and self.maximum is None else self.maximum

    def problems(self) -> Iterator[Problem]:
        yield from self._problems_of_calendar()
        if self.slide_seconds and self.step_seconds and self.step_seconds % self.slide_seconds:
            divisors = f"which does not divide step_seconds ({self.step_seconds}); choose one of its divisors, or leave it out"
            yield Problem(("slide_seconds",), f"is {self.slide_seconds}, {divisors}")
        least, most = self.minimum, self.maximum
        if least is not None and most is not None and least > most:
            yield Problem(("minimum",), f"is {quoted(least)}, above its maximum {quoted(most)}; swap them or correct one")
        if self.aggregation is Aggregation.QUANTILE and self.quantile is None:
            yield Problem(("quantile",), "is missing, and says which quantile to take; write for example 0.95")
        for key, aggregation in OF_ONE_AGGREGATION.items():
            if getattr(self, key) is not None and self.aggregation is not aggregation:
                text = (
                    f"is only for the aggregation {aggregation}, but the metric has {self.aggregation}; remove it, or choose {aggregation}"
                )
                yield Problem((key,), text)
        if self.conversions and not self.unit:
            yield Problem(("conversions",), "has no unit to convert to; add `unit` to the metric")
        if self.unit in self.conversions:
            yield Problem(("conversions", self.unit), "converts the metric's own unit; remove it")

    def _problems_of_calendar(self) -> Iterator[Problem]:
        if self.step and self.slide_seconds:
            yield Problem(("slide_seconds",), "is only for step_seconds, as windows of a calendar do not overlap; remove it")
        if self.time_zone and not self.step:
            yield Problem(("time_zone",), "is only for step: day, week or month; remove it, or write `step` in place of step_seconds")
        if self.week_starts and self.step is not CalendarStep.WEEK:
            yield Problem(("week_starts",), "is only for step: week; remove it")
        if self.time_zone:
            yield from problems_of_zone("time_zone", self.time_zone)
