"""`tidemark sql-server`: answers queries over HTTP, each in a process of its own, and publishes its address.

Only the user can read the file with the address and the token.
"""

import json
import os
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path

import uvicorn

from orchestration.connectors.collector.http_protocol import BoundedHttpProtocol
from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Limits
from orchestration.serving.sql.client import Address, address_file
from orchestration.serving.sql.fair_queue import FairQueue
from orchestration.serving.sql.web import QueryApi
from orchestration.serving.sql.workers import Workers
from orchestration.storage.views import Plant

LIMITS = Limits(seconds=60.0, rows=100_000, result_bytes=64 * 1024 * 1024)
MAX_ACTIVE, MAX_WAITING = 8, 200


def serve(plant: Plant, port: int, users: Mapping[str, str], notify: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C. `users`: by token; commands of this user send the first token. `port` 0: any free port."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        listener = socket.create_server(("127.0.0.1", port), backlog=256)
    except OSError as error:
        raise TidemarkError(f"port {port} is not available: {error.strerror}; choose another one with --port.") from error
    file = address_file(plant.lake)
    try:
        with listener, closing(Workers(plant, LIMITS, MAX_ACTIVE)) as workers, suppress(KeyboardInterrupt):
            api = QueryApi(workers, users, FairQueue(MAX_ACTIVE, MAX_WAITING)).application()
            config = uvicorn.Config(
                api, http=BoundedHttpProtocol, ws="none", log_level="warning", access_log=False, timeout_graceful_shutdown=5
            )
            server = uvicorn.Server(config)
            _publish(file, Address(listener.getsockname()[1], next(iter(users)), os.getpid()), notify)
            server.run(sockets=[listener])
    finally:
        file.unlink(missing_ok=True)


def _publish(file: Path, address: Address, notify: Callable[[str], None]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(asdict(address)), encoding="utf-8")
    draft.rename(file)
    notify(f"http://127.0.0.1:{address.port}/sql accepts queries; the token is in {file}")
