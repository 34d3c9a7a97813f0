"""The program in the sandbox: Spark with one of its servers. It reads messages on stdin and answers on stdout, one JSON object a line.

The first line is a ServerSpec. Each further line is a SnapshotViews, answered by ViewsReady; the server accepts clients from the first
answer on. The process ends when stdin is closed.
"""

import asyncio
import os
import resource
import socket
import sys
import threading
import traceback
from pathlib import Path

from orchestration.serving.bi.messages import ServerSpec, Service, SnapshotViews, ViewsReady
from orchestration.serving.bi.relay import relay_inside
from orchestration.serving.bi.settings import heap_bytes, settings

NICE_INCREMENT = 5
"""A pipeline on the same machine gets the processor first."""
MAX_PROCESSES = 4096
"""Threads included; Spark needs some hundreds."""
SPARE_BYTES = 3 << 30
"""Memory of each process beyond twice the heap: network buffers lie outside of the heap, and may become as large."""


def main() -> None:
    """Run the server until stdin is closed."""
    answers = _keep_stdout_for_answers()
    spec = ServerSpec.of_line(sys.stdin.readline())
    if spec.is_sandboxed:
        drop_privileges(spec)
    code = 1
    try:
        asyncio.run(_serve(spec, answers))
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(code)  # threads that wait for clients or for the JVM would keep the process alive; the JVM ends with it


def _keep_stdout_for_answers() -> int:
    """Duplicate stdout for the answers, and point stdout to stderr, because the JVM prints to stdout."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return answers


def drop_privileges(spec: ServerSpec) -> None:
    """Lower priority, switch user and limit memory and processes. None of it can be undone by this process."""
    os.nice(NICE_INCREMENT)
    Path("/proc/self/oom_score_adj").write_text("1000")  # when memory runs out, the kernel kills this before the pipeline
    if spec.user is not None:
        os.setgroups([])
        os.setresgid(spec.user, spec.user, spec.user)
        os.setresuid(spec.user, spec.user, spec.user)
    data = 2 * heap_bytes(spec.driver_memory) + SPARE_BYTES
    for limit, wanted in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NPROC, MAX_PROCESSES), (resource.RLIMIT_DATA, data)):
        hard = resource.getrlimit(limit)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(limit, (value, value))


async def _serve(spec: ServerSpec, answers: int) -> None:
    from orchestration.conf.model import Engine
    from orchestration.engine.session import spark_session
    from orchestration.serving.bi import services
    from orchestration.serving.bi.catalog import SessionCatalogs

    engine = Engine(driver_memory=spec.driver_memory, cores=spec.cores)
    spark = spark_session(engine, [Path(jar) for jar in spec.jars], changes=settings(spec))
    catalogs, is_open = SessionCatalogs(spark), False
    while line := await asyncio.to_thread(sys.stdin.readline):
        message = SnapshotViews.of_line(line)
        left_out = await asyncio.to_thread(catalogs.build, message.views) if message.views else {}
        await asyncio.to_thread(catalogs.renew)
        if not is_open:
            services.start(spark, spec)
            relay = asyncio.create_task(relay_inside(socket.socket(fileno=spec.control_socket), spec.port))
            if spec.service == Service.CONNECT and spec.seconds:
                threading.Thread(target=services.interrupt_long_queries, args=(spark, spec.seconds), daemon=True).start()
            is_open = True
        os.write(answers, ViewsReady(message.number, left_out).line().encode())
    relay.cancel()


if __name__ == "__main__":
    main()
