"""Settings of the section `sinks` of pipeline.yml. They declare and check; orchestration/connectors/sinks sends the rows."""

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from expectations.settings import Flag, OrAbsent, PlainText, Problem, Setting, Text, UniqueSome, Whole, of_pattern
from orchestration.conf.channel_settings import AddressSettings, BrokerSettings
from orchestration.conf.secrets import Endpoint
from orchestration.conf.transport_settings import RegistrySettings
from orchestration.conf.values import WrittenPath

MART = re.compile("marts[.][a-z_][a-z0-9_]*")
BINARY = "silver.quarantine"
"""The one table of silver and gold that has a column of bytes."""
_NAME = "[a-z_][a-z0-9_]{0,62}"
TargetName = Annotated[str, of_pattern(f"^({_NAME}[.])?{_NAME}$", "write table or schema.table in lower case", 127)]
FunctionName = Annotated[
    str, of_pattern("^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$", "write module:function", 200)
]


@dataclass(frozen=True)
class PostgresSettings(Setting):
    """A table of a Postgres database, which Tidemark makes and keeps equal to the table of the lake: exactly once."""

    dsn: Endpoint = Field(examples=["${env:PG_DSN}"])
    """Connection string or URL, as libpq takes it. One with a password is named as `${env:NAME}` or `${file:PATH}`."""
    table: TargetName = Field(examples=["public.kitchen"])
    """Table to make; without a schema in `public`."""


@dataclass(frozen=True)
class FilesSettings(Setting):
    """A folder of files, partitioned by day: exactly once."""

    path: WrittenPath = Field(examples=["./export"])
    """Folder that holds only these files. A path as for `lake`."""
    format: Literal["parquet", "csv"] = "parquet"
    """Kind of the files; CSV has a header, and lists as JSON."""
    binary: OrAbsent[Literal["base64"]] = Field(default=None, examples=["base64"])
    """How CSV, which holds texts only, has bytes, such as the payloads of silver.quarantine."""

    def problems(self) -> Iterator[Problem]:
        if self.binary and self.format == "parquet":
            yield Problem(("binary",), "is for csv: Parquet has bytes as they are; remove it, or set `format: csv`")


@dataclass(frozen=True)
class WebhookSettings(AddressSettings):
    """An address that rows are posted to as JSON: at least once, a repeat under the same `Idempotency-Key`."""

    rows_per_request: Whole = Field(default=500, ge=1, le=100_000)
    """Largest number of rows in one request."""


@dataclass(frozen=True)
class TopicSettings(BrokerSettings):
    """A topic of Kafka: a message a row, under its key. Exactly once for consumers that read what is committed, or at least once."""

    format: Literal["json", "avro"] = "json"
    """Kind of the values; keys are JSON."""
    key: UniqueSome[Text] = Field(default=(), examples=[["day", "device_id"]])
    """Columns that identify a row of a mart. Leave it out for tables of silver and gold, which have a key."""
    transactional: Flag = True
    """Send each batch and its position in one transaction: exactly once. With false: at least once."""
    registry: OrAbsent[RegistrySettings] = Field(default=None, examples=[{"url": "http://registry:8081"}])
    """Schema registry of Avro; without one a value is in Avro's single-object encoding."""

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.registry and self.format == "json":
            yield Problem(("registry",), "is for avro, but format is json; remove it, or set `format: avro`")


@dataclass(frozen=True)
class SinkSettings(Setting):
    """A table and the one place that its rows are sent to: set exactly one of `postgres`, `kafka`, `files`, `webhook` and `python`."""

    one_of: ClassVar[tuple[str, ...]] = ("postgres", "kafka", "files", "webhook", "python")
    table: PlainText = Field(examples=["gold.kitchen_aggregates"])
    """A table of silver, gold or marts. A table of gold is sent with the newest revision of each row."""
    postgres: OrAbsent[PostgresSettings] = Field(default=None, examples=[{"dsn": "${env:PG_DSN}", "table": "public.kitchen"}])
    """A table of a Postgres database."""
    kafka: OrAbsent[TopicSettings] = Field(default=None, examples=[{"servers": "broker-1:9092", "topic": "kitchen"}])
    """A topic of Kafka."""
    files: OrAbsent[FilesSettings] = Field(default=None, examples=[{"path": "./export", "format": "parquet"}])
    """A folder of files."""
    webhook: OrAbsent[WebhookSettings] = Field(default=None, examples=[{"url": "${env:URL}", "rows_per_request": 500}])
    """An HTTP address."""
    python: OrAbsent[FunctionName] = Field(default=None, examples=["plant_export:receive"])
    """A function of yours, called with an Arrow table and a `Batch`: at least once. The module may lie beside the conf folder."""

    def problems(self) -> Iterator[Problem]:
        is_mart = MART.fullmatch(self.table) is not None
        if self.kafka and is_mart and not self.kafka.key:
            yield Problem(("kafka",), "has no key; name the columns that tell rows of the mart apart")
        if self.kafka and self.kafka.key and not is_mart:
            yield Problem(("kafka", "key"), "is for marts; remove it")
        if self.table == BINARY and self.files and self.files.format == "csv" and not self.files.binary:
            yield Problem(("files",), "is of CSV, which cannot hold the bytes of payload; set `binary: base64`, or `format: parquet`")

    @property
    def target(self) -> str:
        """Name the target in one text, without anything that may be a secret."""
        if self.postgres:
            return f"postgres {self.postgres.table}"
        if self.kafka:
            return f"kafka {self.kafka.topic}"
        if self.files:
            return f"{self.files.format} files {self.files.path}"
        return "webhook" if self.webhook else f"python {self.python}"
