"""Settings of pipeline.yml."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from cronsim import CronSim, CronSimError
from pydantic import Field
from pydantic.dataclasses import dataclass

from expectations.settings import (
    ChannelName,
    GroupName,
    Identifier,
    Number,
    OrAbsent,
    PlainText,
    Problem,
    Setting,
    Text,
    Unique,
    Whole,
    of_pattern,
    problems_of_zone,
)
from expectations.wording import quoted
from orchestration.conf.place import absolute
from orchestration.conf.reference_tables import ReferenceSettings
from orchestration.conf.secrets import Secret
from orchestration.conf.sink_settings import SinkSettings
from orchestration.conf.spark_options import problems_of_settings
from orchestration.conf.store_settings import StoreSettings
from orchestration.conf.transport_settings import Port
from orchestration.conf.values import AbsolutePath, Instant, LakePath, OfText, is_loopback
from silver.policy import Policy

Memory = Annotated[str, of_pattern("^[1-9][0-9]{0,5}[mgMG]$", "write digits and m or g", None)]
Address = Annotated[str, of_pattern(r"^https?://[^\s\x00-\x1f\x7f]+$", "write an address that begins with https:// or http://", 2000)]
MASTER = r"^(yarn|(spark|k8s)://[^\s\x00-\x1f\x7f]+|local-cluster\[[0-9]+,[0-9]+,[0-9]+\])$"
Master = Annotated[str, of_pattern(MASTER, "write spark://HOST:PORT, k8s://ADDRESS or yarn", 2000)]
SparkName = Annotated[str, of_pattern(r"^spark\.[A-Za-z0-9._#/-]+$", "begin it with spark.", 200)]
PipelineName = Annotated[str, of_pattern("^[a-z][a-z0-9_-]*$", "use lower-case letters, digits, _ and -, a letter first", 64)]


def _schedule(_: Path, text: str) -> str:
    try:
        CronSim(text, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        remedy = "write minute, hour, day of month, month and day of week, such as '15 3 * * *'"
        raise ValueError(f"is {quoted(text)}, which is no schedule: {str(error).lower()}; {remedy}") from None
    return text


Schedule = Annotated[str, OfText(_schedule)]


def heap_bytes(memory: str) -> int:
    """Bytes of a `Memory`: digits and m or g."""
    return int(memory[:-1]) << {"m": 20, "g": 30}[memory[-1].lower()]


def _result_file(folder: Path, text: str) -> Path:
    if Path(text).suffix not in RESULTS:
        raise ValueError(f"is {quoted(text)}, whose name does not say the file format; end it with {' or '.join(RESULTS)}")
    return absolute(folder, text)


LEAST_DRIVER_MEGABYTES = 512
"""Spark refuses to start with less than about 450 MB."""
RESULTS = (".csv", ".json", ".parquet")
ResultFile = Annotated[Path, OfText(_result_file)]
Query = Annotated[str, Field(strict=True, min_length=1, max_length=100_000)]


class GateMode(StrEnum):
    """Consequence of a failed critical expectation of a table: nothing; a warning; gold does not read what has not passed."""

    OFF = "off"
    WARN = "warn"
    HOLD = "hold"


@dataclass(frozen=True)
class Engine(Setting):
    """How Spark runs. Nothing here changes a result; leave a key out to keep its default."""

    driver_memory: Memory | None = Field(default=None, examples=["2g", "1500m"])
    """Heap of the Spark process: digits and m or g, at least 512m. Absent or null: a quarter of the machine's memory, 2g at least and 6g at
    most, of which it takes 2g at first and more when it needs more."""
    cores: Whole = Field(default=2, ge=1, le=1024)
    """Processor cores of this machine that may be used."""
    master: Master | None = Field(default=None, examples=["spark://head:7077", "yarn"])
    """The cluster whose machines run Spark's tasks; all of them see the lake's folder at the same path. Absent or null: this machine, or
    what spark-submit says."""
    settings: Mapping[SparkName, PlainText] = Field(default_factory=dict, examples=[{"spark.executor.memory": "4g"}])
    """Settings of Spark that a cluster needs, as texts: but for those that Tidemark sets, and secrets."""
    shuffle_partitions: Whole = Field(default=2, ge=1, le=10_000)
    """Partitions of state and shuffles; fixed for the life of a checkpoint."""
    state_store: Literal["heap", "rocksdb"] = "heap"
    """Store of open windows: the heap (faster), or RocksDB (when state outgrows the memory)."""
    trigger_seconds: Number = Field(default=5.0, ge=0, le=86_400)
    """Pause between micro-batches of `tidemark run`; 0 starts the next one at once."""
    max_batch_bytes: Whole = Field(default=268_435_456, ge=1_048_576, le=1_099_511_627_776)
    """About how much input one micro-batch takes, so that a backlog fits the memory."""

    def problems(self) -> Iterator[Problem]:
        if self.driver_memory is not None and heap_bytes(self.driver_memory) >> 20 < LEAST_DRIVER_MEGABYTES:
            text = f"is '{self.driver_memory.lower()}', with which Spark does not start; give it at least {LEAST_DRIVER_MEGABYTES}m"
            yield Problem(("driver_memory",), text)
        yield from problems_of_settings(self.settings)


@dataclass(frozen=True)
class Maintenance(Setting):
    """How the lake is kept small: small files become large ones, and expired snapshots and files that nobody can ask for are removed.

    Nothing here changes a result.
    """

    every_seconds: Number = Field(default=3_600.0, ge=0, le=31_536_000)
    """How often a running pipeline does it, in a pause of gold; 0: only `tidemark maintain` does."""
    retain_seconds: Number = Field(default=604_800.0, ge=3_600, le=3_153_600_000)
    """How long a snapshot can be queried after the next one was taken. The newest snapshot always can."""
    least_free_bytes: Whole = Field(default=2_147_483_648, ge=33_554_432, le=1_125_899_906_842_624)
    """Free space of a disk below which it is in the list of what is wrong. Below a 32nd of it (64 MiB by default) the disk counts as full:
    `tidemark up` starts nothing but the collector."""


@dataclass(frozen=True)
class Reference(Setting):
    """The time that drift is measured against: instants in ISO 8601, UTC where they name no zone."""

    from_at: Instant = Field(validation_alias="from", serialization_alias="from", examples=["2026-01-05T00:00:00Z"])
    """First instant."""
    until_at: Instant = Field(validation_alias="until", serialization_alias="until", examples=["2026-01-12T00:00:00Z"])
    """First instant after it."""

    def problems(self) -> Iterator[Problem]:
        if self.from_at >= self.until_at:
            first, end = (at.isoformat().replace("+00:00", "Z") for at in (self.from_at, self.until_at))
            yield Problem(("from",), f"is {quoted(first)}, not before until ({end}); swap them or correct one")


@dataclass(frozen=True)
class Quality(Setting):
    """Consequences of a failed expectation. Nothing here changes a result."""

    gates: Mapping[PlainText, GateMode] = Field(default_factory=dict, examples=[{"silver.readings": "hold"}])
    """Consequence, by table, when a critical expectation fails for new rows. `off`: nothing. `warn`: the run and `tidemark status` say
    so. `hold`: gold does not read what has not passed (silver.readings only). Other tables: off."""
    channels: Unique[ChannelName] = Field(default=(), examples=[["night_shift"]])
    """Channels of alerts.yml that are notified when an expectation fails or holds again, and when a gate closes or opens. Absent: none."""
    reference: OrAbsent[Reference] = Field(default=None, examples=[{"from": "2026-01-05T00:00:00Z", "until": "2026-01-12T00:00:00Z"}])
    """The time that drift is measured against. Absent: no fixed one."""


@dataclass(frozen=True)
class DbtSettings(Setting):
    """The dbt project that `tidemark dbt` runs. Nothing here changes a result of the pipeline."""

    project: AbsolutePath | None = Field(default=None, examples=["./plant/dbt"])
    """Folder of a dbt project of your own; the one that Tidemark ships is then its package `tidemark`, with all sources. `dbt build`
    makes of it what yours needs, `dbt build --all` all. A path as for `lake`. Absent or null: the one that Tidemark ships."""

    def problems(self) -> Iterator[Problem]:
        if self.project and not (self.project / "dbt_project.yml").is_file():
            text = f"is {quoted(str(self.project))}, where no dbt_project.yml lies; name the folder of a dbt project, or leave it out"
            yield Problem(("project",), text)


@dataclass(frozen=True)
class QuerySettings(Setting):
    """A query in DuckDB's SQL over the newest snapshot, as `tidemark sql` answers it."""

    query: Query = Field(examples=["select * from gold.kitchen_aggregates"])
    """The query."""
    to: ResultFile = Field(examples=["./reports/kitchen.parquet"])
    """The file that gets the rows, each time as a whole: .csv, .json or .parquet. A path as for `lake`."""


@dataclass(frozen=True)
class ScheduleSettings(Setting):
    """A task that `tidemark up` runs on a schedule. Set `command`, `sql` or `train`. A task that was missed while `tidemark up` did not run
    is done once."""

    one_of: ClassVar[tuple[str, ...]] = ("command", "sql", "train")
    cron: Schedule = Field(examples=["15 3 * * *"])
    """Minute, hour, day of month, month, day of week, in UTC."""
    command: OrAbsent[Literal["ledger", "verify", "quality", "quarantine retry", "dbt build"]] = Field(default=None, examples=["verify"])
    """A command of `tidemark`."""
    sql: OrAbsent[QuerySettings] = Field(default=None, examples=[{"query": "select * from marts.daily", "to": "./reports/daily.csv"}])
    """A query whose rows go to a file."""
    train: OrAbsent[GroupName] = Field(default=None, examples=["kitchen"])
    """A group with `anomalies`: a model is trained on what gold holds of it, and judges its vectors from then on."""

    @property
    def line(self) -> str:
        """Its command line behind `tidemark`; empty of a query."""
        return self.command or (f"train {self.train} --promote" if self.train else "")


@dataclass(frozen=True)
class PageSettings(Setting):
    """Address of the live page of `tidemark up` and `tidemark serve`, and who may see it."""

    host: Text = Field(default="127.0.0.1", examples=["127.0.0.1", "0.0.0.0"])
    """Address to listen on; one that other machines reach needs a token."""
    port: Port = Field(default=8643, examples=[8643])
    """0: any free port, which is told at the start."""
    token: OrAbsent[Secret] = Field(default=None, examples=["${env:TIDEMARK_PAGE_TOKEN}"])
    """Who looks must have it: in the address, `?token=TOKEN`, or as `Authorization: Bearer TOKEN`. Where others reach the page, it has 16
    characters at least."""
    names: Unique[Text] = Field(default=(), examples=[["plant.example"]])
    """Names, with their port where it is not that of the page, by which browsers call it, such as that of a proxy; others are refused."""
    time_zone: Text = Field(default="UTC", examples=["Europe/Brussels"])
    """Time zone of the instants on the page; whoever looks may switch to UTC or to the zone of the browser."""

    def problems(self) -> Iterator[Problem]:
        yield from problems_of_zone("time_zone", self.time_zone)
        if not self.token and not is_loopback(self.host):
            yield Problem(("host",), f"is {quoted(self.host)}, which other machines reach; set page.token, or keep 127.0.0.1")


@dataclass(frozen=True)
class SqlServerSettings(Setting):
    """`tidemark up` runs `tidemark sql-server` too, and both take this. Nothing here changes a result of the pipeline."""

    host: Text = Field(default="127.0.0.1", examples=["127.0.0.1", "0.0.0.0"])
    """Address to listen on; one that other machines reach needs a certificate."""
    port: Port = Field(default=5433, examples=[5433])
    """0: any free port, which is told at the start."""
    users: OrAbsent[AbsolutePath] = Field(default=None, examples=["./users.txt"])
    """A file of NAME:PASSWORD lines that only you can read, read at the start. Left out: you, with the password that
    `tidemark sql-server --url` prints."""
    certificate: OrAbsent[AbsolutePath] = Field(default=None, examples=["./tls/server.crt"])
    """The server's certificate, with those between it and its root behind it, in PEM."""
    key: OrAbsent[AbsolutePath] = Field(default=None, examples=["./tls/server.key"])
    """The private key of the certificate."""
    connections: Whole = Field(default=20, ge=1, le=1000)
    """Connections at once; each takes 70 to 95 MiB once it has asked something."""

    def problems(self) -> Iterator[Problem]:
        if bool(self.certificate) != bool(self.key):
            yield Problem((), "has one of certificate and key; set both")
        elif not self.certificate and not is_loopback(self.host):
            yield Problem(("host",), f"is {quoted(self.host)}, which other machines reach; set certificate and key, or keep 127.0.0.1")


@dataclass(frozen=True)
class PipelineFile(Setting):
    """The pipeline as a whole: where its tables are, what it promises, how Spark runs."""

    pipeline: PipelineName = Field(examples=["tidemark"])
    """Name of the pipeline. It is part of the transaction ids in every table, so do not change it later."""
    lake: LakePath = Field(examples=["./lake", "${DATA}/lake", "s3://plant/lake"])
    """Folder of all tables and checkpoints, or s3://BUCKET/PREFIX in an object store. A relative path starts at the parent of the conf
    folder; ~ and ${VARIABLE} expand."""
    policy: Policy = Field(examples=[{"lateness_seconds": 600}])
    """Promises of the silver layer."""
    store: OrAbsent[StoreSettings] = Field(
        default=None,
        examples=[{"endpoint": "https://s3.example.com:9000", "access_key": "${env:STORE_KEY}", "secret_key": "${env:STORE_SECRET}"}],
    )
    """The object store of a lake at s3://. Left out: AWS, with the keys and the region that this machine has."""
    engine: Engine = Field(default_factory=Engine, examples=[{"driver_memory": "4g", "cores": 4}])
    """How Spark runs."""
    maintenance: Maintenance = Field(default_factory=Maintenance, examples=[{"every_seconds": 3600, "retain_seconds": 604_800}])
    """How the lake is kept small."""
    quality: Quality = Field(default_factory=Quality, examples=[{"gates": {"silver.readings": "hold"}, "channels": ["night_shift"]}])
    """Consequences of a failed expectation."""
    dbt: DbtSettings = Field(default_factory=DbtSettings, examples=[{"project": "./plant/dbt"}])
    """The dbt project that `tidemark dbt` runs."""
    references: dict[Identifier, ReferenceSettings] = Field(
        default_factory=dict,
        examples=[{"customers": {"path": "./reference/customers.csv", "device_id": "serial", "attributes": ["customer"]}}],
    )
    """Tables of yours, by name, whose columns readings get as attributes: silver.references has their versions."""
    sinks: dict[Identifier, SinkSettings] = Field(
        default_factory=dict,
        examples=[{"export": {"table": "silver.readings", "files": {"path": "./export"}}}],
    )
    """Targets that rows of silver, gold and marts are sent to, by name; each after every snapshot. Nothing here changes a result of the
    pipeline."""
    schedules: dict[Identifier, ScheduleSettings] = Field(
        default_factory=dict, examples=[{"every_night": {"cron": "15 3 * * *", "command": "verify"}}]
    )
    """Tasks that `tidemark up` runs on a schedule, by name; ops.runs has a row for each time. Nothing here changes a result of the
    pipeline."""
    page: PageSettings = Field(default_factory=PageSettings, examples=[{"port": 8643}])
    """Address of the live page. Nothing here changes a result of the pipeline."""
    sql_server: OrAbsent[SqlServerSettings] = Field(default=None, examples=[{"port": 5433}])
    """SQL for clients of PostgreSQL, as a part of `tidemark up`. Left out: it does not run there."""
    traces: Address | None = Field(default=None, examples=["http://127.0.0.1:4318/v1/traces"])
    """Address of an OpenTelemetry collector that gets a span for each batch, by OTLP over HTTP. Absent or null: none. Nothing here
    changes a result of the pipeline."""
