"""The live page as a process, and Debian's chromium that looks at it."""

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
ADDRESS = re.compile(r"http://([^/]+:(\d+))/")


class Served:
    """`tidemark serve` at a free port. `port`: where; `said`: its first line."""

    def __init__(self, conf: Path, **environment: str) -> None:
        command = [sys.executable, "-m", "orchestration.cli.app", "--conf", str(conf), "serve", "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | environment, start_new_session=True)
        assert self.process.stderr is not None
        self.said = self.process.stderr.readline()
        match = ADDRESS.search(self.said)
        assert match, self.said + self.process.stderr.read()
        self.port = int(match[2])

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None, body: str = ""
    ) -> tuple[int, Mapping[str, str], str]:
        """Status, headers and body; the path goes as it is, and a stream is not read to its end."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host="Host" in (headers or {}))
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if body:
            connection.putheader("Content-Length", str(len(body.encode())))
        connection.endheaders(body.encode() or None)
        answer = connection.getresponse()
        content = answer.read() if "event-stream" not in answer.headers.get("content-type", "") else b""
        connection.close()
        return answer.status, dict(answer.headers.items()), content.decode("utf-8", "replace")

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextmanager
def served(conf: Path, **environment: str) -> Iterator[Served]:
    server = Served(conf, **environment)
    try:
        yield server
    finally:
        server.end()


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def serious_violations(page: Page) -> list[tuple[str, str]]:
    """List the rules of axe-core that a page breaks seriously, each with the first element that does."""
    page.evaluate(_axe())
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [(of["id"], of["nodes"][0]["html"]) for of in found if of["impact"] in ("serious", "critical")]


@cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text()


def plotted(page: Page, metric: str) -> dict[tuple[str, str], list[float | None]]:
    """Of the chart of a metric the values by device and kind of line."""
    told = [json.loads(place.get_attribute("data-plot") or "") for place in page.locator(".plot").all()]
    (chart,) = [of for of in told if of["metric"] == metric]
    return {(line["device"], line["kind"]): line["y"] for line in chart["lines"]}
