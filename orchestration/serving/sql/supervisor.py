"""`tidemark sql-server`: holds the socket, keeps a worker behind it, and says where it is.

While a worker starts, questions wait in the socket. The file that names address and token is readable for the user alone.
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
from orchestration.serving.sql.address import Address, address_file
from orchestration.serving.sql.worker import READY

SHORTEST_LIFE_SECONDS, TRIES = 30.0, 3


def serve(folder: Path, lake: Path, port: int, users: Mapping[str, str], tell: Callable[[str], None]) -> None:
    """Until SIGTERM or Ctrl-C. `users`: by token; this user's own commands send the first. `port` 0: any that is free."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        listener = socket.create_server(("127.0.0.1", port), backlog=256)
    except OSError as error:
        raise TidemarkError(f"port {port} cannot be had: {error.strerror}; give another one with --port.") from error
    file = address_file(lake)
    try:
        with listener:
            address = Address(listener.getsockname()[1], next(iter(users)), os.getpid())
            _supervise(folder, listener, users, lambda: _tell(file, address, tell))
    except KeyboardInterrupt:
        return
    finally:
        file.unlink(missing_ok=True)


def _supervise(folder: Path, listener: socket.socket, users: Mapping[str, str], when_ready: Callable[[], None]) -> None:
    short_lives = 0
    while short_lives < TRIES:
        began = time.monotonic()
        worker = _started(folder, listener, users)
        try:
            if worker.stdout is not None and worker.stdout.readline().strip() == READY:
                when_ready()
            worker.wait()
        finally:
            _end(worker)
        short_lives = short_lives + 1 if time.monotonic() - began < SHORTEST_LIFE_SECONDS else 0
    raise TidemarkError(f"the worker ended {TRIES} times shortly after its start; what it said is above.")


def _started(folder: Path, listener: socket.socket, users: Mapping[str, str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "orchestration.serving.sql.worker", str(folder), str(listener.fileno())]
    # In a session of its own, so that Ctrl-C reaches it through us, and a kill of its group ends its JVM.
    worker = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=[listener.fileno()], start_new_session=True
    )
    if worker.stdin is not None:
        worker.stdin.write(json.dumps(dict(users)) + "\n")
        worker.stdin.flush()  # and stays open: its end tells the worker that we are gone
    return worker


def _end(worker: "subprocess.Popen[str]") -> None:
    """With its JVM, whatever state they are in."""
    worker.terminate()
    with suppress(subprocess.TimeoutExpired):
        worker.wait(10)
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def _tell(file: Path, address: Address, tell: Callable[[str], None]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(asdict(address)), encoding="utf-8")
    draft.rename(file)
    tell(f"http://127.0.0.1:{address.port}/sql answers; the token is in {file}")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
