"""Debian's Alertmanager for tests: the real server, with a port and a folder of its own."""

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.conftest import PATH
from tests.server_process import ServerProcess, free_ports
from tests.waiting import until


class Alertmanager(ServerProcess):
    """In a folder. It tells nobody."""

    def __init__(self, folder: Path) -> None:
        (self.port,), self._folder = free_ports(1), folder
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "alertmanager.yml").write_text(json.dumps({"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}))

    def start(self) -> None:
        files = [f"--config.file={self._folder / 'alertmanager.yml'}", f"--storage.path={self._folder / 'data'}"]
        address = [f"--web.listen-address=127.0.0.1:{self.port}", "--cluster.listen-address="]
        self.launch([str(shutil.which("prometheus-alertmanager", path=PATH)), *files, *address], self._folder / "log")
        until(lambda: self.listens(self.port), (self._folder / "log").read_text)

    def active(self) -> list[dict[str, Any]]:
        with urlopen(f"{self.url}/api/v2/alerts", timeout=60) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found
