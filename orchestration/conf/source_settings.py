"""Settings of sources.yml."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from expectations.settings import (
    CONFIG,
    Flag,
    Identifier,
    Key,
    Number,
    OrAbsent,
    PlainText,
    Problem,
    Setting,
    Text,
    UniqueSome,
    Whole,
    of_pattern,
    problems_of_zone,
)
from expectations.wording import quoted
from orchestration.conf.text_encoding import Encoding
from orchestration.conf.transport_settings import (
    DeltaSettings,
    HttpSettings,
    KafkaSettings,
    KinesisSettings,
    LandingFolder,
    MqttSettings,
    RegistrySettings,
    S3Settings,
    TcpSettings,
    Transport,
)
from orchestration.conf.values import AbsolutePath, OfText, expression
from silver.spec import ELEMENT

_PATH = "Dotted path of a field, or name of a CSV column. With `each`, a path that begins with `each.` begins at the element of the list."
Separator = Annotated[str, of_pattern(r"^[^\r\n\x00]$", "write one character, no line end", 1, 1)]
Quote = Annotated[
    str, of_pattern(r"^[!-/:-@\[-`{-~\u00a1-\uffff]$", "write one character that is no letter, digit, blank or picture", 1, 1)
]
MeasuredField = Annotated[Text, Field(description=_PATH, examples=["data.temp"])]


def _fields_of_names(written: Any, info: ValidationInfo) -> Any:
    """A list names metrics whose fields have the same names: those of the elements, where the source has a list of them."""
    if not isinstance(written, list) or not written or not all(isinstance(name, str) for name in written):
        return written
    if len(set(written)) < len(written):
        raise PydanticCustomError("twice", "names a metric twice")
    return {name: f"{ELEMENT if info.data.get('each') else ''}{name}" for name in written}


def _with_group(_: Path, text: str) -> str:
    if not re.compile(expression(_, text)).groups:
        raise ValueError(f"is {quoted(text)}, which has no group; put ( ) around the part to take, for example '^(.+)\\.txt$'")
    return text


_Fields = Annotated[dict[Key, MeasuredField], Field(min_length=1)]
MeasuredFields = Annotated[_Fields, BeforeValidator(_fields_of_names, json_schema_input_type=_Fields | UniqueSome[Key])]


@dataclass(frozen=True, config=ConfigDict(**CONFIG, json_schema_extra={"minProperties": 1, "maxProperties": 1}))
class OriginSettings(Setting):
    """The origin of a text; set exactly one of these."""

    one_of: ClassVar[tuple[str, ...]] = ("field", "constant", "file_name", "topic")
    field: OrAbsent[Text] = Field(default=None, examples=["device"], description=_PATH)
    constant: OrAbsent[Text] = Field(default=None, examples=["oven-01"])
    """The same text for every event of this source."""
    file_name: OrAbsent[Annotated[str, OfText(_with_group)]] = Field(default=None, examples=[r"^(.+)\.txt$"])
    """Regular expression on the path of the file below the landing folder, with s3 on bucket/key@version; its first group is the text."""
    topic: OrAbsent[Annotated[Whole, Field(ge=1, le=200)]] = Field(default=None, examples=[2])
    """MQTT and Kafka: a level of the topic, the first is 1. The levels of MQTT have `/` between them; a topic of Kafka is one level."""


@dataclass(frozen=True)
class TimeSettings(Setting):
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
class ValueSettings(Setting):
    """The number of a long row."""

    field: Text = Field(examples=["value"], description=_PATH)


@dataclass(frozen=True, kw_only=True)
class SourceSettings(Setting):
    """How events come, by exactly one of path, kafka, s3, delta, http, tcp, mqtt and kinesis; and how their payloads are read."""

    one_of: ClassVar[tuple[str, ...]] = ("path", "kafka", "s3", "delta", "http", "tcp", "mqtt", "kinesis")
    format: Literal["json", "csv", "parquet", "avro", "protobuf", "sparkplug_b"] = Field(examples=["json"])
    """`json`: one object a line. `csv`: one row a line. Files that end in .gz are unpacked. `parquet`, with path and s3: a row of a Parquet
    file is read as a JSON object. `avro`, `protobuf` and `sparkplug_b`: one message an event, not from files."""
    device: OriginSettings = Field(examples=[{"field": "device"}])
    """Which device measured."""
    time: TimeSettings = Field(examples=[{"field": "ts"}])
    """When it was measured."""
    path: OrAbsent[AbsolutePath] = Field(default=None, examples=["./landing"])
    """Landing folder. A relative path starts at the parent of the conf folder; ~ and ${VARIABLE} expand."""
    kafka: OrAbsent[KafkaSettings] = Field(default=None, examples=[{"servers": "broker-1:9092", "subscribe": ["readings"]}])
    """Topics of Kafka: a message is an event."""
    s3: OrAbsent[S3Settings] = Field(default=None, examples=[{"bucket": "plant-events", "prefix": "readings/"}])
    """Objects of an S3-compatible store, read as files are."""
    delta: OrAbsent[DeltaSettings] = Field(default=None, examples=[{"table": "/data/warehouse/readings"}])
    """A Delta table of somebody else: a row that is added is an event, as a JSON object."""
    http: OrAbsent[HttpSettings] = Field(default=None, examples=[{"port": 8080}])
    """Events come by `POST /events` to `tidemark collect`."""
    tcp: OrAbsent[TcpSettings] = Field(default=None, examples=[{"port": 9000}])
    """Events come over TCP connections to `tidemark collect`."""
    mqtt: OrAbsent[MqttSettings] = Field(default=None, examples=[{"broker": "broker-1:1883", "topics": ["plant/+/+"]}])
    """`tidemark collect` takes the messages of an MQTT broker: each is an event."""
    kinesis: OrAbsent[KinesisSettings] = Field(default=None, examples=[{"stream": "plant-events"}])
    """`tidemark collect` takes the records of a Kinesis stream: each is an event."""
    files: Text = Field(default=LandingFolder.files, examples=["*", "*.json"])
    """With path: glob on the names of the files to read."""
    settle_seconds: Number = Field(default=LandingFolder.settle_seconds, ge=0, le=86_400)
    """With path: a file is read once it has not changed for this long."""
    paused: Flag = Field(default=False, examples=[True])
    """Bronze reads nothing of it until this is gone, and nothing is lost: files stay in their folder, messages with their brokers,
    and `tidemark collect` goes on to spool what is pushed."""
    zone: OrAbsent[OriginSettings] = Field(default=None, examples=[{"field": "zone"}])
    """The zone of the measurement; else the zone of the device in devices.yml."""
    metric: OrAbsent[OriginSettings] = Field(default=None, examples=[{"field": "metric"}])
    """Long rows (one measurement each): which metric it is."""
    value: OrAbsent[ValueSettings] = Field(default=None, examples=[{"field": "value"}])
    """Long rows: the number."""
    unit: OrAbsent[OriginSettings] = Field(default=None, examples=[{"field": "unit"}])
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
    schema: OrAbsent[AbsolutePath] = Field(default=None, examples=["./schemas/reading.avsc"])
    """Avro and Protobuf: the file of the schema, .avsc, .proto, or a descriptor set that protoc wrote with --include_imports. A relative
    path starts at the parent of the conf folder."""
    message: OrAbsent[Text] = Field(default=None, examples=["plant.Reading"])
    """Protobuf with a schema file: full name of the message."""
    registry: OrAbsent[RegistrySettings] = Field(default=None, examples=[{"url": "https://registry:8081"}])
    """Avro and Protobuf: where the schemas are, instead of a file."""
    header: Flag = Field(default=False, examples=[True])
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

    @property
    def origins(self) -> list[tuple[str, OriginSettings]]:
        """The texts that come from somewhere, by setting."""
        return [(key, origin) for key in ("device", "zone", "metric", "unit") if (origin := getattr(self, key))]

    @property
    def transport(self) -> Transport:
        """How events come: by the way that is set."""
        of_others: Transport = getattr(self, self.chosen[0])
        return LandingFolder(self.path, self.files, self.settle_seconds) if self.path else of_others


@dataclass(frozen=True)
class SourcesFile(Setting):
    """Sources of events, and how their payloads are read."""

    sources: dict[Identifier, SourceSettings] = Field(min_length=1, examples=[{"plant": {"path": "./landing"}}])
    """Sources by name; the name is stored with every event."""
