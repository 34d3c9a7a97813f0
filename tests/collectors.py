"""`tidemark collect` as a process, for tests and benchmarks."""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from orchestration.connectors.sources.spool import Spool
from tests.certificates import self_signed
from tests.waiting import PATIENCE_SECONDS

ROOT = Path(__file__).parent.parent
PROGRAM = "from orchestration.cli.app import main; main()"
JSON = {"Content-Type": "application/json"}
PAYLOAD = "format: json, device: {field: device}, time: {field: ts}, metric: {field: metric}, value: {field: value}"
FILES = {
    "pipeline": "pipeline: test\nlake: ./lake\npolicy: {lateness_seconds: 600}\n",
    "metrics": "metrics:\n  temperature: {unit: degC, aggregation: average, step_seconds: 600}\n",
    "devices": "devices:\n  oven: {groups: [kitchen]}\n",
    "groups": "groups:\n  kitchen: {metrics: [temperature]}\n",
    "rules": "rules: {}\n",
}


def write_conf(folder: Path, **sources: str) -> Path:
    """A conf with these sources, each as the text of its transport, such as `http: {port: 0}`, and of what it has instead of PAYLOAD."""
    conf = folder / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (conf / f"{name}.yml").write_text(text)
    entries = []
    for name, text in sources.items():
        rest = [setting for setting in re.findall(r"\w+: (?:\{.*?\}|\w+)", PAYLOAD) if f"{setting.split(':')[0]}:" not in text]
        entries.append(f"  {name}: {{{', '.join((text, *rest))}}}")
    (conf / "sources.yml").write_text("sources:\n" + "\n".join(entries) + "\n")
    return conf


class Collector:
    """A process in a group of its own. `folder`: of its conf. `ports`: by source. `log`: what it has said until then."""

    def __init__(self, conf: Path, *names: str, **environment: str) -> None:
        self.log: list[str] = []
        self.folder = conf.parent
        command = [sys.executable, "-c", PROGRAM, "--conf", str(conf), "collect", *names]
        variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables, start_new_session=True)
        self.ports: dict[str, int] = {}
        wanted = len(names) or (conf / "sources.yml").read_text().count("port:")
        while len(self.ports) < wanted:
            if match := re.match(r"tidemark: source (\w+): .*://[^/]*?:(\d+)", self._line()):
                self.ports[match[1]] = int(match[2])

    def says(self, text: str) -> str:
        """Returns when it says so: the line."""
        while text not in (line := self._line()):
            pass
        return line

    def connect(self, source: str = "plain") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.ports[source]), PATIENCE_SECONDS)

    def ask(
        self, body: bytes, headers: Mapping[str, str] = JSON, source: str = "plain", *, method: str = "POST", path: str = "/events"
    ) -> tuple[int, dict[str, Any]]:
        """Status and answer."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.ports[source], timeout=PATIENCE_SECONDS)) as connection:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content.startswith(b"{") else {}

    def kept(self, source: str = "plain") -> list[bytes]:
        """Events in the spool."""
        return [payload for _, payload in spooled(self.folder, source)]

    def _line(self) -> str:
        assert self.process.stderr
        line = self.process.stderr.readline()
        assert line, f"it ended: {self.log}"
        self.log.append(line)
        return line

    def end(self) -> int:
        """As SIGTERM does it; returns the exit code."""
        self.process.terminate()
        return self.wait()

    def kill(self) -> int:
        self.process.kill()
        return self.wait()

    def wait(self) -> int:
        assert self.process.stderr
        self.log += self.process.stderr.readlines()
        self.process.stderr.close()
        return self.process.wait()


@contextmanager
def collecting(conf: Path, *names: str, **environment: str) -> Iterator[Collector]:
    """A collector that ends with the block, well."""
    collector = Collector(conf, *names, **environment)
    try:
        yield collector
    except BaseException:
        collector.process.kill()
        collector.wait()
        raise
    assert collector.process.poll() is not None or collector.end() == 0, collector.log


def spooled(folder: Path, source: str) -> list[tuple[str, bytes]]:
    """Position and payload of all that a spool holds, read as a run reads it."""
    spool = Spool(source, folder / "lake" / "spool" / source, 1 << 40)
    end = spool.latest_offset({})
    parts = spool.partitions({}, end) if end else []
    tables = [table for part in parts for table in spool.read(part)]
    return [pair for table in tables for pair in zip(table["position"].to_pylist(), table["payload"].to_pylist(), strict=True)]


def tls_files(folder: Path) -> str:
    """A certificate for localhost that signs itself, as the setting `tls` of conf."""
    certificate, key = self_signed(folder)
    return f"{{certificate: {certificate}, key: {key}}}"
