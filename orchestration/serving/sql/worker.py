"""The worker process of the sql-server: a JVM without write access, and HTTP on an inherited socket. `supervisor` starts and restarts it.

python -m orchestration.serving.sql.worker CONF FD     reads the users as a line of JSON on stdin, which stays open; prints READY on stdout
"""

import asyncio
import contextlib
import json
import os
import socket
import sys
import threading
import time
from pathlib import Path

import uvicorn

from orchestration.conf.load import load
from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Limits
from orchestration.serving.sql.fair_queue import FairQueue
from orchestration.serving.sql.spark_engine import SparkEngine
from orchestration.serving.sql.web import QueryApi, application

LIMITS = Limits(seconds=60.0, rows=100_000, result_bytes=64 * 1024 * 1024)
MAX_ACTIVE, MAX_WAITING = 8, 200
TASK_SLOTS = MAX_ACTIVE * 8
"""Tasks at once: far more than cores, so that endless queries share the cores with the others instead of keeping them."""
POLL_SECONDS, PATIENCE_SECONDS = 2.0, 15.0
WARM_UP_SECONDS = 60.0
READY = "ready"
RECYCLE_EXIT_CODE = 75
"""Exit code of a worker whose cancelled work does not end: code that no interrupt reaches, such as a regular expression."""


def main() -> None:
    """Serve until SIGTERM."""
    folder, descriptor = Path(sys.argv[1]), int(sys.argv[2])
    users = json.loads(sys.stdin.readline())
    threading.Thread(target=_exit_with_supervisor, daemon=True).start()
    with SparkEngine(load(folder), LIMITS, TASK_SLOTS) as engine:
        engine.prepare_newest()
        for task in (_warm_up, _watch):
            threading.Thread(target=task, args=(engine,), daemon=True).start()
        asyncio.run(_serve(engine, users, socket.socket(fileno=descriptor)))


async def _serve(engine: SparkEngine, users: dict[str, str], listener: socket.socket) -> None:
    api = QueryApi(engine, users, FairQueue(MAX_ACTIVE, MAX_WAITING))
    server = uvicorn.Server(uvicorn.Config(application(api), log_level="warning", access_log=False, timeout_graceful_shutdown=5))
    print(READY, flush=True)
    await server.serve(sockets=[listener])


def _exit_with_supervisor() -> None:
    sys.stdin.read()
    os._exit(0)


def _warm_up(engine: SparkEngine) -> None:
    """Run cheap queries while no user does, so that the JVM has compiled the code of a query.

    Measured: the first user's query took 1.1 s instead of 1.9 s; one of the usual forms takes 0.15 s after 300 queries, 0.3 s after 30.
    """
    spent = 0.0
    with contextlib.suppress(TidemarkError):  # users get the same error for their own query
        while spent < WARM_UP_SECONDS:
            begin = time.monotonic()
            if engine.warm_up():
                spent += time.monotonic() - begin
            else:
                time.sleep(POLL_SECONDS)


def _watch(engine: SparkEngine) -> None:
    """Prepare each new snapshot before its first query, and exit when cancelled work does not end."""
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
    main()
