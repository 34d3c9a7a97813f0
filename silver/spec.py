"""What a user declares about payloads and metrics: frozen, free of Spark, made by orchestration.conf from YAML."""

from dataclasses import dataclass, field
from enum import StrEnum


class Aggregation(StrEnum):
    """How the readings of one window become one value."""

    AVERAGE = "average"
    LATEST = "latest"
    MIN = "min"
    MAX = "max"
    SUM = "sum"
    COUNT = "count"
    FIRST = "first"
    STDDEV = "stddev"
    MEDIAN = "median"
    QUANTILE = "quantile"
    TIME_WEIGHTED_AVERAGE = "time_weighted_average"
    COUNTER_INCREASE = "counter_increase"
    CIRCULAR_MEAN = "circular_mean"


class Unknown(StrEnum):
    """What becomes of a reading of a device or metric that nobody declared."""

    QUARANTINE = "quarantine"
    UNASSIGNED = "unassigned"


UNASSIGNED_GROUP = "unassigned"
BINARY = ("avro", "protobuf", "sparkplug_b")
"""Formats whose payloads are no text, and not divided by line ends."""
DECLARED = "declared"
"""In `PayloadFormat.schemas`, that of all payloads of a source without a registry."""
ELEMENT = "each."
"""A field path that begins with this begins at the element of the list `PayloadFormat.each`, not at the event."""


@dataclass(frozen=True)
class Conversion:
    """value in the unit of the metric = value * multiply + add."""

    multiply: float
    add: float


@dataclass(frozen=True)
class Metric:
    """What is measured.

    `slide_seconds` None: tumbling windows; else it divides `step_seconds`. `minimum` and `maximum` are inclusive, None is open.
    `quantile`: from 0 to 1, of that aggregation type. `wraps_at`: what a counter that rises from 0 never reaches; None: it does not wrap.
    """

    name: str
    aggregation: Aggregation
    step_seconds: int
    unit: str | None = None
    slide_seconds: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    conversions: dict[str, Conversion] = field(default_factory=dict)
    label: str | None = None
    quantile: float | None = None
    wraps_at: float | None = None

    @property
    def every_seconds(self) -> int:
        """From the begin of one window to that of the next."""
        return self.slide_seconds or self.step_seconds


@dataclass(frozen=True)
class Origin:
    """Where a text comes from; exactly one is set.

    `file_name` is a regular expression on the path below the landing folder; its first group is the text. `topic` is a level of the topic
    that a message came by, from 1.
    """

    field: str | None = None
    constant: str | None = None
    file_name: str | None = None
    topic: int | None = None


@dataclass(frozen=True)
class Time:
    """`format`: iso, epoch_s, epoch_ms, epoch_us, epoch_ns, or a Spark datetime pattern.

    `time_zone` (an IANA name) is that of texts which name none. `repeated_hour`: which of two instants a local time is that the zone has
    twice, first or second; None: a row with such a time is quarantined.
    """

    field: str
    format: str = "iso"
    time_zone: str = "UTC"
    repeated_hour: str | None = None


@dataclass(frozen=True)
class Registry:
    """A schema registry with Confluent's interface. `username` may be a reference, and `password` is one, never the secret."""

    url: str
    username: str | None = None
    password: str | None = None


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Policy:
    """What the silver layer promises; seconds throughout."""

    lateness_seconds: int
    max_future_seconds: int
    max_payload_bytes: int
    max_age_seconds: int = 315_576_000
    unknown_device: Unknown = Unknown.QUARANTINE
    unknown_metric: Unknown = Unknown.QUARANTINE
