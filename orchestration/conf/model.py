"""The whole configuration of one lake, after checking: frozen, plain, free of Spark."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias

from expectations.rule import Rule
from gold.spec import Group
from orchestration.conf.pipeline_settings import Engine, GateMode, Maintenance, Quality, Reference
from orchestration.conf.sink_settings import SinkSettings
from orchestration.location import Location
from silver.spec import Metric, PayloadFormat, Policy

__all__ = [
    "Conf",
    "Device",
    "Engine",
    "GateMode",
    "HttpEndpoint",
    "KafkaTopics",
    "LandingFolder",
    "Maintenance",
    "Quality",
    "Reference",
    "Source",
    "TcpEndpoint",
    "Tls",
    "Transport",
]


MEGABYTE = 1 << 20


@dataclass(frozen=True)
class LandingFolder:
    """`path` is absolute; `files` is a glob on file names; a file is read once it has not changed for `settle_seconds`."""

    path: Path
    files: str = "*"
    settle_seconds: float = 2.0


@dataclass(frozen=True)
class KafkaTopics:
    """Exactly one of `subscribe`, `subscribe_pattern` (on whole names) and `assign` (partitions by topic) is set.

    `starting`: where the first read begins, but for partitions of `starting_offsets`. `options`: of librdkafka; in a value `${env:NAME}` or
    `${file:PATH}`, with an absolute path, stands for a secret, which is nowhere in a conf.
    """

    servers: str
    subscribe: tuple[str, ...] = ()
    subscribe_pattern: str | None = None
    assign: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    starting: datetime | Literal["earliest", "latest"] = "earliest"
    starting_offsets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tls:
    """Files in PEM, by absolute path."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class HttpEndpoint:
    """Where `tidemark collect` takes POST /events. `token` is a reference (conf/secrets.py), never the secret. `port` 0: any free one."""

    port: int
    host: str = "127.0.0.1"
    token: str | None = None
    tls: Tls | None = None
    max_body_bytes: int = 8 * MEGABYTE
    max_spool_bytes: int = 1024 * MEGABYTE


@dataclass(frozen=True)
class TcpEndpoint:
    """Where `tidemark collect` takes frames. `key` is a reference (conf/secrets.py), never the secret. `port` 0: any free one."""

    port: int
    host: str = "127.0.0.1"
    framing: str = "lines"
    key: str | None = None
    tls: Tls | None = None
    acknowledge: bool = True
    max_frame_bytes: int = MEGABYTE
    max_connections: int = 2000
    idle_seconds: float = 600.0
    max_spool_bytes: int = 1024 * MEGABYTE


Transport: TypeAlias = LandingFolder | KafkaTopics | HttpEndpoint | TcpEndpoint


@dataclass(frozen=True)
class Source:
    """`transport`: how events come."""

    name: str
    payload_format: PayloadFormat
    transport: Transport


@dataclass(frozen=True)
class Device:
    """A device, as conf/devices.yml or the registry has it."""

    device_id: str
    groups: tuple[str, ...] = ()
    zone: str | None = None
    label: str | None = None


@dataclass(frozen=True)
class Conf:
    """`folder` is the conf folder; relative paths in conf start at its parent. `dbt_project` None: that of Tidemark alone."""

    folder: Path
    pipeline: str
    lake: Location
    policy: Policy
    engine: Engine
    sources: dict[str, Source]
    metrics: dict[str, Metric]
    devices: dict[str, Device]
    groups: dict[str, Group]
    rules: tuple[Rule, ...]
    maintenance: Maintenance = field(default_factory=Maintenance)
    quality: Quality = field(default_factory=Quality)
    dbt_project: Path | None = None
    sinks: dict[str, SinkSettings] = field(default_factory=dict)
