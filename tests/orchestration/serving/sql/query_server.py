"""`tidemark sql-server` as a process over the lake of a test."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from orchestration.location import Location
from orchestration.serving.sql.client import address_of
from tests.waiting import PATIENCE_SECONDS, until

REPOSITORY = Path(__file__).parents[4]


@dataclass(frozen=True)
class Server:
    process: "subprocess.Popen[bytes]"
    folder: Path
    url: str
    token: str

    def post(self, body: Any, accept: str = "application/json", token: str | None = None, **more: str) -> requests.Response:
        headers = {"Authorization": f"Bearer {token or self.token}", "Accept": accept, **more}
        return requests.post(f"{self.url}/sql", data=json.dumps(body), headers=headers, timeout=PATIENCE_SECONDS)

    def rows(self, query: str) -> Any:
        response = self.post({"query": query})
        assert response.status_code == 200, response.text
        return response.json()["rows"]

    def cancel(self, name: str, token: str | None = None) -> int:
        """The status of the answer."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        return requests.delete(f"{self.url}/sql/{name}", headers=headers, timeout=PATIENCE_SECONDS).status_code

    def active(self) -> int:
        """How many questions have come and are not answered."""
        return int(requests.get(f"{self.url}/health", timeout=PATIENCE_SECONDS).json()["active"])

    def workers(self) -> list[int]:
        """Ids of the processes that answer: their parent is the one that makes them, whose parent is the server."""
        makers = [child for child in children(self.process.pid) if children(child)]
        return [worker for maker in makers for worker in children(maker)]


def children(process: int) -> list[int]:
    return [int(child) for file in Path(f"/proc/{process}/task").glob("*/children") for child in file.read_text().split()]


@contextmanager
def served(folder: Path, command: Sequence[str]) -> Iterator[Server]:
    """A server over the lake in a folder."""
    state = {"XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(REPOSITORY)}
    with (folder / "server.log").open("wb") as log, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", state["XDG_STATE_HOME"])
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | state, cwd=folder)
        try:
            until(lambda: address_of(Location(folder / "lake")) is not None or process.poll() is not None)
            address = address_of(Location(folder / "lake"))
            assert address is not None, (folder / "server.log").read_text()
            yield Server(process, folder, f"http://127.0.0.1:{address.port}", address.token)
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
