"""`tidemark alerts watch` as a process, and an HTTP receiver of what it tells, for tests and benchmarks."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.collectors import PROGRAM, ROOT
from tests.http_server import Answer, Asked, http_server
from tests.server_process import ServerProcess
from tests.waiting import until


class Watcher(ServerProcess):
    """In the folder of a conf. What it says is in `log`."""

    def __init__(self, conf: Path) -> None:
        self._conf, self._log = conf, conf.parent / "watch.log"

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def start(self) -> None:
        """Until it has begun to keep what it knows."""
        before, file = time.time(), self._conf.parent / "lake" / "fast_alerts" / "state.json"
        command = [sys.executable, "-c", PROGRAM, "--conf", str(self._conf), "alerts", "watch"]
        self.launch(command, self._log, env={**os.environ, "PYTHONPATH": str(ROOT)})
        until(lambda: file.exists() and file.stat().st_mtime > before, lambda: self.log)

    def end(self) -> int:
        """As SIGTERM does it; returns the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


class Runner(Watcher):
    """`tidemark run`, which goes on; it begins with what is there, so nobody has to wait for it."""

    def start(self) -> None:
        command = [sys.executable, "-c", PROGRAM, "--conf", str(self._conf), "run"]
        self.launch(command, self._log, env={**os.environ, "PYTHONPATH": str(ROOT)})


@dataclass
class Told:
    """`messages`: as they came, each with the instant at which it came. `answers`: codes of the next requests, then 204."""

    url: str = ""
    messages: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    @property
    def states(self) -> list[tuple[str, str, str]]:
        return [(message["alert"], message["entities"][0], message["state"]) for _, message in self.messages]

    @property
    def ids(self) -> list[str]:
        return [message["message_id"] for _, message in self.messages]


@contextmanager
def receiver() -> Iterator[Told]:
    told = Told()

    def answer(asked: Asked) -> Answer:
        status = told.answers.pop(0) if told.answers else 204
        if status < 300:
            told.messages.append((time.time(), json.loads(asked.body)))
        return status, b""

    with http_server(answer) as told.url:
        yield told
