"""Settings of the ways by which events come: files, Kafka, objects of S3, Delta tables, and what `tidemark collect` takes or reads."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from expectations.settings import Expression, Flag, Key, Number, OrAbsent, Problem, Setting, Text, UniqueSome, Whole, of_pattern
from expectations.wording import quoted
from orchestration.conf.kafka_options import OF_SOURCE, problems_of_options
from orchestration.conf.secrets import Name, Option, Secret, Url
from orchestration.conf.values import AbsolutePath, Starting
from silver.spec import Registry

Partition = Annotated[Whole, Field(ge=0)]
PartitionKey = Annotated[str, of_pattern("^(0|[1-9][0-9]*)$", "write the number of a partition", 10)]
ServerUrl = Annotated[str, of_pattern(r"^https?://[^/?#@\s]+/?$", "write its address, such as https://s3.example.com:9000", 1000)]
MAX_PORT = 65_535
Port = Annotated[Whole, Field(ge=0, le=MAX_PORT)]
SpoolBytes = Annotated[Whole, Field(ge=1_048_576, le=1_099_511_627_776)]
Address = Annotated[str, of_pattern(r"^(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):[1-9][0-9]{0,4}$", "write host:port, such as broker-1:1883", 300)]


@dataclasses.dataclass(frozen=True)
class LandingFolder:
    """`files` is a glob on the names of files; a file is read once it has not changed for `settle_seconds`."""

    kind: ClassVar[str] = "files"
    path: Path
    files: str = "*"
    settle_seconds: float = 2.0


@dataclass(frozen=True)
class RegistrySettings(Registry):
    """A schema registry with the interface of Confluent's. A message begins with a byte 0 and 4 bytes of the id of its schema."""

    url: Url = Field(examples=["https://registry:8081"])
    """Address that begins with https:// or http://, or a reference to it."""
    username: OrAbsent[Name] = Field(default=None, examples=["tidemark", "${env:REGISTRY_USER}"])
    """User name of basic authentication, or a reference to it."""
    password: OrAbsent[Secret] = Field(default=None, examples=["${env:REGISTRY_PASSWORD}"])
    """Password of basic authentication."""


@dataclass(frozen=True)
class KafkaSettings(Setting):
    """Which topics of which brokers a source reads. Set one of `subscribe`, `subscribe_pattern` and `assign`."""

    kind: ClassVar[str] = "kafka"
    one_of: ClassVar[tuple[str, ...]] = ("subscribe", "subscribe_pattern", "assign")
    servers: Text = Field(examples=["broker-1:9092,broker-2:9092"])
    """Addresses of the first brokers: host:port, with commas between them."""
    subscribe: UniqueSome[Text] = Field(default=(), max_length=10_000, examples=[["readings"]])
    """Names of topics; all their partitions are read, also those that are added later."""
    subscribe_pattern: OrAbsent[Expression] = Field(default=None, examples=["plant-[0-9]+"])
    """Regular expression on whole names of topics; those that are made later are read as well."""
    assign: dict[Key, Annotated[UniqueSome[Partition], Field(max_length=10_000)]] = Field(
        default_factory=dict, min_length=1, examples=[{"readings": [0, 1]}]
    )
    """Partitions by topic; no others are read."""
    starting: Starting = Field(default="earliest", examples=["earliest", "latest", "2026-01-05T00:00:00Z"])
    """First messages to read when the source is read for the first time: `earliest`, `latest`, or those since an instant. Topics and
    partitions that come later are read from their beginning."""
    starting_offsets: dict[Key, dict[PartitionKey, Annotated[Whole, Field(ge=0)]]] = Field(
        default_factory=dict, min_length=1, examples=[{"readings": {"0": 1200}}]
    )
    """First offset to read instead in some partitions, by topic and partition."""
    options: dict[Key, Option] = Field(
        default_factory=dict, min_length=1, examples=[{"security.protocol": "SASL_SSL", "sasl.password": "${env:KAFKA_PASSWORD}"}]
    )
    """Settings of librdkafka for the connection: security, names and time limits. `${env:NAME}` is the value of a variable, `${file:PATH}`
    the content of a file; secrets must be one of these. They are looked up when the source connects and stored nowhere."""

    def problems(self) -> Iterator[Problem]:
        return problems_of_options(self.options, OF_SOURCE)


@dataclass(frozen=True, kw_only=True)
class S3Settings(Setting):
    """Which objects of which bucket a source reads."""

    kind: ClassVar[str] = "s3"
    bucket: Text = Field(examples=["plant-events"])
    """Its name."""
    prefix: Annotated[str, Field(strict=True, max_length=1000)] = Field(default="", examples=["readings/"])
    """With what the names of the objects begin. All of them are listed each time: 1,000 a request."""
    files: Text = Field(default="*", examples=["*", "*.json.gz"])
    """Glob on what stands behind the last / of their names."""
    region: OrAbsent[Text] = Field(default=None, examples=["eu-central-1"])
    """Else as boto3 finds it: variables, profile."""
    endpoint: OrAbsent[ServerUrl] = Field(default=None, examples=["https://s3.example.com:9000"])
    """Address of a store that is not AWS."""
    access_key: OrAbsent[Secret] = Field(default=None, examples=["${env:S3_ACCESS_KEY}"])
    """Else keys as boto3 finds them: variables, profile, the role of the machine."""
    secret_key: OrAbsent[Secret] = Field(default=None, examples=["${env:S3_SECRET_KEY}"])
    """Belongs to access_key."""
    versions: Flag = Field(default=False, examples=[True])
    """Each version of an object is read, also one that was overwritten or deleted since; the bucket has to keep versions. Else an object is
    read as it is when it is listed."""
    list_seconds: Annotated[Number, Field(ge=0, le=86_400)] = 5.0
    """Objects are listed no more often than this."""

    def problems(self) -> Iterator[Problem]:
        return problems_of_keys(self.access_key, self.secret_key)


@dataclass(frozen=True, kw_only=True)
class DeltaSettings(Setting):
    """Which table a source reads: what its versions add are events."""

    kind: ClassVar[str] = "delta"
    table: AbsolutePath = Field(examples=["/data/warehouse/readings"])
    """Its folder. A relative path starts at the parent of the conf folder; ~ and ${VARIABLE} expand."""
    starting: Literal["earliest", "latest"] = Field(default="earliest", examples=["earliest", "latest"])
    """First rows to read when the table is read for the first time: those that it has, or those of the next version."""
    starting_version: OrAbsent[Annotated[Whole, Field(ge=0)]] = Field(default=None, examples=[17])
    """It begins instead with what the version of this number added."""


@dataclass(frozen=True)
class TlsSettings(Setting):
    """Encryption of connections: two files in PEM."""

    certificate: AbsolutePath = Field(examples=["./tls/server.crt"])
    """The server's certificate, with those between it and its root behind it."""
    key: AbsolutePath = Field(examples=["./tls/server.key"])
    """The private key of the certificate."""


@dataclass(frozen=True, kw_only=True)
class HttpSettings(Setting):
    """Address at which `tidemark collect` answers `POST /events`."""

    kind: ClassVar[str] = "http"
    host: Text = Field(default="127.0.0.1", examples=["127.0.0.1", "0.0.0.0"])
    """Address to listen on; 0.0.0.0 for all of the machine."""
    port: Port = Field(examples=[8080])
    """0: any free port, which is told at the start."""
    token: OrAbsent[Secret] = Field(default=None, examples=["${env:TIDEMARK_TOKEN}"])
    """Who sends must send it: `Authorization: Bearer TOKEN`."""
    tls: OrAbsent[TlsSettings] = Field(default=None, examples=[{"certificate": "./tls/server.crt", "key": "./tls/server.key"}])
    """HTTPS instead of HTTP."""
    max_body_bytes: Annotated[Whole, Field(ge=1, le=1_073_741_824)] = 8_388_608
    """A longer body is refused with 413, also one that is longer once it is unpacked."""
    max_spool_bytes: SpoolBytes = 1_073_741_824
    """While about so much waits on the disk for a run, requests are refused with 429."""


@dataclass(frozen=True, kw_only=True)
class TcpSettings(Setting):
    """Address at which `tidemark collect` takes connections, each of which sends one event a frame."""

    kind: ClassVar[str] = "tcp"
    host: Text = Field(default="127.0.0.1", examples=["127.0.0.1", "0.0.0.0"])
    """Address to listen on; 0.0.0.0 for all of the machine."""
    port: Port = Field(examples=[9000])
    """0: any free port, which is told at the start."""
    framing: Literal["lines", "length"] = Field(default="lines", examples=["lines"])
    """`lines`: each event ends with a line feed. `length`: before each event stand 4 bytes, its length, the greatest first."""
    key: OrAbsent[Secret] = Field(default=None, examples=["${env:TIDEMARK_KEY}"])
    """Who sends must send it as the first frame of a connection."""
    tls: OrAbsent[TlsSettings] = Field(default=None, examples=[{"certificate": "./tls/server.crt", "key": "./tls/server.key"}])
    """Connections are encrypted."""
    acknowledge: Flag = Field(default=True, examples=[True])
    """Answer with lines of a number: so many events of this connection are on the disk."""
    max_frame_bytes: Annotated[Whole, Field(ge=1, le=1_073_741_824)] = 2_097_152
    """A connection that sends a longer event is closed. Above `max_payload_bytes`, so that one a little too long goes to quarantine."""
    max_connections: Annotated[Whole, Field(ge=1, le=100_000)] = 2_000
    """Further connections are closed at once."""
    idle_seconds: Annotated[Number, Field(gt=0, le=86_400)] = 600.0
    """A connection that sends nothing for so long is closed."""
    max_spool_bytes: SpoolBytes = 1_073_741_824
    """While about so much waits on the disk for a run, nothing more is read from connections."""


@dataclass(frozen=True)
class ClientTlsSettings(Setting):
    """Encryption of the connection to a server; `{}` trusts the authorities that the machine trusts."""

    ca: OrAbsent[AbsolutePath] = Field(default=None, examples=["./tls/ca.crt"])
    """Certificates of the authorities to trust instead, in PEM."""
    certificate: OrAbsent[AbsolutePath] = Field(default=None, examples=["./tls/client.crt"])
    """The client's own certificate, for a server that asks for one."""
    key: OrAbsent[AbsolutePath] = Field(default=None, examples=["./tls/client.key"])
    """The private key of the certificate."""

    def problems(self) -> Iterator[Problem]:
        if bool(self.certificate) != bool(self.key):
            yield Problem((), "has one of certificate and key; set both")


@dataclass(frozen=True, kw_only=True)
class MqttSettings(Setting):
    """Which topics of which broker `tidemark collect` subscribes to, with QoS 1 and a session that the broker keeps."""

    kind: ClassVar[str] = "mqtt"
    broker: Address = Field(examples=["broker-1:1883"])
    """Address of the broker: host:port."""
    topics: UniqueSome[Text] = Field(max_length=1000, examples=[["plant/+/+"]])
    """Filters of topics: `+` stands for one level, `#` at the end for all that follow."""
    version: Literal["v5", "v3.1.1"] = "v5"
    """Version of MQTT."""
    client_id: OrAbsent[Text] = Field(default=None, examples=["tidemark-hall-1"])
    """Under which the broker keeps the session; without it `tidemark-<pipeline>-<source>`. No two clients of a broker may have the same."""
    username: OrAbsent[Text] = Field(default=None, examples=["plant"])
    """Who logs in."""
    password: OrAbsent[Secret] = Field(default=None, examples=["${env:MQTT_PASSWORD}"])
    """Password of the user."""
    tls: OrAbsent[ClientTlsSettings] = Field(default=None, examples=[{"ca": "./tls/ca.crt"}])
    """The connection is encrypted."""
    shared_group: OrAbsent[Text] = Field(default=None, examples=["tidemark"])
    """Collectors that name the same group share its messages: each message comes to one of them."""
    session_expiry_seconds: Annotated[Whole, Field(ge=1, le=4_294_967_295)] = 604_800
    """v5: so long the broker keeps messages for a collector that is away; 4294967295: for ever. With v3.1.1 the broker decides."""
    receive_maximum: Annotated[Whole, Field(ge=1, le=65_535)] = 1_000
    """v5: messages that the broker sends before the first of them is acknowledged. With v3.1.1 the broker decides."""
    rebirth: Flag = True
    """Sparkplug B: ask a node whose birth is missing to send it again; then data wait for it if a message is missing before them. Without
    this, a number that is missed in the sequence changes nothing."""
    max_spool_bytes: SpoolBytes = 1_073_741_824
    """While about so much waits on the disk for a run, no messages are taken: they wait at the broker."""

    @property
    def host(self) -> str:
        """Host of the broker, without the brackets of an IPv6 address."""
        return self.broker.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """Port of the broker."""
        return int(self.broker.rpartition(":")[2])

    @property
    def most_levels(self) -> int | None:
        """How many levels the longest topic has; None where no filter bounds it."""
        return None if any(topic.endswith("#") for topic in self.topics) else max(topic.count("/") + 1 for topic in self.topics)

    def problems(self) -> Iterator[Problem]:
        for number, topic in enumerate(self.topics):
            if problem := _problem_of_filter(topic):
                yield Problem(("topics",), f"names {quoted(topic)}; {problem}", (number,))
        if self.port > MAX_PORT:
            yield Problem(("broker",), f"is {quoted(self.broker)}; a port is at most {MAX_PORT}")
        if self.password and not self.username:
            yield Problem(("password",), "is set without a username; name the user")
        if self.shared_group and set(self.shared_group) & set("/+#"):
            yield Problem(("shared_group",), f"is {quoted(self.shared_group)}; write a name without /, + and #")
        if self.shared_group and not self.client_id:
            yield Problem(("shared_group",), "is set without a client_id; give each collector of the group one of its own")


def _problem_of_filter(topic: str) -> str | None:
    *levels, last = topic.split("/")
    if topic.startswith("$share/"):
        return "write the filter alone, and the name of the group as shared_group"
    if (last != "#" and "#" in last) or any("#" in level for level in levels):
        return "# stands alone, as the last level"
    if any("+" in level and level != "+" for level in (*levels, last)):
        return "+ stands alone, as a whole level"
    return None


@dataclass(frozen=True, kw_only=True)
class KinesisSettings(Setting):
    """Which stream `tidemark collect` reads, all shards of it."""

    kind: ClassVar[str] = "kinesis"
    stream: Text = Field(examples=["plant-events"])
    """Its name."""
    region: OrAbsent[Text] = Field(default=None, examples=["eu-central-1"])
    """Else as boto3 finds it: variables, profile."""
    endpoint: OrAbsent[ServerUrl] = Field(default=None, examples=["https://kinesis.example.com:4567"])
    """Address of a server that is not AWS."""
    access_key: OrAbsent[Secret] = Field(default=None, examples=["${env:KINESIS_ACCESS_KEY}"])
    """Else keys as boto3 finds them: variables, profile, the role of the machine."""
    secret_key: OrAbsent[Secret] = Field(default=None, examples=["${env:KINESIS_SECRET_KEY}"])
    """Belongs to access_key."""
    starting: Starting = Field(default="earliest", examples=["earliest", "latest", "2026-01-05T00:00:00Z"])
    """First records to read when the stream is read for the first time: `earliest`, `latest`, or those since an instant."""
    max_spool_bytes: SpoolBytes = 1_073_741_824
    """While about so much waits on the disk for a run, nothing is read: records wait in the stream."""

    def problems(self) -> Iterator[Problem]:
        return problems_of_keys(self.access_key, self.secret_key)


def problems_of_keys(access_key: str | None, secret_key: str | None) -> Iterator[Problem]:
    if bool(access_key) != bool(secret_key):
        yield Problem((), "sets one of access_key and secret_key; set both, or none")


Collected = HttpSettings | TcpSettings | MqttSettings | KinesisSettings
"""Events come to `tidemark collect`, which spools them."""
Transport = LandingFolder | KafkaSettings | S3Settings | DeltaSettings | Collected
