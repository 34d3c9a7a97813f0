"""Settings of section `channels` of alerts.yml: who is told about alerts."""

from typing import ClassVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from expectations.settings import CONFIG, Key, OrAbsent, Setting, Text
from orchestration.conf.secrets import Option, Secret, Url
from orchestration.conf.sink_settings import TopicName


@dataclass(frozen=True)
class AddressSettings(Setting):
    """An address of HTTP."""

    url: Url = Field(examples=["${env:URL}", "http://alerts.plant.example"])
    """Begins with https:// or http://. One that holds a secret is named as `${env:NAME}` or `${file:PATH}`."""
    token: OrAbsent[Secret] = Field(default=None, examples=["${env:TOKEN}"])
    """Sent as `Authorization: Bearer`."""


@dataclass(frozen=True)
class BrokerSettings(Setting):
    """A topic of Kafka."""

    servers: Text = Field(examples=["broker-1:9092,broker-2:9092"])
    """Addresses of the first brokers: host:port, with commas between them."""
    topic: TopicName = Field(examples=["alerts"])
    """Its name. It has to be there."""
    options: dict[Key, Option] = Field(
        default_factory=dict, min_length=1, examples=[{"security.protocol": "SASL_SSL", "sasl.password": "${env:KAFKA_PASSWORD}"}]
    )
    """Settings of librdkafka, as those of a sink."""


@dataclass(frozen=True, config=ConfigDict(**CONFIG, json_schema_extra={"minProperties": 1, "maxProperties": 1}))
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
