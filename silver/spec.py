"""How the payloads of sources.yml are read: frozen, free of Spark."""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, SerializerFunctionWrapHandler, ValidationInfo, WrapSerializer, model_validator
from pydantic.dataclasses import dataclass

from expectations.settings import (
    CONFIG,
    Flag,
    Hidden,
    Key,
    OrAbsent,
    PlainText,
    Problem,
    Setting,
    Text,
    UniqueSome,
    Whole,
    problems_of_zone,
)
from silver.paths import Paths
from silver.short_forms import PATH, CommentMarks, Decoders, MeasuredField, MeasuredFields, Pattern, Quote, Separator
from silver.text_encoding import Encoding

BINARY = ("avro", "protobuf", "sparkplug_b")
"""Formats whose payloads are no text, and not divided by line ends."""
NO_TEXT = (*BINARY, "gzip", "confluent")
"""Decoders, or formats, whose payloads are no text."""
DECLARED = "declared"
"""In `PayloadFormat.schemas`, that of all payloads of a source without a registry."""
ORIGINS = ("field", "fields", "payload", "key", "header", "topic", "file_name", "constant")
_ONE_ORIGIN: list[Any] = [{"required": [key]} for key in ORIGINS]


@dataclass(frozen=True, config=ConfigDict(**CONFIG, json_schema_extra={"oneOf": _ONE_ORIGIN}))
class Locator(Setting):
    """The source of a text; set exactly one of `field`, `fields`, `payload`, `key`, `header`, `topic`, `file_name` and `constant`."""

    one_of: ClassVar[tuple[str, ...]] = ORIGINS
    field: OrAbsent[Text] = Field(default=None, examples=["device"], description=PATH)
    fields: UniqueSome[Text] = Field(default=(), kw_only=True, examples=[["Date", "Time"]])
    """Fields whose texts are joined by a blank; all of them have to be there."""
    payload: OrAbsent[Literal[True]] = Field(default=None, kw_only=True, examples=[True])
    """The whole payload as it came, as a text."""
    key: OrAbsent[Literal[True]] = Field(default=None, kw_only=True, examples=[True])
    """Kafka: the key of the message, a text in UTF-8."""
    header: OrAbsent[Text] = Field(default=None, kw_only=True, examples=["ce_subject"])
    """Kafka: a header of the message, a text in UTF-8; of several with this name the last."""
    topic: OrAbsent[Annotated[Whole, Field(ge=1, le=200)]] = Field(default=None, kw_only=True, examples=[2])
    """MQTT and Kafka: a level of the topic, the first is 1. The levels of MQTT have `/` between them; a topic of Kafka is one level."""
    file_name: OrAbsent[Pattern] = Field(default=None, kw_only=True, examples=[r"^(.+)\.txt$"])
    """Regular expression on the path of the file below the landing folder, with s3 on bucket/key@version; its first group is the text."""
    constant: OrAbsent[Text] = Field(default=None, kw_only=True, examples=["oven-01"])
    """The same text for every event of this source."""
    match: OrAbsent[Pattern] = Field(default=None, kw_only=True, examples=[r"Channel\d+\.(\w+)\."])
    """Regular expression on that text; its first group is taken. A text in which it is not found counts as none, and the measurement is
    quarantined where it needs one."""

    def problems(self) -> Iterator[Problem]:
        own = next((key for key in ("file_name", "constant", "arrival") if getattr(self, key, None)), None)
        if self.match and own:
            yield Problem(
                ("match",), "is set, but file_name is a pattern itself; remove it" if own == "file_name" else f"is not for {own}; remove it"
            )

    @property
    def parts(self) -> tuple[str, ...]:
        """The fields that hold it; none if it is elsewhere."""
        return (self.field,) if self.field else self.fields


@dataclass(frozen=True, config=ConfigDict(**CONFIG, json_schema_extra={"oneOf": _ONE_ORIGIN}))
class Origin(Locator):
    """The source of a text, and another one; set exactly one of `field`, `fields`, `payload`, `key`, `header`, `topic`, `file_name` and
    `constant`."""

    otherwise: OrAbsent[Locator] = Field(default=None, kw_only=True, examples=[{"field": "ts"}])
    """Another source of the text, for events that have none here."""

    @property
    def locators(self) -> tuple[Locator, ...]:
        """This one, and the other one."""
        return (self, self.otherwise) if self.otherwise else (self,)

    @property
    def plain_field(self) -> str | None:
        """The field, if nothing is done to what stands there."""
        return self.field if self.field and self == Origin(self.field) else None


_ONE_TIME: list[Any] = [*_ONE_ORIGIN, {"required": ["arrival"]}]


@dataclass(frozen=True, config=ConfigDict(**CONFIG, json_schema_extra={"oneOf": _ONE_TIME}))
class Time(Origin):
    """When a measurement was made: the source of a text, as for the device, or `arrival`; and how it is written."""

    one_of: ClassVar[tuple[str, ...]] = (*ORIGINS, "arrival")
    field: OrAbsent[Text] = Field(default=None, examples=["ts"], description=PATH)
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
    arrival: OrAbsent[Literal[True]] = Field(default=None, examples=[True])
    """The time is when the source received the message, `received_at` of bronze: for devices that send no time."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        yield from problems_of_zone("time_zone", self.time_zone)


def _value(written: Any, info: ValidationInfo) -> Any:
    """Python may write the field alone, and so do files of earlier lakes."""
    return {"field": written} if isinstance(written, str) and info.context is None else written


def _plain_value(value: Origin, to_plain: SerializerFunctionWrapHandler) -> Any:
    """The field alone, as earlier versions wrote it into lakes: nothing has changed then."""
    return value.plain_field or to_plain(value)


Value = Annotated[Origin, BeforeValidator(_value, json_schema_input_type=Origin), WrapSerializer(_plain_value)]


@dataclass(frozen=True)
class Registry(Setting):
    """A schema registry with Confluent's interface. `username` may be a reference, and `password` is one, never the secret."""

    url: str
    username: str | None = None
    password: str | None = None


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
    value: OrAbsent[Value] = Field(default=None, examples=[{"field": "value"}])
    """Long rows: the number. Words of the metric and `not_measured` are those of the text that `match` takes."""
    unit: OrAbsent[Origin] = Field(default=None, examples=[{"field": "unit"}])
    """Long rows: the unit of the number; metrics.yml says how to convert it."""
    id: OrAbsent[Origin] = Field(default=None, examples=[{"field": "uplink_message.f_cnt"}])
    """The identity of a message that may come again. A message of the same device with the same id and a time at most `lateness_seconds`
    apart is a repeat, whatever time it says: its measurements are duplicates."""
    each: OrAbsent[Text] = Field(default=None, examples=["readings"])
    """All but CSV: path of a list with one measurement (or one wide row) an element; of a list in lists `gateways.*.readings`, and of an
    object whose keys are names `sensors.*`."""
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
    base64 whose last file declares the message. Sparkplug B: births by the id that a header of the event has."""

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
        return self.format in BINARY or bool(self.decode) or self.paths.have_marks

    @cached_property
    def paths(self) -> Paths:
        """The paths of fields. Marks are for decoders, which read UTF-8, and not for names of columns."""
        return Paths(self.fields, self.each, self.format != "csv" and self.encoding == "utf-8")

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
    def beside(self) -> frozenset[str]:
        """Columns of bronze that say, beside payload and header, what an event means. Decoders may ask for all."""
        if self.decode:
            return frozenset({"position", "key", "headers", "received_at"})
        locators = [locator for _, locator in self.locators]
        is_read = {
            "position": any(locator.file_name or locator.topic for locator in locators),
            "key": any(locator.key for locator in locators),
            "headers": any(locator.header for locator in locators) or self.has_own_headers,
            "received_at": self.time.arrival,
        }
        return frozenset(name for name, is_it in is_read.items() if is_it)

    @property
    def has_own_headers(self) -> bool:
        """Whether bronze says in headers of its own how events are read."""
        return self.time.repeated_hour == "in_order" or self.id is not None or self.format == "sparkplug_b"

    @property
    def has_kept_schemas(self) -> bool:
        """Whether `schemas` are in the lake: those of a registry, or births of Sparkplug B."""
        return self.registry is not None or self.written_in == "sparkplug_b"

    @property
    def fields(self) -> list[str]:
        of_locators = [field for _, locator in self.locators for field in locator.parts]
        return list(dict.fromkeys([*of_locators, *self.metrics.values(), *self.attributes.values()]))

    @property
    def header_field(self) -> str:
        """The field by whose name a header that comes again is known."""
        return next(iter(self.time.parts or self.fields), "")

    @property
    def locators(self) -> list[tuple[tuple[str, ...], Locator]]:
        """The sources of texts, by setting."""
        origins = [(key, origin) for key in ("device", "zone", "metric", "unit", "time", "value", "id") if (origin := getattr(self, key))]
        return [((key, "otherwise")[: n + 1], locator) for key, origin in origins for n, locator in enumerate(origin.locators)]
