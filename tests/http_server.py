"""A real HTTP server for tests, which answers as a function says."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeAlias


class Asked(NamedTuple):
    """A request. `connection`: another one for each connection that is open."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int


Answer: TypeAlias = tuple[int, bytes] | tuple[int, bytes, str]
"""Status, body, and the header Retry-After."""


@contextmanager
def http_server(answer: Callable[[Asked], Answer]) -> Iterator[str]:
    """Its address, without a slash at the end. Redirects lead to /elsewhere."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections are kept

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, content, *retry_after = answer(Asked(self.path, dict(self.headers.items()), body, self.client_address[1]))
            self.send_response(status)
            if status // 100 == 3:
                self.send_header("Location", "/elsewhere")
            for value in retry_after:
                self.send_header("Retry-After", value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:  # else a test that fails never ends
            server.shutdown()
            thread.join()


@dataclass
class Receiver:
    """`requests`: as they came. `answers`: statuses of the next ones, then 204. `retry_after`: of any but 204."""

    url: str = ""
    requests: list[Asked] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    retry_after: str | None = None

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(asked.body) for asked in self.requests]

    @property
    def keys(self) -> list[str]:
        return [asked.headers["Idempotency-Key"] for asked in self.requests]


@contextmanager
def receiving() -> Iterator[Receiver]:
    made = Receiver()

    def answer(asked: Asked) -> Answer:
        made.requests.append(asked)
        status = made.answers.pop(0) if made.answers else 204
        return (status, b"", made.retry_after) if made.retry_after and status != 204 else (status, b"")

    with http_server(answer) as made.url:
        yield made
