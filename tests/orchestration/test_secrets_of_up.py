"""Tokens of the page and of the collector are in no file that `tidemark up` leaves, whatever is asked with them."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests import canary
from tests.collectors import write_conf
from tests.server_process import free_ports
from tests.services import Up, status_of, tidemark
from tests.waiting import until

SECRET = "canary-4712"
JSON = {"Content-Type": "application/json"}
PAGE, COLLECTOR, KEY = f"{SECRET}-page", f"{SECRET}-collector", f"{SECRET}-key"


def test_no_file_of_up_has_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGE_TOKEN", PAGE)
    monkeypatch.setenv("OF_KEY", KEY)
    (tmp_path / "secret").write_text(COLLECTOR)
    web, page, tcp = free_ports(3)
    sources = {"web": f"http: {{port: {web}, token: '${{file:./secret}}'}}", "gate": f"tcp: {{port: {tcp}, key: '${{env:OF_KEY}}'}}"}
    conf = write_conf(tmp_path, **sources)
    with (conf / "pipeline.yml").open("a") as file:
        file.write(f"page: {{port: {page}, token: '${{env:PAGE_TOKEN}}'}}\n")
    address = f"http://127.0.0.1:{page}/"
    up = Up(conf, "collector", "page")
    try:
        link = tidemark(conf, "serve", "--link").stdout.strip()
        until(lambda: status_of(address) == 401)
        until(lambda: status_of(f"http://127.0.0.1:{web}/health") == 200)
        assert link == f"{address}?token={PAGE}"
        assert status_of(f"{address}?token={SECRET}-wrong") == 401
        assert status_of(address, headers={"Authorization": f"Bearer {PAGE}"}) == 200
        events = f"http://127.0.0.1:{web}/events"
        assert [status_of(events, b"{}", {"Authorization": f"Bearer {token}"} | JSON) for token in (COLLECTOR, KEY)] == [202, 401]
        shown = tidemark(conf, "logs").stdout
        assert f"{address} shows what is true now" in shown
        with canary.command_lines() as seen:
            tidemark(conf, "status")
    finally:
        with suppress(AssertionError):
            up.end()
    assert canary.texts_with(SECRET, [shown, up.said, *seen]) == []
    assert [name for name in canary.files_with(SECRET, tmp_path) if name != "secret"] == []


def test_up_that_is_detached_says_how_to_find_the_link_and_leaves_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGE_TOKEN", PAGE)
    (port,) = free_ports(1)
    conf = write_conf(tmp_path, plant="path: ./landing")
    with (conf / "pipeline.yml").open("a") as file:
        file.write(f"page: {{port: {port}, token: '${{env:PAGE_TOKEN}}'}}\n")
    command = [sys.executable, "-m", "orchestration.cli.app", "--conf", str(conf), "up", "--detach", "page"]
    started = subprocess.run(command, capture_output=True, text=True, check=True)
    try:
        assert f"the live page is at http://127.0.0.1:{port}/; `tidemark serve --link` prints" in started.stderr
    finally:
        assert tidemark(conf, "down").returncode == 0
    assert canary.texts_with(SECRET, [started.stdout, started.stderr]) == []
    assert canary.files_with(SECRET, tmp_path) == []
