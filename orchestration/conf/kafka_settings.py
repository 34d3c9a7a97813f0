"""Settings of a source that reads Kafka."""

from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass

from orchestration.conf.secrets import Option
from orchestration.conf.values import CONFIG, Key, OrAbsent, Setting, Starting, Text, UniqueSome, Whole, of_pattern

Partition = Annotated[Whole, Field(ge=0)]
PartitionKey = Annotated[str, of_pattern("^(0|[1-9][0-9]*)$", "write the number of a partition", 10)]


@dataclass(frozen=True, config=CONFIG)
class KafkaSettings(Setting):
    """Which topics of which brokers a source reads. Set one of `subscribe`, `subscribe_pattern` and `assign`."""

    kind: ClassVar[str] = "kafka"
    servers: Text = Field(examples=["broker-1:9092,broker-2:9092"])
    """Where the first brokers are: host:port, with commas between them."""
    subscribe: UniqueSome[Text] = Field(default=(), max_length=10_000, examples=[["readings"]])
    """Names of topics; all their partitions are read, also those that are added later."""
    subscribe_pattern: OrAbsent[Text] = Field(default=None, examples=["plant-[0-9]+"])
    """Regular expression on whole names of topics; those that are made later are read as well."""
    assign: dict[Key, Annotated[UniqueSome[Partition], Field(max_length=10_000)]] = Field(
        default_factory=dict, min_length=1, examples=[{"readings": [0, 1]}]
    )
    """Partitions by topic; no others are read."""
    starting: Starting = Field(default="earliest", examples=["earliest", "latest", "2026-01-05T00:00:00Z"])
    """Where the source begins when it is read for the first time: `earliest`, `latest`, or with the messages since an instant. Topics and
    partitions that come later are read from their beginning."""
    starting_offsets: dict[Key, dict[PartitionKey, Annotated[Whole, Field(ge=0)]]] = Field(
        default_factory=dict, min_length=1, examples=[{"readings": {"0": 1200}}]
    )
    """Where it begins instead in some partitions: the first offset to read, by topic and partition."""
    options: dict[Key, Option] = Field(
        default_factory=dict, min_length=1, examples=[{"security.protocol": "SASL_SSL", "sasl.password": "${env:KAFKA_PASSWORD}"}]
    )
    """Settings of librdkafka for the connection: security, names and time limits. `${env:NAME}` is the value of a variable, `${file:PATH}`
    the content of a file; secrets must be one of these. They are looked up when the source connects and stored nowhere."""
