"""`tidemark sql-server`: a supervisor that holds the socket and publishes the address, and the worker that answers on it.

While a worker starts, requests wait in the socket. Only the user can read the file with the address and the token.

python -m orchestration.serving.sql.server CONF FD     the worker: reads users as a line of JSON on stdin, which stays open, prints READY
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import uvicorn

from orchestration.conf.load import load
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.serving.sql.answer import Limits
from orchestration.serving.sql.client import Address, address_file
from orchestration.serving.sql.fair_queue import FairQueue
from orchestration.serving.sql.spark_engine import SparkEngine
from orchestration.serving.sql.web import QueryApi

LIMITS = Limits(seconds=60.0, rows=100_000, result_bytes=64 * 1024 * 1024)
MAX_ACTIVE, MAX_WAITING = 8, 200
TASK_SLOTS = MAX_ACTIVE * 8
"""Tasks at once: far more than cores, so that endless queries share the cores with the others instead of keeping them."""
POLL_SECONDS, PATIENCE_SECONDS = 2.0, 15.0
WARM_UP_SECONDS = 60.0
MIN_LIFE_SECONDS, MAX_SHORT_LIVES = 30.0, 3
READY = "ready"
RECYCLE_EXIT_CODE = 75
"""Exit code of a worker whose cancelled work does not end: code that no interrupt reaches, such as a regular expression."""


def serve(folder: Path, lake: Location, port: int, users: Mapping[str, str], notify: Callable[[str], None]) -> None:
    """Serve until SIGTERM or Ctrl-C. `users`: by token; commands of this user send the first token. `port` 0: any free port."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        listener = socket.create_server(("127.0.0.1", port), backlog=256)
    except OSError as error:
        raise TidemarkError(f"port {port} is not available: {error.strerror}; choose another one with --port.") from error
    file = address_file(lake)
    address = Address(listener.getsockname()[1], next(iter(users)), os.getpid())
    try:
        with listener, suppress(KeyboardInterrupt):
            _supervise(folder, listener, users, lambda: _publish(file, address, notify))
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
    command = [sys.executable, "-m", "orchestration.serving.sql.server", str(folder), str(listener.fileno())]
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


def work() -> None:
    """The worker: answer on the inherited socket, from a JVM without write access, until SIGTERM or the end of the supervisor."""
    folder, descriptor = Path(sys.argv[1]), int(sys.argv[2])
    users = json.loads(sys.stdin.readline())
    threading.Thread(target=_exit_with_supervisor, daemon=True).start()
    with SparkEngine(load(folder), LIMITS, TASK_SLOTS) as engine:
        engine.prepare_newest()
        for task in (_warm_up, _watch):
            threading.Thread(target=task, args=(engine,), daemon=True).start()
        api = QueryApi(engine, users, FairQueue(MAX_ACTIVE, MAX_WAITING)).application()
        server = uvicorn.Server(uvicorn.Config(api, log_level="warning", access_log=False, timeout_graceful_shutdown=5))
        print(READY, flush=True)
        asyncio.run(server.serve(sockets=[socket.socket(fileno=descriptor)]))


def _exit_with_supervisor() -> None:
    sys.stdin.read()
    os._exit(0)


def _warm_up(engine: SparkEngine) -> None:
    """Run cheap queries while no user does, so that the JVM has compiled the code of a query.

    Measured: the first user's query took 1.1 s instead of 1.9 s; one of the usual forms takes 0.15 s after 300 queries, 0.3 s after 30.
    """
    spent = 0.0
    with suppress(TidemarkError):  # users get the same error for their own query
        while spent < WARM_UP_SECONDS:
            begin = time.monotonic()
            if engine.warm_up():
                spent += time.monotonic() - begin
            else:
                time.sleep(POLL_SECONDS)


def _watch(engine: SparkEngine) -> None:
    """Prepare new snapshots before their first query, and exit when cancelled work does not end."""
    stuck_since: float | None = None
    while True:
        time.sleep(POLL_SECONDS)
        try:
            engine.prepare_newest()
        except TidemarkError as error:
            print(f"tidemark: {error}", file=sys.stderr)
        stuck_since = (stuck_since or time.monotonic()) if engine.is_stuck() else None
        if stuck_since is not None and time.monotonic() - stuck_since > PATIENCE_SECONDS:
            os._exit(RECYCLE_EXIT_CODE)


if __name__ == "__main__":
    work()
