"""An MQTT broker for tests: the real mosquitto, with a port and a folder of its own, which can be killed and started again."""

import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

from tests.conftest import PATH
from tests.server_process import ServerProcess, free_ports
from tests.waiting import PATIENCE_SECONDS, until

SETTINGS = """
listener {port} 127.0.0.1
user root
allow_anonymous {is_open}
persistence true
persistence_location {folder}/
max_queued_messages 0
max_inflight_messages 1000
set_tcp_nodelay true
"""
SAVING = ("autosave_on_changes true", "autosave_interval 1")
"""It saves each change, or a kill would lose all sessions, and what it has acknowledged to publishers; that is slow."""


class Mosquitto(ServerProcess):
    """In a folder; `more`: further lines of its conf."""

    def __init__(self, folder: Path, *more: str) -> None:
        folder.mkdir(exist_ok=True)
        (self.port,), self._folder = free_ports(1), folder
        is_open = str(not any(line.startswith("password_file") for line in more)).lower()
        (folder / "mosquitto.conf").write_text("\n".join((SETTINGS.format(port=self.port, folder=folder, is_open=is_open), *more)) + "\n")

    @property
    def address(self) -> str:
        """As the setting `broker` of conf."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [str(shutil.which("mosquitto", path=PATH)), "-c", str(self._folder / "mosquitto.conf")]
        self.launch(command, self._folder / "log")
        until(lambda: self.listens(self.port), (self._folder / "log").read_text)

    def publish(self, messages: Iterable[tuple[str, bytes]], **more: Any) -> None:
        """With QoS 1; the broker has acknowledged them when this returns."""
        publisher = Client(CallbackAPIVersion.VERSION2, "publisher")
        publisher.max_inflight_messages_set(1000)
        publisher.connect("127.0.0.1", self.port)
        publisher.loop_start()
        for sent in [publisher.publish(topic, payload, 1, **more) for topic, payload in messages]:
            sent.wait_for_publish(PATIENCE_SECONDS)
            assert sent.is_published()
        publisher.disconnect()
        publisher.loop_stop()


def mosquitto(folder: Path, *more: str) -> AbstractContextManager[Mosquitto]:
    return Mosquitto(folder, *more).running()
