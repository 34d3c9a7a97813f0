"""The ways by which events come, after checking: what each kind of source needs to know. Frozen and plain."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class LandingFolder:
    """`path` is absolute; `files` is a glob on file names; a file is read once it has not changed for `settle_seconds`."""

    kind: ClassVar[str] = "files"
    path: Path
    files: str = "*"
    settle_seconds: float = 2.0


@dataclass(frozen=True)
class KafkaTopics:
    """Exactly one of `subscribe`, `subscribe_pattern` (on whole names) and `assign` (partitions by topic) is set.

    `starting`: where the first read begins, but for partitions of `starting_offsets`. `options`: of librdkafka; in a value `${env:NAME}` or
    `${file:PATH}`, with an absolute path, stands for a secret, which is nowhere in a conf.
    """

    kind: ClassVar[str] = "kafka"
    servers: str
    subscribe: tuple[str, ...] = ()
    subscribe_pattern: str | None = None
    assign: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    starting: datetime | Literal["earliest", "latest"] = "earliest"
    starting_offsets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ObjectStore:
    """Objects of an S3-compatible store. `endpoint`, `region`, keys None: as boto3 finds them. Keys are references (conf/secrets.py).

    `versions`: each version of an object is read, and known by its id; else what an object is when it is listed, known by its ETag.
    """

    kind: ClassVar[str] = "s3"
    bucket: str
    prefix: str = ""
    files: str = "*"
    region: str | None = None
    endpoint: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    versions: bool = False
    list_seconds: float = 5.0


@dataclass(frozen=True)
class TableOfOthers:
    """A Delta table at an absolute path. `starting`: `earliest` (with the rows that it has), `latest`, or the first version to read."""

    kind: ClassVar[str] = "delta"
    path: Path
    starting: int | str = "earliest"


@dataclass(frozen=True)
class Tls:
    """Files in PEM, by absolute path."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class HttpEndpoint:
    """Where `tidemark collect` takes POST /events. `token` is a reference (conf/secrets.py), never the secret. `port` 0: any free one."""

    kind: ClassVar[str] = "http"
    port: int
    host: str = "127.0.0.1"
    token: str | None = None
    tls: Tls | None = None
    max_body_bytes: int = 8 * MEGABYTE
    max_spool_bytes: int = 1024 * MEGABYTE


@dataclass(frozen=True)
class TcpEndpoint:
    """Where `tidemark collect` takes frames. `key` is a reference (conf/secrets.py), never the secret. `port` 0: any free one."""

    kind: ClassVar[str] = "tcp"
    port: int
    host: str = "127.0.0.1"
    framing: str = "lines"
    key: str | None = None
    tls: Tls | None = None
    acknowledge: bool = True
    max_frame_bytes: int = 2 * MEGABYTE
    max_connections: int = 2000
    idle_seconds: float = 600.0
    max_spool_bytes: int = 1024 * MEGABYTE


@dataclass(frozen=True)
class ClientTls:
    """Files in PEM, by absolute path. `ca`: None for the authorities of the machine. `certificate` and `key`: who the client is."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class MqttTopics:
    """What `tidemark collect` takes from a broker. `topics` are filters. `password` is a reference (conf/secrets.py), never the secret."""

    kind: ClassVar[str] = "mqtt"
    host: str
    port: int
    topics: tuple[str, ...]
    client_id: str
    version: Literal["v5", "v3.1.1"] = "v5"
    username: str | None = None
    password: str | None = None
    tls: ClientTls | None = None
    shared_group: str | None = None
    session_expiry_seconds: int = 604_800
    receive_maximum: int = 1000
    max_spool_bytes: int = 1024 * MEGABYTE


@dataclass(frozen=True)
class KinesisStream:
    """What `tidemark collect` reads. `region`, `endpoint` and keys None: as boto3 finds them. Keys are references (conf/secrets.py)."""

    kind: ClassVar[str] = "kinesis"
    stream: str
    region: str | None = None
    endpoint: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    starting: datetime | Literal["earliest", "latest"] = "earliest"
    max_spool_bytes: int = 1024 * MEGABYTE


Collected: TypeAlias = HttpEndpoint | TcpEndpoint | MqttTopics | KinesisStream
"""Events come to `tidemark collect`, which spools them."""
Transport: TypeAlias = LandingFolder | KafkaTopics | ObjectStore | TableOfOthers | Collected
