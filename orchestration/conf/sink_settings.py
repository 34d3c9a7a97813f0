"""Settings of section `sinks` of pipeline.yml."""

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from orchestration.conf.secrets import Secret
from orchestration.conf.values import PLAIN, OrAbsent, PlainText, Setting, Text, Whole, of_pattern

_NAME = "[a-z_][a-z0-9_]{0,62}"
TargetName = Annotated[str, of_pattern(f"^({_NAME}[.])?{_NAME}$", "write table or schema.table in lower case", 127)]
FunctionName = Annotated[
    str, of_pattern("^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$", "write module:function", 200)
]


Endpoint = Annotated[
    str,
    Field(
        strict=True,
        max_length=1000,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        json_schema_extra={
            "patternErrorMessage": PLAIN,
            "writeOnly": True,
        },  # it may be one that should be a reference: no message shows it
    ),
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

    path: Text = Field(examples=["./export"])
    """Folder for the files alone. A path as for `lake`."""
    format: Literal["parquet", "csv"] = "parquet"
    """Kind of the files; CSV has a header, and lists as JSON."""


@dataclass(frozen=True)
class WebhookSettings(Setting):
    """An address that rows are posted to as JSON: at least once, a repeat under the same `Idempotency-Key`."""

    url: Endpoint = Field(examples=["${env:URL}", "https://plant.example/rows"])
    """Address that begins with https:// or http://. One that holds a secret is named as `${env:NAME}` or `${file:PATH}`."""
    token: OrAbsent[Secret] = Field(default=None, examples=["${env:TOKEN}"])
    """Sent as `Authorization: Bearer`."""
    rows_per_request: Whole = Field(default=500, ge=1, le=100_000)
    """Most rows of one request."""


@dataclass(frozen=True)
class SinkSettings(Setting):
    """A table and the one place that its rows are sent to: set exactly one of `postgres`, `files`, `webhook` and `python`."""

    table: PlainText = Field(examples=["gold.kitchen_aggregates"])
    """A table of silver, gold or marts. Of gold the newest revision of each row is sent."""
    postgres: OrAbsent[PostgresSettings] = Field(default=None, examples=[{"dsn": "${env:PG_DSN}", "table": "public.kitchen"}])
    """A table of a Postgres database."""
    files: OrAbsent[FilesSettings] = Field(default=None, examples=[{"path": "./export", "format": "parquet"}])
    """A folder of files."""
    webhook: OrAbsent[WebhookSettings] = Field(default=None, examples=[{"url": "${env:URL}", "rows_per_request": 500}])
    """An address."""
    python: OrAbsent[FunctionName] = Field(default=None, examples=["plant_export:receive"])
    """A function of yours, called with an Arrow table and a `Batch`: at least once. The module may lie beside the conf folder."""

    @property
    def target(self) -> str:
        """Where rows go, without what may be a secret."""
        if self.postgres:
            return f"postgres {self.postgres.table}"
        if self.files:
            return f"{self.files.format} files {self.files.path}"
        return "webhook" if self.webhook else f"python {self.python}"
