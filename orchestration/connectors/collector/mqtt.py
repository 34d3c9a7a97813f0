"""MQTT as a kind of collected source: a message of QoS 1 is acknowledged once it is on the disk.

The broker keeps the session while the collector is away. A message that was not acknowledged comes again, as another event. Its position is
topic/session/number, where a session is one start of the collector.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from paho.mqtt.client import Client, ConnectFlags, MQTTMessage
from paho.mqtt.reasoncodes import ReasonCode

from orchestration.conf.transport_settings import MqttSettings
from orchestration.connectors.collector.kind import FULL, Pushed, Served
from orchestration.connectors.collector.mqtt_connection import MqttConnection
from orchestration.connectors.collector.rebirths import Rebirths, rebirth_request
from orchestration.connectors.collector.sockets import client_context
from orchestration.connectors.collector.spool import Stored
from orchestration.location import Location
from orchestration.secrets import secret
from orchestration.storage.state_file import StateFile

RETRY_SECONDS, LOOK_SECONDS = 1.0, 0.02
QOS = 1
LONGEST_TOPIC = 10_000  # letters of a topic in a position; MQTT allows 65,535 bytes
SUBSCRIBED = "mqtt.json"  # beside the spool: what the session at the broker is subscribed to


async def serve(pushed: Pushed) -> Served:
    """Goes on trying for as long as the broker is down."""
    collector = MqttCollector(pushed)
    task = asyncio.create_task(collector.run())

    async def stop() -> None:
        collector.stop()
        await asyncio.wait([task])

    return Served(task, stop)


@dataclass(frozen=True)
class _Session:
    """The filters that a session at a broker is subscribed to."""

    session: str
    filters: list[str]


class MqttCollector:
    """Each connection is a new one, so that no acknowledgement that is late is taken for that of another message."""

    def __init__(self, pushed: Pushed) -> None:
        """TidemarkError where the password or a certificate is missing."""
        assert isinstance(pushed.endpoint, MqttSettings)
        self._endpoint, self._spool = pushed.endpoint, pushed.spool
        self._password, self._context = self._endpoint.password and secret(self._endpoint.password), client_context(self._endpoint.tls)
        group = f"$share/{self._endpoint.shared_group}/" if self._endpoint.shared_group else ""
        self._filters = [group + topic for topic in self._endpoint.topics]
        way_out = "Remove it: the collector then subscribes again."
        self._file = StateFile(Location(pushed.spool.folder / SUBSCRIBED), _Session, way_out)
        self._owner = f"{self._endpoint.client_id} at {self._endpoint.broker}"
        before = self._file.read()
        self._subscribed = before.filters if before and before.session == self._owner else []
        self._session, self._count = pushed.spool.mark.hex()[:8], 0
        self._asks_births = self._endpoint.rebirth and pushed.source.payload_format.written_in == "sparkplug_b"
        self._rebirths = Rebirths()
        self._connection = self._new_connection()
        self._stopping, self._outage = asyncio.Event(), pushed.outage
        self._up = f"messages come from mqtt{'s' if self._context else ''}://{self._endpoint.broker}"

    async def run(self) -> None:
        while not self._stopping.is_set():
            if self._spool.has_room():
                self._outage.down(await self._collected())
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), RETRY_SECONDS)

    def stop(self) -> None:
        """Take no more; what was taken is acknowledged before `run` ends."""
        self._stopping.set()
        self._connection.end("")

    async def _collected(self) -> str:
        """Take messages for as long as a connection lasts; why it ended."""
        connection, self._rebirths = self._new_connection(), Rebirths()
        self._connection = connection
        try:
            await connection.open()
        except (OSError, ValueError) as error:
            return getattr(error, "strerror", None) or str(error)
        while not (await asyncio.wait([connection.ended], timeout=LOOK_SECONDS))[0]:
            if connection.is_paused and self._spool.has_room():
                connection.resume()
                self._outage.up(self._up)
            connection.keep_alive()
        await self._spool.drain()
        await asyncio.sleep(0)  # what the end of the last group calls acknowledges it
        await connection.close()
        return connection.ended.result()

    def _new_connection(self) -> MqttConnection:
        connection = MqttConnection(self._endpoint, self._password, self._context, self._take)
        connection.client.on_connect = self._begin
        connection.client.on_subscribe = self._confirm
        return connection

    def _begin(self, client: Client, _data: Any, flags: ConnectFlags, reason: ReasonCode, _properties: Any) -> None:
        """Subscribe to what the session is not subscribed to yet, and end what conf names no longer."""
        if reason.is_failure:
            self._connection.end(f"the broker refuses the connection ({reason})")
            return
        if self._subscribed and not flags.session_present:
            self._outage.say(f"the broker has forgotten the session of {self._owner}; what it took for it meanwhile is lost")
            self._subscribed = []
        if gone := [topic for topic in self._subscribed if topic not in self._filters]:
            client.unsubscribe(gone)
        if new := [topic for topic in self._filters if topic not in self._subscribed]:
            client.subscribe([(topic, QOS) for topic in new])
        else:
            self._outage.up(self._up)

    def _confirm(self, _client: Client, _data: Any, _mid: int, reasons: list[ReasonCode], _properties: Any) -> None:
        new = [topic for topic in self._filters if topic not in self._subscribed]
        if refused := [f"{topic} ({reason})" for topic, reason in zip(new, reasons, strict=True) if reason.value != QOS]:
            self._connection.end(f"the broker refuses a subscription with QoS 1: {refused[0]}")
            return
        self._subscribed = self._filters
        with suppress(OSError):  # a full disk: the next connection subscribes again, to what the broker knows already
            self._file.write(_Session(self._owner, self._subscribed))
        self._outage.up(self._up)

    def _take(self, message: MQTTMessage) -> None:
        self._count += 1
        stored = self._spool.store(f"{message.topic[:LONGEST_TOPIC]}/{self._session}", self._count, [bytes(message.payload)])
        stored.add_done_callback(partial(self._settle, self._connection, message))
        if self._asks_births and (command := self._rebirths.command(message.topic, bytes(message.payload), time.monotonic())):
            self._connection.client.publish(command, rebirth_request())
        if not self._spool.has_room():
            self._connection.pause()
            if self._spool.is_full():
                self._outage.down(FULL)

    def _settle(self, connection: MqttConnection, message: MQTTMessage, stored: Stored) -> None:
        if stored.result() is None:
            connection.client.ack(message.mid, message.qos)
        else:
            connection.end("the disk takes no more: it is full or has failed")  # and the broker sends it again
