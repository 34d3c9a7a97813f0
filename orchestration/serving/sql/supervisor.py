"""`tidemark sql-server`: holds the socket, restarts the worker that answers on it, and publishes the address.

While a worker starts, requests wait in the socket. Only the user can read the file with the address and the token.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.serving.sql.address import Address, address_file
from orchestration.serving.sql.worker import READY

MIN_LIFE_SECONDS, MAX_SHORT_LIVES = 30.0, 3


def serve(folder: Path, lake: Location, port: int, users: Mapping[str, str], notify: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C. `users`: by token; commands of this user send the first token. `port` 0: any free port."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        listener = socket.create_server(("127.0.0.1", port), backlog=256)
    except OSError as error:
        raise TidemarkError(f"port {port} is not available: {error.strerror}; choose another one with --port.") from error
    file = address_file(lake)
    try:
        with listener:
            address = Address(listener.getsockname()[1], next(iter(users)), os.getpid())
            _supervise(folder, listener, users, lambda: _publish(file, address, notify))
    except KeyboardInterrupt:
        return
    finally:
        file.unlink(missing_ok=True)


def _supervise(folder: Path, listener: socket.socket, users: Mapping[str, str], when_ready: Callable[[], None]) -> None:
    short_lives = 0
    while short_lives < MAX_SHORT_LIVES:
        began = time.monotonic()
        worker = _start_worker(folder, listener, users)
        try:
            if worker.stdout is not None and worker.stdout.readline().strip() == READY:
                when_ready()
            worker.wait()
        finally:
            _stop(worker)
        short_lives = short_lives + 1 if time.monotonic() - began < MIN_LIFE_SECONDS else 0
    raise TidemarkError(f"the worker ended {MAX_SHORT_LIVES} times shortly after its start; its messages are above.")


def _start_worker(folder: Path, listener: socket.socket, users: Mapping[str, str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "orchestration.serving.sql.worker", str(folder), str(listener.fileno())]
    # In a session of its own: Ctrl-C reaches the supervisor only, and killing its process group ends its JVM too.
    worker = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=[listener.fileno()], start_new_session=True
    )
    if worker.stdin is not None:
        worker.stdin.write(json.dumps(dict(users)) + "\n")
        worker.stdin.flush()  # and stays open: the worker exits when it is closed
    return worker


def _stop(worker: "subprocess.Popen[str]") -> None:
    """End the worker and its JVM, in whatever state they are."""
    worker.terminate()
    with suppress(subprocess.TimeoutExpired):
        worker.wait(10)
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def _publish(file: Path, address: Address, notify: Callable[[str], None]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(asdict(address)), encoding="utf-8")
    draft.rename(file)
    notify(f"http://127.0.0.1:{address.port}/sql accepts queries; the token is in {file}")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
