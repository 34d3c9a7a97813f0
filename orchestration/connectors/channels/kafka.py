"""A message of a Kafka topic for each message about an alert: JSON, under the key `alert/entity`, or `alert` where it tells of several.

Its header `message_id` has the id.
"""

from collections.abc import Sequence

from orchestration.conf.channel_settings import BrokerSettings
from orchestration.connectors.channels.channel import FILE, Channel, Message, as_json
from orchestration.connectors.kafka_client import KafkaClient
from orchestration.connectors.sinks.kafka_producer import KafkaProducer
from orchestration.errors import TidemarkError


class KafkaChannel(Channel):
    most = 500

    def __init__(self, settings: BrokerSettings) -> None:
        self._client, self._topic = KafkaClient("it cannot be sent to", FILE, settings.servers, settings.options), settings.topic
        self._producer: KafkaProducer | None = None

    def send(self, messages: Sequence[Message]) -> None:
        self._refuse_absent()  # brokers that are gone say so in seconds, a producer in a minute
        producer, self._producer = self._producer or KafkaProducer(self._client, self._topic, None), None
        with producer.transaction(""):
            for message in messages:
                key = "/".join([message.alert, *(message.entities if len(message.entities) == 1 else ())])
                producer.send(key.encode(), as_json(message), [("message_id", message.message_id)])
        self._producer = producer  # which takes a second to begin with, and is of no use after an error

    def _refuse_absent(self) -> None:
        if self._topic not in self._client.describe([self._topic]):
            raise TidemarkError(f"topic {self._topic} is not there; make it, or correct kafka.topic in {FILE}.")
