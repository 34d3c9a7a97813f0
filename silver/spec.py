"""Metrics of metrics.yml, the policy, and how payloads are read: frozen, free of Spark."""

from collections.abc import Iterator
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from enum import StrEnum

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from expectations.settings import (
    CONFIG,
    EntryName,
    Key,
    Number,
    OrAbsent,
    Problem,
    Seconds,
    Setting,
    Text,
    Trimmed,
    Whole,
)
from expectations.wording import quoted
from silver.aggregation import Aggregation


class Unknown(StrEnum):
    """The fate of a reading of a device or metric that nobody declared."""

    QUARANTINE = "quarantine"
    UNASSIGNED = "unassigned"


UNASSIGNED_GROUP = "unassigned"
BINARY = ("avro", "protobuf", "sparkplug_b")
"""Formats whose payloads are no text, and not divided by line ends."""
DECLARED = "declared"
"""In `PayloadFormat.schemas`, that of all payloads of a source without a registry."""
ELEMENT = "each."
"""A field path that begins with this begins at the element of the list `PayloadFormat.each`, not at the event."""
_UNKNOWN = (
    "`quarantine`: kept in silver.quarantine. `unassigned`: accepted into the group `unassigned`, which groups.yml must then declare."
)


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


@dataclass(frozen=True)
class Policy(Setting):
    """Promises of the silver layer."""

    lateness_seconds: Seconds = Field(ge=0, examples=[600])
    """How long a reading may arrive after a newer one, of whatever source and device, and still count. A reading further behind is late."""
    max_future_seconds: Seconds = Field(default=300, ge=0)
    """An event time further than this beyond its arrival comes from a wrong clock: the reading is quarantined before it can move the
    watermark."""
    max_payload_bytes: Whole = Field(default=1_048_576, ge=1, le=2_147_483_647)
    """A longer message is quarantined without being read."""
    max_age_seconds: Whole = Field(default=315_576_000, ge=0, le=100_000_000_000)
    """An event time further than this before its arrival comes from a clock that was never set: the reading is quarantined. The default is
    ten years; set more to bring in an older archive."""
    unknown_device: Unknown = Field(
        default=Unknown.QUARANTINE, description=f"What becomes of a reading of a device that nobody declared. {_UNKNOWN}"
    )
    unknown_metric: Unknown = Field(
        default=Unknown.QUARANTINE, description=f"What becomes of a reading of a metric that nobody declared. {_UNKNOWN}"
    )


@plain_dataclass(frozen=True)
class Origin:
    """The origin of a text; exactly one is set.

    `file_name` is a regular expression on the path below the landing folder; its first group is the text. `topic` is a level of the topic
    that a message came by, from 1.
    """

    field: str | None = None
    constant: str | None = None
    file_name: str | None = None
    topic: int | None = None


@plain_dataclass(frozen=True)
class Time:
    """`format`: iso, epoch_s, epoch_ms, epoch_us, epoch_ns, or a Spark datetime pattern.

    `time_zone` (an IANA name) is that of texts which name none. `repeated_hour`: which of two instants a local time is that the zone has
    twice, first or second; None: a row with such a time is quarantined.
    """

    field: str
    format: str = "iso"
    time_zone: str = "UTC"
    repeated_hour: str | None = None


@plain_dataclass(frozen=True)
class Registry:
    """A schema registry with Confluent's interface. `username` may be a reference, and `password` is one, never the secret."""

    url: str
    username: str | None = None
    password: str | None = None


@plain_dataclass(frozen=True)
class PayloadFormat:
    """How the payload of one source is read.

    Field paths are dotted (`data.temperature`); in CSV a field is a column name.
    Long: `metric` and `value` (and perhaps `unit`) are set. Wide: `metrics` maps each metric to its field.
    `each` (not CSV) is the path of a list with one measurement (long) or one row of measurements (wide) an element.
    `encoding` (JSON and CSV) is a name of Python's codecs.
    `attributes` maps names to fields whose texts are kept beside the reading. `not_measured`: values that say that nothing was measured;
    numbers are compared as numbers, and an empty one stands for null too. `words` maps each metric to texts that stand for a value (`on`
    for 1). Upper and lower case are alike in both.
    `schemas` (Avro and Protobuf) are what payloads are written by: under DECLARED, or with a registry by the id that a payload begins with.
    Avro: texts in JSON, those that a schema needs before it. Protobuf: one text, a FileDescriptorSet in base64 whose last file declares the
    message. No text at all: nobody knows the schema of this id.
    """

    format: str  # json | csv | parquet (whose rows are JSON in bronze) | avro | protobuf | sparkplug_b
    device: Origin
    time: Time
    zone: Origin | None = None
    metric: Origin | None = None
    value: str | None = None
    unit: Origin | None = None
    metrics: dict[str, str] = field(default_factory=dict)
    each: str | None = None
    has_header: bool = False
    columns: tuple[str, ...] = ()
    separator: str = ","
    quote: str = '"'
    encoding: str = "utf-8"
    attributes: dict[str, str] = field(default_factory=dict)
    not_measured: tuple[str, ...] = ()
    words: dict[str, dict[str, float]] = field(default_factory=dict)
    message: str | None = None
    registry: Registry | None = None
    schemas: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_binary(self) -> bool:
        """Whether payloads are no text."""
        return self.format in BINARY

    @property
    def is_read_by_position(self) -> bool:
        """Whether what an event means depends on the name of its file, or on its topic."""
        return any(origin.file_name is not None or origin.topic is not None for origin in self._origins)

    @property
    def fields(self) -> list[str]:
        of_origins = [origin.field for origin in self._origins if origin.field is not None]
        measured = [*self.metrics.values(), *([self.value] if self.value else [])]
        return list(dict.fromkeys([*of_origins, self.time.field, *measured, *self.attributes.values()]))

    @property
    def _origins(self) -> list[Origin]:
        return [origin for origin in (self.device, self.zone, self.metric, self.unit) if origin is not None]
