"""An edge node of Sparkplug B for tests: it names metrics in births alone, and sends births again when it is asked to."""

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion

from silver.decoders.sparkplug_b import Payload
from tests.waiting import PATIENCE_SECONDS, until

INT32, INT64, DOUBLE, BOOLEAN = 3, 4, 10, 11
DATATYPES = {"Temperature": INT32, "Pressure": DOUBLE}
Value = tuple[str, float, datetime]
"""Metric, value and time."""


class EdgeNode:
    """Of the group `plant`. `devices`: names of their metrics, in the order of their aliases."""

    def __init__(self, name: str, port: int, devices: Mapping[str, Sequence[str]]) -> None:
        self.name, self.devices, self.rebirths = name, dict(devices), 0
        self._port, self._session, self._seq, self._sending = port, 0, 0, threading.RLock()

    def begin(self) -> None:
        """A session, with its births."""
        self._session += 1
        self._client = Client(CallbackAPIVersion.VERSION2, self.name)
        self._client.max_inflight_messages_set(1000)
        self._client.will_set(f"spBv1.0/plant/NDEATH/{self.name}", self._death(), 1)
        self._client.on_message = self._obey
        subscribed = list[int]()
        self._client.on_subscribe = lambda *_: subscribed.append(1)
        self._client.connect("127.0.0.1", self._port)
        self._client.loop_start()
        self._client.subscribe(f"spBv1.0/plant/NCMD/{self.name}", 1)
        until(lambda: bool(subscribed))
        self.bear()

    def end(self, *, is_said: bool = True) -> None:
        if is_said:
            self._client.publish(f"spBv1.0/plant/NDEATH/{self.name}", self._death(), 1).wait_for_publish(PATIENCE_SECONDS)
        self._client.disconnect()
        self._client.loop_stop()

    def bear(self) -> None:
        with self._sending:
            self._seq = -1
            birth = Payload()
            birth.metrics.add(name="bdSeq", datatype=INT64, long_value=self._session)
            self._send("NBIRTH", "", birth, 0)
            for device in self.devices:
                self.bear_device(device)

    def bear_device(self, device: str) -> None:
        """Its metrics have no values yet."""
        birth = Payload()
        for alias, metric in enumerate(self.devices[device]):
            birth.metrics.add(name=metric, alias=self._alias(device, alias), datatype=DATATYPES[metric], is_null=True)
        self._send("DBIRTH", device, birth, 0)

    def data(self, device: str, values: Sequence[Value], *, is_historical: bool = False) -> None:
        """With QoS 1, although nodes use 0: the test asks for every value."""
        payload = Payload(timestamp=millis(values[-1][2]))
        for name, value, at in values:
            metric = payload.metrics.add(alias=self._alias(device, self.devices[device].index(name)), timestamp=millis(at))
            if is_historical:
                metric.is_historical = True
            if DATATYPES[name] == INT32:
                metric.int_value = int(value) % 2**32
            else:
                metric.double_value = value
        self._send("DDATA", device, payload, 1)

    def kill_device(self, device: str, at: datetime) -> None:
        self._send("DDEATH", device, Payload(timestamp=millis(at)), 1)

    def _alias(self, device: str, place: int) -> int:
        return 10 * [*self.devices].index(device) + place

    def _death(self) -> bytes:
        payload = Payload()
        payload.metrics.add(name="bdSeq", datatype=INT64, long_value=self._session)
        content: bytes = payload.SerializeToString()
        return content

    def _send(self, kind: str, device: str, payload: Any, qos: int) -> None:
        with self._sending:
            self._seq = payload.seq = (self._seq + 1) % 256
            topic = f"spBv1.0/plant/{kind}/{self.name}" + (f"/{device}" if device else "")
            self._client.publish(topic, payload.SerializeToString(), qos)

    def _obey(self, _client: Client, _data: Any, message: MQTTMessage) -> None:
        (command,) = Payload.FromString(message.payload).metrics
        assert (command.name, command.boolean_value) == ("Node Control/Rebirth", True)
        self.rebirths += 1
        self.bear()


def millis(at: datetime) -> int:
    return round(at.timestamp() * 1000)
