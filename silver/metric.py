"""Metrics of metrics.yml: frozen, free of Spark."""

from collections.abc import Iterator

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from expectations.settings import CONFIG, EntryName, Key, Number, OrAbsent, Problem, Seconds, Setting, Text, Trimmed
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


@dataclass(frozen=True)
class Wrapping(Setting):
    """How a counter counts."""

    wraps_at: Number = Field(ge=1, examples=[4294967296])
    """The counter rises from 0, and goes on at 0 instead of reaching this. A fall from the upper half of it to the lower half is taken for
    that, and any other for a counter that was reset."""


@dataclass(frozen=True)
class Metric(Setting):
    """One metric: what is measured."""

    name: EntryName
    aggregation: Aggregation = Field(examples=["average"])
    """How the readings of one window become one value. stddev is that of a sample (null for one reading); median and quantile are exact.
    gold/README.md defines each."""
    step_seconds: Seconds = Field(ge=1, examples=[600, 3600])
    """Coarse grain step: the length of a window. Windows start at multiples of it since 1970 (UTC)."""
    unit: OrAbsent[Text] = Field(default=None, examples=["degC"])
    """Unit of the stored values."""
    slide_seconds: OrAbsent[Seconds] = Field(default=None, ge=1, examples=[300])
    """Sliding windows: a window starts this often. It divides step_seconds; leave it out for tumbling windows."""
    quantile: OrAbsent[Number] = Field(default=None, ge=0, le=1, examples=[0.95])
    """The quantile to take, from 0 to 1; for the aggregation type quantile."""
    counter: OrAbsent[Wrapping] = Field(default=None, examples=[{"wraps_at": 4294967296}])
    """How a meter wraps; for the aggregation type counter_increase. Absent: the counter does not wrap, and every fall is a reset."""
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
    def every_seconds(self) -> int:
        """From the begin of one window to that of the next."""
        return self.slide_seconds or self.step_seconds

    @property
    def is_state(self) -> bool:
        """Say whether a value holds until the next one, so that a chart of it has steps."""
        return bool(self.words) or self.aggregation in (Aggregation.LATEST, Aggregation.FIRST)

    @property
    def wraps_at(self) -> float | None:
        """The value that a counter never reaches; None where it does not wrap."""
        return self.counter.wraps_at if self.counter else None

    def problems(self) -> Iterator[Problem]:
        if self.slide_seconds and self.step_seconds % self.slide_seconds:
            divisors = f"which does not divide step_seconds ({self.step_seconds}); choose one of its divisors, or leave it out"
            yield Problem(("slide_seconds",), f"is {self.slide_seconds}, {divisors}")
        least, most = self.minimum, self.maximum
        if least is not None and most is not None and least > most:
            yield Problem(("minimum",), f"is {quoted(least)}, above its maximum {quoted(most)}; swap them or correct one")
        if self.aggregation is Aggregation.QUANTILE and self.quantile is None:
            yield Problem(("quantile",), "is missing, and says which quantile to take; write for example 0.95")
        for key, aggregation in (("quantile", Aggregation.QUANTILE), ("counter", Aggregation.COUNTER_INCREASE)):
            if getattr(self, key) is not None and self.aggregation is not aggregation:
                text = (
                    f"is only for the aggregation {aggregation}, but the metric has {self.aggregation}; remove it, or choose {aggregation}"
                )
                yield Problem((key,), text)
        if self.conversions and not self.unit:
            yield Problem(("conversions",), "has no unit to convert to; add `unit` to the metric")
        if self.unit in self.conversions:
            yield Problem(("conversions", self.unit), "converts the metric's own unit; remove it")
