"""Settings of sources.yml: how events come. How their payloads are read is declared in silver/spec.py."""

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, ValidationInfo, model_validator
from pydantic.dataclasses import dataclass
from pydantic.json_schema import SkipJsonSchema

from expectations.settings import NAME, Flag, Identifier, Number, OrAbsent, Seconds, Setting, Text
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
from orchestration.conf.values import AbsolutePath
from silver.spec import PayloadFormat

CODE = f"{NAME}code"
MODULE = re.compile(r"([A-Za-z_]\w*):.*")


@dataclass(frozen=True, kw_only=True)
class Ways(Setting):
    """How events come, by exactly one of path, kafka, s3, delta, http, tcp, mqtt and kinesis."""

    one_of: ClassVar[tuple[str, ...]] = ("path", "kafka", "s3", "delta", "http", "tcp", "mqtt", "kinesis")
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

    @property
    def transport(self) -> Transport:
        """How events come: by the way that is set."""
        of_others: Transport = getattr(self, self.chosen[0])
        return LandingFolder(self.path, self.files, self.settle_seconds) if self.path else of_others


@dataclass(frozen=True, kw_only=True)
class SourceSettings(PayloadFormat, Ways):
    """How events come, by exactly one of path, kafka, s3, delta, http, tcp, mqtt and kinesis; and how their payloads are read."""

    schema: OrAbsent[AbsolutePath] = Field(default=None, examples=["./schemas/reading.avsc"])
    """Avro and Protobuf: the file of the schema, .avsc, .proto, or a descriptor set that protoc wrote with --include_imports. A relative
    path starts at the parent of the conf folder."""
    lateness_seconds: OrAbsent[Seconds] = Field(default=None, ge=0, examples=[3600])
    """How long a reading may arrive after a newer one and still count. Sources with equal bounds are a lane, with a watermark of their own:
    what comes by one lane makes nothing late that comes by another. Absent: that of the policy."""
    ahead_seconds: OrAbsent[Seconds] = Field(default=None, ge=0, examples=[172_800])
    """An event time further than this beyond its arrival is quarantined; more for values that are known beforehand, such as prices of the
    next day. Absent: `max_future_seconds` of the policy."""
    code: Annotated[SkipJsonSchema[dict[str, str]], Field(validation_alias=CODE)] = Field(default_factory=dict)
    """The sources of the modules in the conf folder that `decode` names."""
    registry: OrAbsent[RegistrySettings] = Field(default=None, examples=[{"url": "https://registry:8081"}])

    @model_validator(mode="before")
    @classmethod
    def _with_code(cls, written: Any, info: ValidationInfo) -> Any:
        """Beside conf as it is now: workers and replays take the sources from here."""
        if not isinstance(written, dict) or info.context is None:
            return written
        return written | {CODE: _code_of(written.get("decode"), info.context)}


@dataclass(frozen=True)
class SourcesFile(Setting):
    """Sources of events, and how their payloads are read."""

    sources: dict[Identifier, SourceSettings] = Field(min_length=1, examples=[{"plant": {"path": "./landing"}}])
    """Sources by name; the name is stored with every event."""


def _code_of(decode: Any, folder: Path) -> dict[str, str]:
    """Read the module of each decoder `module:function`; one that cannot be read is left out."""
    steps = decode if isinstance(decode, list) else [decode]
    names = [next(iter(step), "") if isinstance(step, dict) else step for step in steps]
    modules = [match[1] for name in names if isinstance(name, str) and (match := MODULE.fullmatch(name))]
    files = {module: folder / f"{module}.py" for module in modules}
    return {module: file.read_text(encoding="utf-8", errors="replace") for module, file in files.items() if file.is_file()}
