"""The process that answers: a JVM that may not write, and HTTP on a socket that it was handed. `supervisor` starts it, and again after it.

python -m orchestration.serving.sql.worker CONF FD     with the users as a line of JSON on stdin, which stays open; says READY on stdout
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
from orchestration.serving.sql.fair_queue import Turns
from orchestration.serving.sql.spark_engine import SparkEngine
from orchestration.serving.sql.web import Desk, application

LIMITS = Limits(seconds=60.0, rows=100_000, result_bytes=64 * 1024 * 1024)
AT_ONCE, LONGEST_QUEUE = 8, 200
SLOTS = AT_ONCE * 8
"""Tasks at once: far more than cores, so that those of endless queries share the cores with the others and do not keep them."""
LOOK_SECONDS, PATIENCE_SECONDS = 2.0, 15.0
PRACTICE_SECONDS = 60.0
READY = "ready"
RECYCLE = 75
"""Exit code of a worker that cannot get rid of work that was ended: code that no interrupt reaches, such as a regular expression."""


def main() -> None:
    """Serve until SIGTERM."""
    folder, descriptor = Path(sys.argv[1]), int(sys.argv[2])
    users = json.loads(sys.stdin.readline())
    threading.Thread(target=_leave_with_supervisor, daemon=True).start()
    with SparkEngine(load(folder), LIMITS, SLOTS) as engine:
        engine.warm()
        for busy in (_practise, _look_after):
            threading.Thread(target=busy, args=(engine,), daemon=True).start()
        asyncio.run(_serve(engine, users, socket.socket(fileno=descriptor)))


async def _serve(engine: SparkEngine, users: dict[str, str], listener: socket.socket) -> None:
    desk = Desk(engine, users, Turns(AT_ONCE, LONGEST_QUEUE))
    server = uvicorn.Server(uvicorn.Config(application(desk), log_level="warning", access_log=False, timeout_graceful_shutdown=5))
    print(READY, flush=True)
    await server.serve(sockets=[listener])


def _leave_with_supervisor() -> None:
    sys.stdin.read()
    os._exit(0)


def _practise(engine: SparkEngine) -> None:
    """Ask what costs little while nobody else asks, so that the JVM knows the way of a question.

    Measured: the first real one took 1.1 s instead of 1.9 s, and one of the usual forms takes 0.15 s after 300, 0.3 s after 30.
    """
    practised = 0.0
    with contextlib.suppress(TidemarkError):  # who asks in earnest is told
        while practised < PRACTICE_SECONDS:
            begin = time.monotonic()
            if engine.practise():
                practised += time.monotonic() - begin
            else:
                time.sleep(LOOK_SECONDS)


def _look_after(engine: SparkEngine) -> None:
    """Make the newest snapshot ready before it is asked, and leave when work that was ended goes on."""
    stuck_since: float | None = None
    while True:
        time.sleep(LOOK_SECONDS)
        try:
            engine.warm()
        except TidemarkError as error:
            print(f"tidemark: {error}", file=sys.stderr)
        stuck_since = (stuck_since or time.monotonic()) if engine.is_stuck() else None
        if stuck_since is not None and time.monotonic() - stuck_since > PATIENCE_SECONDS:
            os._exit(RECYCLE)


if __name__ == "__main__":
    main()
