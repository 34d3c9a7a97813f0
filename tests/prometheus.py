"""Debian's Prometheus and Alertmanager for tests, each with a port and a folder of its own, and promtool."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.conftest import PATH
from tests.server_process import ServerProcess, free_ports
from tests.waiting import until


class Prometheus(ServerProcess):
    """In a folder. It scrapes one port of this machine each second."""

    def __init__(self, folder: Path, scraped: int, token: str, rules: Path) -> None:
        folder.mkdir()
        (self.port,), self._folder = free_ports(1), folder
        job = {
            "job_name": "tidemark",
            "authorization": {"credentials": token},
            "static_configs": [{"targets": [f"127.0.0.1:{scraped}"]}],
        }
        settings = {"global": {"scrape_interval": "1s"}, "rule_files": [str(rules)], "scrape_configs": [job]}
        (folder / "prometheus.yml").write_text(json.dumps(settings))

    def start(self) -> None:
        program, address = str(shutil.which("prometheus", path=PATH)), f"127.0.0.1:{self.port}"
        files = [f"--config.file={self._folder / 'prometheus.yml'}", f"--storage.tsdb.path={self._folder / 'data'}"]
        self.launch([program, *files, f"--web.listen-address={address}"], self._folder / "log")
        until(lambda: self.listens(self.port), (self._folder / "log").read_text)

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of its API; the server may still be starting."""
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{urlencode(parameters)}", timeout=60) as answer:
                return json.load(answer)["data"]
        except OSError:
            return {}


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
            firing: list[dict[str, Any]] = json.load(answer)
        return firing


def promtool(*arguments: str, text: str | None = None) -> tuple[int, str]:
    command = [str(shutil.which("promtool", path=PATH)), *arguments]
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout
