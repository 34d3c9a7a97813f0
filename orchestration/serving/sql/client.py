"""The sql-server as an engine: asks over HTTP and reads the Arrow stream.

What takes a while to import is imported when the server has been asked: it works on the answer meanwhile.
"""

import http.client
import json
import uuid
from datetime import datetime
from importlib import import_module

from orchestration.errors import TidemarkError
from orchestration.serving.sql.address import Address
from orchestration.serving.sql.answer import Answer, Question
from orchestration.serving.sql.refusal import RefusedError
from orchestration.storage.snapshot import Snapshot

FOR_AN_ANSWER = ("pyarrow", "rich.console", "rich.table")
ARROW = "application/vnd.apache.arrow.stream"


class ServerEngine:
    """Of the server at an address."""

    def __init__(self, address: Address) -> None:
        """Nothing is asked yet."""
        self._address = address
        self._name: str | None = None

    def ask(self, question: Question) -> Answer:
        """As the server's engine answers; its refusals come with its exit code."""
        at = question.at and question.at.isoformat()
        self._name = uuid.uuid4().hex
        body = {"query": question.query, "snapshot": question.snapshot_id, "at": at, "name": self._name}
        response, received = self._send("POST", "/sql", json.dumps(body))
        if response.status != http.client.OK:
            raise _refusal(response.status, received)
        import pyarrow as pa

        rows = pa.ipc.open_stream(received).read_all()
        return Answer(rows, _snapshot(response.getheader("Tidemark-Snapshot")), response.getheader("Tidemark-Is-Cut-Off") == "true")

    def cancel(self) -> None:
        """End the question that is being answered."""
        if self._name is not None:
            self._send("DELETE", f"/sql/{self._name}", "")

    def _send(self, method: str, path: str, body: str) -> tuple[http.client.HTTPResponse, bytes]:
        headers = {"Authorization": f"Bearer {self._address.token}", "Accept": ARROW, "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self._address.port)
        try:
            connection.request(method, path, body, headers)
            for module in FOR_AN_ANSWER:
                import_module(module)
            response = connection.getresponse()
            return response, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise TidemarkError(f"the sql-server at port {self._address.port} does not answer ({error}); ask again, or stop it.") from error
        finally:
            connection.close()


def _refusal(status: int, received: bytes) -> TidemarkError:
    kind = RefusedError if status < http.client.INTERNAL_SERVER_ERROR else TidemarkError
    try:
        return kind(json.loads(received)["error"])
    except (ValueError, KeyError, TypeError):
        return kind(f"the sql-server answered {status}.")


def _snapshot(header: str | None) -> Snapshot | None:
    if header is None:
        return None
    told = json.loads(header)
    at = datetime.fromisoformat(told["at"])
    return Snapshot(told["snapshot_id"], at, told["generation"], told["bronze_batch"], {}, {})
