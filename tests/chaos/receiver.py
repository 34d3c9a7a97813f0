"""What a pager is to a plant: a process that writes down each message before it answers, and that can be killed.

`python -m tests.chaos.receiver PORT FILE`
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.server_process import ServerProcess, free_ports
from tests.waiting import until


class Receiver(ServerProcess):
    """`address`: where it is, whether it runs or not."""

    def __init__(self, folder: Path) -> None:
        """Not yet started."""
        (self._port,), self._folder = free_ports(1), folder
        self.address = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Until it answers."""
        command = [sys.executable, "-m", "tests.chaos.receiver", str(self._port), str(self._folder / "received")]
        self.launch(command, self._folder / "receiver.log")
        until(lambda: self.listens(self._port))

    def received(self) -> list[dict[str, Any]]:
        """Each message as often as it has come; of one that was being written at a kill nothing, as nobody has heard that it came."""
        lines = (self._folder / "received").read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Path(sys.argv[2]).open("a") as file:
            file.write(json.dumps(body | {"key": self.headers["Idempotency-Key"]}) + "\n")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Handler).serve_forever()
