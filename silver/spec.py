"""Metrics of metrics.yml, and how the payloads of sources.yml are read: frozen, free of Spark."""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, ValidationInfo
from pydantic.dataclasses import dataclass
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from expectations.settings import (
    CONFIG,
    EntryName,
    Flag,
    Hidden,
    Key,
    Names,
    Number,
    OrAbsent,
    PlainText,
    Problem,
    Seconds,
    Setting,
    Some,
    Text,
    Trimmed,
    UniqueSome,
    Whole,
    expression,
    of_pattern,
    problems_of_zone,
    unreadable,
)
from expectations.wording import quoted
from silver.aggregation import Aggregation
from silver.text_encoding import Encoding

BINARY = ("avro", "protobuf", "sparkplug_b")
"""Formats whose payloads are no text, and not divided by line ends."""
DECLARED = "declared"
"""In `PayloadFormat.schemas`, that of all payloads of a source without a registry."""
ELEMENT = "each."
"""A field path that begins with this begins at the element of the list `PayloadFormat.each`, not at the event."""
_PATH = "Dotted path of a field, or name of a CSV column. With `each`, a path that begins with `each.` begins at the element of the list."
Separator = Annotated[str, of_pattern(r"^[^\r\n\x00]$", "write one character, no line end", 1, 1)]
Quote = Annotated[
    str, of_pattern(r"^[!-/:-@\[-`{-~\u00a1-\uffff]$", "write one character that is no letter, digit, blank or picture", 1, 1)
]
MeasuredField = Annotated[Text, Field(description=_PATH, examples=["data.temp"])]


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


def _with_group(text: str) -> str:
    if not re.compile(expression(text)).groups:
        raise unreadable(f"is {quoted(text)}, which has no group; put ( ) around the part to take, for example '^(.+)\\.txt$'")
    return text


@dataclass(frozen=True, config=ConfigDict(**CONFIG, json_schema_extra={"minProperties": 1, "maxProperties": 1}))
class Origin(Setting):
    """The origin of a text; set exactly one of these."""

    one_of: ClassVar[tuple[str, ...]] = ("field", "constant", "file_name", "topic")
    field: OrAbsent[Text] = Field(default=None, examples=["device"], description=_PATH)
    constant: OrAbsent[Text] = Field(default=None, examples=["oven-01"])
    """The same text for every event of this source."""
    file_name: OrAbsent[Annotated[Text, AfterValidator(_with_group)]] = Field(default=None, examples=[r"^(.+)\.txt$"])
    """Regular expression on the path of the file below the landing folder, with s3 on bucket/key@version; its first group is the text."""
    topic: OrAbsent[Annotated[Whole, Field(ge=1, le=200)]] = Field(default=None, examples=[2])
    """MQTT and Kafka: a level of the topic, the first is 1. The levels of MQTT have `/` between them; a topic of Kafka is one level."""


@dataclass(frozen=True)
class Time(Setting):
    """When a measurement was made."""

    field: Text = Field(examples=["ts"], description=_PATH)
    format: Annotated[PlainText, Field(min_length=1, max_length=200)] = Field(
        default="iso", examples=["iso", "epoch_s", "epoch_ms", "epoch_us", "epoch_ns", "dd/MM/yyyy HH:mm:ss"]
    )
    """`iso`, `epoch_s`, `epoch_ms`, `epoch_us`, `epoch_ns`, or a Spark datetime pattern such as `dd/MM/yyyy HH:mm:ss`."""
    time_zone: Text = Field(default="UTC", examples=["UTC", "Europe/Brussels"])
    """IANA name of the zone of times that name none themselves."""
    repeated_hour: OrAbsent[Literal["first", "second"]] = Field(default=None, examples=["first"])
    """Which of the two a local time is that comes twice, when summer time ends. Then a time that is skipped, when it begins, is read too.
    Without this, rows with such times are quarantined."""

    def problems(self) -> Iterator[Problem]:
        yield from problems_of_zone("time_zone", self.time_zone)


@dataclass(frozen=True)
class Value(Setting):
    """The number of a long row."""

    field: Text = Field(examples=["value"], description=_PATH)


class _OfValue:
    """Behind `str`: YAML has a `Value`, of which Python gets the field."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_wrap_validator_function(self._read, handler.generate_schema(Value))

    def _read(self, value: Any, handler: Callable[[Any], Value], info: ValidationInfo) -> str:
        return value if isinstance(value, str) and info.context is None else handler(value).field


@dataclass(frozen=True)
class Registry(Setting):
    """A schema registry with Confluent's interface. `username` may be a reference, and `password` is one, never the secret."""

    url: str
    username: str | None = None
    password: str | None = None


def _fields_of_names(written: Any, info: ValidationInfo) -> Any:
    """A list names metrics whose fields have the same names: those of the elements, where the source has a list of them."""
    if not isinstance(written, list) or not written or not all(isinstance(name, str) for name in written):
        return written
    if len(set(written)) < len(written):
        raise PydanticCustomError("twice", "names a metric twice")
    return {name: f"{ELEMENT if info.data.get('each') else ''}{name}" for name in written}


_Fields = Some[dict[Annotated[Key, Names("metrics")], MeasuredField]]
MeasuredFields = Annotated[_Fields, BeforeValidator(_fields_of_names, json_schema_input_type=_Fields | UniqueSome[Key])]


@dataclass(frozen=True)
class PayloadFormat(Setting):
    """How the payload of one source is read. Upper and lower case are alike in `not_measured` and `words`."""

    format: Literal["json", "csv", "parquet", "avro", "protobuf", "sparkplug_b"] = Field(examples=["json"])
    """`json`: one object a line. `csv`: one row a line. Files that end in .gz are unpacked. `parquet`, with path and s3: a row of a Parquet
    file is read as a JSON object. `avro`, `protobuf` and `sparkplug_b`: one message an event, not from files."""
    device: Origin = Field(examples=[{"field": "device"}])
    """Which device measured."""
    time: Time = Field(examples=[{"field": "ts"}])
    """When it was measured."""
    zone: OrAbsent[Origin] = Field(default=None, examples=[{"field": "zone"}])
    """The zone of the measurement; else the zone of the device in devices.yml."""
    metric: OrAbsent[Origin] = Field(default=None, examples=[{"field": "metric"}])
    """Long rows (one measurement each): which metric it is."""
    value: OrAbsent[Annotated[str, _OfValue()]] = Field(default=None, examples=[{"field": "value"}])
    """Long rows: the number."""
    unit: OrAbsent[Origin] = Field(default=None, examples=[{"field": "unit"}])
    """Long rows: the unit of the number; metrics.yml says how to convert it."""
    each: OrAbsent[Text] = Field(default=None, examples=["readings"])
    """All but CSV: path of a list with one measurement (or one wide row) an element."""
    metrics: MeasuredFields = Field(default_factory=dict, examples=[{"temperature": "data.temp"}, ["temperature", "humidity"]])
    """Wide rows (several measurements each): the field of each metric. A list names metrics whose fields are called as they are; with
    `each` these are fields of the element."""
    attributes: dict[Key, MeasuredField] = Field(default_factory=dict, examples=[{"quality": "each.q"}])
    """Texts of the event that are kept with each reading, by name: rules can ask `attributes['quality'] = 'true'`."""
    not_measured: UniqueSome[PlainText] = Field(default=(), examples=[["---", "unavailable", "NaN", ""]])
    """Values that say that nothing was measured. Upper and lower case are alike, numbers are compared as numbers, and "" stands for a blank
    or null value too."""
    message: OrAbsent[Text] = Field(default=None, examples=["plant.Reading"])
    """Protobuf with a schema file: full name of the message."""
    registry: OrAbsent[Registry] = None
    """Avro and Protobuf: where the schemas are, instead of a file."""
    has_header: Flag = Field(default=False, validation_alias="header", serialization_alias="header", examples=[True])
    """CSV: whether the first line of each file names the columns. It may name one fewer than all rows have: their first value is then a row
    number."""
    columns: UniqueSome[Text] = Field(default=(), max_length=10_000, examples=[["ts", "temperature"]])
    """CSV: names of the columns in order; required without a header, and with one they replace it."""
    separator: Separator = Field(default=",", examples=[",", ";", "\t"])
    """CSV: the character between two values."""
    quote: Quote = '"'
    """CSV: the character around values that hold the separator."""
    encoding: Encoding = Field(default="utf-8", examples=["latin-1", "windows-1252", "utf-16"])
    """JSON and CSV: the encoding of the text, by a name that Python's codecs know. A file that is in another is left out and told; utf-16
    without a byte order mark is little-endian."""
    words: Hidden[dict[str, dict[str, float]]] = Field(default_factory=dict)
    """Texts that stand for a value, such as `on` for 1, by metric."""
    schemas: Hidden[dict[str, tuple[str, ...]]] = Field(default_factory=dict)
    """Schemas that payloads are written by: under DECLARED, or with a registry by the id that a payload begins with; no text at all where
    nobody knows the schema of this id. Avro: texts in JSON, those that a schema needs before it. Protobuf: one text, a FileDescriptorSet in
    base64 whose last file declares the message."""

    def may_bring(self, metric: str) -> bool:
        """Whether it may bring readings of a metric: of wide rows conf names each; of long rows only the events do, unless it is one."""
        if self.metrics:
            return metric in self.metrics
        return self.metric is None or self.metric.constant in {None, metric}

    @property
    def is_binary(self) -> bool:
        """Whether payloads are no text."""
        return self.format in BINARY

    @property
    def is_read_by_position(self) -> bool:
        """Whether what an event means depends on the name of its file, or on its topic."""
        return any(origin.file_name is not None or origin.topic is not None for _, origin in self.origins)

    @property
    def fields(self) -> list[str]:
        of_origins = [origin.field for _, origin in self.origins if origin.field is not None]
        measured = [*self.metrics.values(), *([self.value] if self.value else [])]
        return list(dict.fromkeys([*of_origins, self.time.field, *measured, *self.attributes.values()]))

    @property
    def origins(self) -> list[tuple[str, Origin]]:
        """The texts that come from somewhere, by setting."""
        return [(key, origin) for key in ("device", "zone", "metric", "unit") if (origin := getattr(self, key))]
