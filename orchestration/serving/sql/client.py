"""The sql-server as an engine, for the user who started it. Slow imports happen while the server works on the answer."""

import hashlib
import http.client
import json
import os
import uuid
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.serving.sql.answer import Answer, Question, RefusedError
from orchestration.storage.snapshot import Snapshot

ANSWER_MODULES = ("pyarrow", "rich.console", "rich.table")
ARROW = "application/vnd.apache.arrow.stream"


@dataclass(frozen=True)
class Address:
    """A port of 127.0.0.1. `process`: the process id of the supervisor."""

    port: int
    token: str
    process: int


def address_file(lake: Location) -> Path:
    """The file below XDG_STATE_HOME that holds the address; one for each lake."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "tidemark" / "servers" / f"{hashlib.sha256(str(lake.local.resolve()).encode()).hexdigest()[:16]}.json"


def address_of(lake: Location) -> Address | None:
    """None if no server of this user runs on the lake."""
    try:
        address = Address(**json.loads(address_file(lake).read_text(encoding="utf-8")))
        os.kill(address.process, 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return None
    return address


class ServerEngine:
    """Asks the server at an address."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._name: str | None = None

    def ask(self, question: Question) -> Answer:
        """The answer of the server. Its refusals become RefusedError, its failures TidemarkError."""
        at = question.at and question.at.isoformat()
        self._name = uuid.uuid4().hex
        body = {"query": question.query, "snapshot": question.snapshot_id, "at": at, "name": self._name}
        response, content = self._send("POST", "/sql", json.dumps(body))
        if response.status != http.client.OK:
            raise _error(response.status, content)
        import pyarrow as pa

        rows = pa.ipc.open_stream(content).read_all()
        return Answer(rows, _snapshot(response.getheader("Tidemark-Snapshot")), response.getheader("Tidemark-Is-Cut-Off") == "true")

    def cancel(self) -> None:
        """Cancel the running query."""
        if self._name is not None:
            self._send("DELETE", f"/sql/{self._name}", "")

    def _send(self, method: str, path: str, body: str) -> tuple[http.client.HTTPResponse, bytes]:
        headers = {"Authorization": f"Bearer {self._address.token}", "Accept": ARROW, "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self._address.port)
        try:
            connection.request(method, path, body, headers)
            for module in ANSWER_MODULES:
                import_module(module)
            response = connection.getresponse()
            return response, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise TidemarkError(f"the sql-server at port {self._address.port} does not answer ({error}); try again, or stop it.") from error
        finally:
            connection.close()


def _error(status: int, content: bytes) -> TidemarkError:
    kind = RefusedError if status < http.client.INTERNAL_SERVER_ERROR else TidemarkError
    try:
        return kind(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return kind(f"the sql-server answered {status}.")


def _snapshot(header: str | None) -> Snapshot | None:
    if header is None:
        return None
    fields = json.loads(header)
    return Snapshot(**fields | {"at": datetime.fromisoformat(fields["at"])}, versions={}, closed_until={})
