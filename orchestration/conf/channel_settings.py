"""Settings of section `channels` of alerts.yml: who is told about alerts; and of the addresses that channels and sinks have."""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from expectations.settings import CONFIG, Flag, Key, OrAbsent, Problem, Setting, Text, of_pattern
from orchestration.conf.kafka_options import OF_SINK, problems_of_options
from orchestration.conf.secrets import Option, Secret, Url

TopicName = Annotated[str, of_pattern("^[A-Za-z0-9._-]+$", "use letters, digits, dots, - and _", 249)]


@dataclass(frozen=True)
class AddressSettings(Setting):
    """An address of HTTP."""

    url: Url = Field(examples=["${env:URL}", "https://plant.example/rows"])
    """Address that begins with https:// or http://. One that holds a secret is named as `${env:NAME}` or `${file:PATH}`."""
    token: OrAbsent[Secret] = Field(default=None, examples=["${env:TOKEN}"])
    """Sent as `Authorization: Bearer`."""


@dataclass(frozen=True)
class BrokerSettings(Setting):
    """A topic of Kafka."""

    servers: Text = Field(examples=["broker-1:9092,broker-2:9092"])
    """Addresses of the first brokers: host:port, with commas between them."""
    topic: TopicName = Field(examples=["kitchen", "alerts"])
    """Name of the topic. Create it first, for a sink best with `cleanup.policy=compact`."""
    options: dict[Key, Option] = Field(
        default_factory=dict, min_length=1, examples=[{"security.protocol": "SASL_SSL", "sasl.password": "${env:KAFKA_PASSWORD}"}]
    )
    """Settings of librdkafka for the connection, as those of a source, and for the producer, such as `compression.type`."""

    def problems(self) -> Iterator[Problem]:
        yield from problems_of_options(self.options, OF_SINK)


@dataclass(frozen=True, config=ConfigDict(**CONFIG, json_schema_extra={"minProperties": 1}))
class ChannelSettings(Setting):
    """A way to tell of alerts, at least once: exactly one of `webhook`, `kafka`, `alertmanager` and `apprise`."""

    one_of: ClassVar[tuple[str, ...]] = ("webhook", "kafka", "alertmanager", "apprise")
    webhook: OrAbsent[AddressSettings] = Field(default=None, examples=[{"url": "${env:URL}"}])
    """An address that each message is posted to as JSON, with its id as `Idempotency-Key`."""
    kafka: OrAbsent[BrokerSettings] = Field(default=None, examples=[{"servers": "broker-1:9092", "topic": "alerts"}])
    """A topic with a message of JSON for each, under the key alert/entity and with its id in the header `message_id`."""
    alertmanager: OrAbsent[AddressSettings] = Field(default=None, examples=[{"url": "http://alertmanager.example:9093"}])
    """Prometheus' Alertmanager, by its API v2. Its labels are alertname, severity and entity."""
    apprise: OrAbsent[Secret] = Field(default=None, examples=["${env:PAGER_URL}"])
    """Chat, pager or e-mail: a reference to an address of the library apprise, such as mailto:// or slack://."""
    tells_problems: Flag = Field(default=False, validation_alias="problems", serialization_alias="problems", examples=[True])
    """Whether `tidemark up` also tells by it what is wrong: the entries of `tidemark status problems`, but for notices, and their ends."""
