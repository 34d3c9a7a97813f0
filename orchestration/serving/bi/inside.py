"""What runs behind the fence: Spark with one of its servers. Orders come on stdin, answers go to stdout, one JSON object a line.

The first line is an Order; each line after it a Cut, answered by Shown, the first of them when the server takes clients.
It ends with its stdin.
"""

import asyncio
import os
import resource
import socket
import sys
import threading
import traceback
from pathlib import Path

from orchestration.serving.bi.messages import Cut, Order, Service, Shown
from orchestration.serving.bi.relay import serve_inside
from orchestration.serving.bi.settings import heap_bytes, settings

NICER = 5
"""So that a pipeline on the same machine goes first."""
PROCESSES = 4096
"""With threads; Spark needs some hundreds."""
SPARE_BYTES = 3 << 30
"""Of memory in each process, beside twice the heap: buffers of the network lie outside of it, and may become as large."""


def main() -> None:
    """Do as ordered."""
    answers = _kept_from_children()
    order = Order.of_line(sys.stdin.readline())
    if order.is_fenced:
        give_up_powers(order)
    code = 1
    try:
        asyncio.run(_serve(order, answers))
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(code)  # threads that wait for clients or for the JVM would hold the process; the JVM ends when it does


def _kept_from_children() -> int:
    """Where answers go. The JVM has its own word on stdout, so stdout becomes stderr."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return answers


def give_up_powers(order: Order) -> None:
    """Another user, less time, less memory, no child without end: what is given up here is given up for good."""
    os.nice(NICER)
    Path("/proc/self/oom_score_adj").write_text("1000")  # where memory runs out, this goes before the pipeline
    if order.user is not None:
        os.setgroups([])
        os.setresgid(order.user, order.user, order.user)
        os.setresuid(order.user, order.user, order.user)
    data = 2 * heap_bytes(order.driver_memory) + SPARE_BYTES
    for limit, wanted in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NPROC, PROCESSES), (resource.RLIMIT_DATA, data)):
        hard = resource.getrlimit(limit)[1]
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(limit, (most, most))


async def _serve(order: Order, answers: int) -> None:
    from orchestration.conf.model import Engine
    from orchestration.engine.session import spark_session
    from orchestration.serving.bi import services
    from orchestration.serving.bi.catalog import Catalogs

    engine = Engine(driver_memory=order.driver_memory, cores=order.cores)
    spark = spark_session(engine, [Path(jar) for jar in order.jars], changes=settings(order))
    catalogs, is_open = Catalogs(spark), False
    while line := await asyncio.to_thread(sys.stdin.readline):
        cut = Cut.of_line(line)
        left_out = await asyncio.to_thread(catalogs.build, cut.views) if cut.views else {}
        await asyncio.to_thread(catalogs.renew)
        if not is_open:
            services.start(spark, order)
            relay = asyncio.create_task(serve_inside(socket.socket(fileno=order.door), order.port))
            if order.service == Service.CONNECT and order.seconds:
                threading.Thread(target=services.interrupt_for_ever, args=(spark, order.seconds), daemon=True).start()
            is_open = True
        os.write(answers, Shown(cut.number, left_out).line().encode())
    relay.cancel()


if __name__ == "__main__":
    main()
