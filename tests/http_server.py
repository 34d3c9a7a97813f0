"""A real HTTP server for tests, which answers as a function says."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, TypeAlias


class Asked(NamedTuple):
    """A request. `connection`: another one for each connection that is open."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int


Answer: TypeAlias = tuple[int, bytes]
"""Status and body."""


@contextmanager
def http_server(answer: Callable[[Asked], Answer]) -> Iterator[str]:
    """Its address, without a slash at the end. Redirects lead to /elsewhere."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections are kept

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, content = answer(Asked(self.path, dict(self.headers.items()), body, self.client_address[1]))
            self.send_response(status)
            if status // 100 == 3:
                self.send_header("Location", "/elsewhere")
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
