"""How the payloads of sources.yml are read: frozen, free of Spark."""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, ValidationInfo, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from expectations.settings import (
    CONFIG,
    Flag,
    Hidden,
    Key,
    Names,
    OrAbsent,
    PlainText,
    Problem,
    Setting,
    Some,
    Text,
    UniqueSome,
    Whole,
    expression,
    of_pattern,
    problems_of_zone,
    unreadable,
)
from expectations.wording import quoted
from silver.text_encoding import Encoding

BINARY = ("avro", "protobuf", "sparkplug_b")
"""Formats whose payloads are no text, and not divided by line ends."""
NO_TEXT = (*BINARY, "gzip", "confluent")
"""Decoders, or formats, whose payloads are no text."""
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


_ONE_TIME: list[Any] = [{"required": ["field"]}, {"required": ["fields"]}, {"required": ["arrival"]}]


@dataclass(frozen=True, config=ConfigDict(**CONFIG, json_schema_extra={"oneOf": _ONE_TIME}))
class Time(Setting):
    """When a measurement was made; set exactly one of `field`, `fields` and `arrival`."""

    one_of: ClassVar[tuple[str, ...]] = ("field", "fields", "arrival")
    field: OrAbsent[Text] = Field(default=None, examples=["ts"], description=_PATH)
    format: Annotated[PlainText, Field(min_length=1, max_length=200)] = Field(
        default="iso", examples=["iso", "epoch_s", "epoch_ms", "epoch_us", "epoch_ns", "filetime", "excel", "dd/MM/yyyy HH:mm:ss"]
    )
    """`iso`, `epoch_s`, `epoch_ms`, `epoch_us`, `epoch_ns`, `filetime` (100 ns since 1601, as Windows counts), `excel` (days of a
    spreadsheet), or a Spark datetime pattern such as `dd/MM/yyyy HH:mm:ss`."""
    time_zone: Text = Field(default="UTC", examples=["UTC", "Europe/Brussels"])
    """IANA name of the zone of times that name none themselves."""
    repeated_hour: OrAbsent[Literal["first", "second", "in_order"]] = Field(default=None, examples=["first"])
    """Which of the two a local time is that comes twice, when summer time ends; `in_order`, for files: the order of rows says it. Then a
    time that is skipped, when it begins, is read too. Without this, rows with such times are quarantined."""
    fields: UniqueSome[Text] = Field(default=(), examples=[["Date", "Time"]])
    """Fields that are joined by a blank before `format` reads them."""
    arrival: OrAbsent[Literal[True]] = Field(default=None, examples=[True])
    """The time is when the source received the message, `received_at` of bronze: for devices that send no time."""

    def problems(self) -> Iterator[Problem]:
        yield from problems_of_zone("time_zone", self.time_zone)

    @property
    def parts(self) -> tuple[str, ...]:
        """The fields that hold the time; none if it is the arrival."""
        return (self.field,) if self.field else self.fields

    @property
    def is_beside_payload(self) -> bool:
        """Whether bronze has the time, or a part of it, beside the payload."""
        return self.arrival is True or self.repeated_hour == "in_order"


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

_Marks = UniqueSome[Text]
CommentMarks = Annotated[
    _Marks, BeforeValidator(lambda written: [written] if isinstance(written, str) else written, json_schema_input_type=Text | _Marks)
]


def _decoders(written: Any) -> Any:
    """A decoder alone is a list of one."""
    steps = written if isinstance(written, list | tuple) else [written]
    for step in steps:
        is_named = isinstance(step, dict) and len(step) == 1 and all(isinstance(argument, str | dict) for argument in step.values())
        if not is_named and not isinstance(step, str):
            raise unreadable(f"has {quoted(step)}; write the name of a decoder, `name: field`, or `name: {{argument: value}}`")
    return steps


_Decoder = Text | Annotated[dict[Text, Any], Field(min_length=1, max_length=1)]
Decoders = Annotated[
    tuple[Any, ...], Field(max_length=10), BeforeValidator(_decoders, json_schema_input_type=_Decoder | UniqueSome[_Decoder])
]


@dataclass(frozen=True)
class PayloadFormat(Setting):
    """How the payload of one source is read. Upper and lower case are alike in `not_measured` and `words`."""

    may_lack: ClassVar[dict[str, str]] = {"format": "decode"}
    """Required, unless the other one is set."""
    format: Literal["json", "csv", "parquet", "avro", "protobuf", "sparkplug_b"] = Field(examples=["json"])
    """`json`: one object a line. `csv`: one row a line. Files that end in .gz are unpacked. `parquet`, with path and s3: a row of a Parquet
    file is read as a JSON object. `avro`, `protobuf` and `sparkplug_b`: one message an event, not from files. Required without `decode`."""
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
    decode: Decoders = Field(default=(), examples=["senml", [{"base64": "Body"}, "senml"]])
    """Decoders of the payload, in order; fields are those of the objects that they make. Each is a name, `name: field`, or `name` with its
    arguments. `module:function` is one of your own, in module.py of the conf folder. With decoders, `format` may be left out."""
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
    decimal: Literal[".", ","] = Field(default=".", examples=[","])
    """The mark before the fraction of a number that is a text, as all of CSV are."""
    thousands: OrAbsent[Literal[".", ",", "'", " "]] = Field(default=None, examples=["."])
    """The mark between groups of three digits of such a number, which may stand there or not; a number with other marks is none."""
    skip_lines: Annotated[Whole, Field(ge=0, le=900)] = Field(default=0, examples=[3])
    """CSV files: how many lines stand before the header, or before the first row where there is none."""
    comment: CommentMarks = Field(default=(), examples=["#", ["#", "Total", "$RT_"]])
    """CSV: how lines begin that are no rows, such as comments and footers; before the header too."""
    ragged: Flag = Field(default=False, examples=[True])
    """CSV: whether a row may lack values at its end, or have empty ones more; else it is unreadable."""
    words: Hidden[dict[str, dict[str, float]]] = Field(default_factory=dict)
    """Texts that stand for a value, such as `on` for 1, by metric."""
    schemas: Hidden[dict[str, tuple[str, ...]]] = Field(default_factory=dict)
    """Schemas that payloads are written by: under DECLARED, or with a registry by the id that a payload begins with; no text at all where
    nobody knows the schema of this id. Avro: texts in JSON, those that a schema needs before it. Protobuf: one text, a FileDescriptorSet in
    base64 whose last file declares the message."""

    code: Hidden[dict[str, str]] = Field(default_factory=dict)
    """The source of each module of the user's that `decode` names."""

    def may_bring(self, metric: str) -> bool:
        """Whether it may bring readings of a metric: of wide rows conf names each; of long rows only the events do, unless it is one."""
        if self.metrics:
            return metric in self.metrics
        return self.metric is None or self.metric.constant in {None, metric}

    @model_validator(mode="before")
    @classmethod
    def _with_format(cls, written: Any) -> Any:
        """Objects of decoders are read as JSON."""
        is_decoded = isinstance(written, dict) and written.get("decode") and "format" not in written
        return written | {"format": "json"} if is_decoded else written

    @property
    def is_decoded(self) -> bool:
        """Whether decoders read the payloads."""
        return self.format in BINARY or bool(self.decode)

    @property
    def written_in(self) -> str:
        """One of BINARY, if payloads or what decoders make of them are written in it; else `format`."""
        return next((name for name in self.decode if isinstance(name, str) and name in BINARY), self.format)

    @property
    def is_binary(self) -> bool:
        """Whether payloads are no text, and hold line feeds."""
        first = self.decode[0] if self.decode else self.format
        return first in NO_TEXT if isinstance(first, str) else False

    @property
    def is_read_by_all(self) -> bool:
        """Whether what an event means may depend on all that came with it: decoders may ask for key, headers, topic and arrival."""
        return bool(self.decode)

    @property
    def is_read_by_position(self) -> bool:
        """Whether what an event means depends on the name of its file, or on its topic."""
        return self.is_read_by_all or any(origin.file_name is not None or origin.topic is not None for _, origin in self.origins)

    @property
    def fields(self) -> list[str]:
        of_origins = [origin.field for _, origin in self.origins if origin.field is not None]
        measured = [*self.metrics.values(), *([self.value] if self.value else [])]
        return list(dict.fromkeys([*of_origins, *self.time.parts, *measured, *self.attributes.values()]))

    @property
    def header_field(self) -> str:
        """The field by whose name a header that comes again is known."""
        return next(iter((*self.time.parts, *self.fields)), "")

    @property
    def origins(self) -> list[tuple[str, Origin]]:
        """The texts that come from somewhere, by setting."""
        return [(key, origin) for key in ("device", "zone", "metric", "unit") if (origin := getattr(self, key))]
