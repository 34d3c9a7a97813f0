"""One connection to an MQTT broker: paho's client, which the event loop drives. A thread of its own would contend for the interpreter."""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from orchestration.conf.transport_settings import MqttSettings

KEEPALIVE_SECONDS, LOOK_SECONDS = 15, 0.01
GRACE_SECONDS = 3.0  # for a broker to take what is acknowledged at the end
AT_ONCE = 100  # packets that are read before others have a turn


class MqttConnection:
    """`client` has what MQTT can do. `ended`: becomes the reason for the end, of which the first counts."""

    def __init__(
        self, endpoint: MqttSettings, password: str | None, context: ssl.SSLContext | None, take: Callable[[MQTTMessage], None]
    ) -> None:
        """Not open yet. `take` is given each message."""
        self._endpoint, self._is_v5, self._take, self._taken = endpoint, endpoint.version == "v5", take, 0
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        self.is_paused = False
        self._number = -1
        self.client = client = Client(
            CallbackAPIVersion.VERSION2,
            endpoint.client_id,
            clean_session=None if self._is_v5 else False,
            protocol=MQTTProtocolVersion.MQTTv5 if self._is_v5 else MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        if endpoint.username is not None:
            client.username_pw_set(endpoint.username, password)
        if context is not None:
            client.tls_set_context(context)
        client.on_message = self._count

    async def open(self) -> None:
        """Until the broker was asked for a session; OSError or ValueError where it cannot be reached."""
        more: dict[str, Any] = {}
        if self._is_v5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = self._endpoint.session_expiry_seconds
            properties.ReceiveMaximum = self._endpoint.receive_maximum
            more = {"clean_start": False, "properties": properties}
        # It waits for the network, names and TLS.
        await asyncio.to_thread(self.client.connect, self._endpoint.host, self._endpoint.port, KEEPALIVE_SECONDS, **more)
        if (connected := self.client.socket()) is None:
            raise ConnectionError("the connection ended at once")
        self._number = connected.fileno()
        self.client.on_disconnect = lambda _client, _data, _flags, reason, _properties: self.end(f"the connection ended ({reason})")
        self.client.on_socket_register_write = lambda *_: self._loop.add_writer(self._number, self.client.loop_write)
        self.client.on_socket_unregister_write = self._stop_writing
        self.client.on_socket_close = self._stop_reading
        self.resume()

    def end(self, reason: str) -> None:
        self.pause()
        if not self.ended.done():
            self.ended.set_result(reason)

    def pause(self) -> None:
        """Do not read for now; the broker keeps what it cannot send."""
        self.is_paused = True
        if self.client.socket() is not None:
            self._stop_reading()

    def resume(self) -> None:
        self.is_paused = self.ended.done()
        if not self.is_paused and self.client.socket() is not None:
            self._loop.add_reader(self._number, self._read)
            self._read()  # what TLS has read already makes no socket readable

    def keep_alive(self) -> None:
        """To be called again and again; a broker that does not answer ends the connection."""
        if not self.is_paused:
            self.client.loop_misc()

    async def close(self) -> None:
        """Let what is acknowledged arrive: a socket that is closed while something is unread takes back what it has sent."""
        if (left := self.client.socket()) is None:
            return
        self._stop_reading()
        with suppress(OSError, TimeoutError), socket.socket(fileno=os.dup(left.fileno())) as raw:
            async with asyncio.timeout(GRACE_SECONDS):
                while self.client.want_write():
                    await asyncio.sleep(LOOK_SECONDS)
                raw.shutdown(socket.SHUT_WR)
                while await self._loop.sock_recv(raw, 1 << 16):
                    pass
        self._stop_writing()
        left.close()

    def _read(self) -> None:
        for _ in range(AT_ONCE):  # paho reads one packet a call
            before = self._taken
            try:
                self.client.loop_read()
            except Exception as error:  # of bytes that are no MQTT, whatever they do to the reader
                self.end(f"it sent what is no MQTT ({error or type(error).__name__})")
            if self.is_paused or self._taken == before:
                break
        left = self.client.socket()
        if isinstance(left, ssl.SSLSocket) and left.pending() and not self.is_paused:
            self._loop.call_soon(self._read)

    def _count(self, _client: Client, _data: Any, message: MQTTMessage) -> None:
        self._taken += 1
        self._take(message)

    def _stop_reading(self, *_: Any) -> None:
        self._loop.remove_reader(self._number)

    def _stop_writing(self, *_: Any) -> None:
        self._loop.remove_writer(self._number)
