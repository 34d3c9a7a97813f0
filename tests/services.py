"""`tidemark up` as a process, for tests."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil

from orchestration.location import Location
from orchestration.service.process import session_of
from orchestration.supervisor.service_state import PartState, read_service
from tests.waiting import PATIENCE_SECONDS, until

LINES: Mapping[str, str] = MappingProxyType({"Content-Type": "application/x-ndjson"})


class Up:
    """A running one. `conf`: its folder; `said`: what it told the terminal so far."""

    def __init__(self, conf: Path, *parts: str) -> None:
        self.conf, self.lake = conf, Location(conf.parent / "lake")
        self._output = conf.parent / "up.txt"
        with self._output.open("a") as stream:
            command = [sys.executable, "-m", "orchestration.cli.app", "--conf", str(conf), "up", *parts]
            self.process = subprocess.Popen(command, stdout=stream, stderr=stream, start_new_session=True)
        try:
            until(self._runs, lambda: self.said)
        except BaseException:  # an interrupt too: nobody else can end it; its parts end with it
            self.process.kill()
            raise

    @property
    def said(self) -> str:
        return self._output.read_text()

    def part(self, name: str) -> PartState:
        service = read_service(self.lake)
        assert service is not None
        return next(part for part in service.parts if part.name == name)

    def kill(self, name: str) -> None:
        pid = self.part(name).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def left(self) -> list[psutil.Process]:
        """What still runs of the parts that are noted."""
        service = read_service(self.lake)
        return [process for part in service.parts if part.pid for process in session_of(part.pid)] if service else []

    def end(self) -> int:
        """By `tidemark down`; the exit code of `up`."""
        assert tidemark(self.conf, "down").returncode == 0
        return self.process.wait()

    def _runs(self) -> bool:
        assert self.process.poll() is None, self.said
        service = read_service(self.lake)
        return service is not None and service.pid == self.process.pid and all(part.state == "running" for part in service.parts)


def status_of(address: str, body: bytes | None = None, headers: Mapping[str, str] = LINES) -> int:
    """The status of an answer; 0 where nobody listens."""
    try:
        with urlopen(Request(address, body, dict(headers)), timeout=PATIENCE_SECONDS) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code
    except OSError:
        return 0


def tidemark(conf: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "orchestration.cli.app", "--conf", str(conf), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(conf: Path, *arguments: str) -> list[dict[str, Any]]:
    """What a command prints with --format json."""
    ended = tidemark(conf, *arguments, "--format", "json")
    # 1: the rows are there, and something critical is wrong.
    assert ended.returncode == 0 or (arguments[0], ended.returncode) == ("status", 1), ended.stderr
    found: list[dict[str, Any]] = json.loads(ended.stdout)
    return found
