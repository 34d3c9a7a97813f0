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
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.serving.bi.messages import ServerSpec, Service, SnapshotViews, ViewsReady
from orchestration.serving.bi.relay import relay_inside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NICE_INCREMENT = 5
"""A pipeline on the same machine gets the processor first."""
MAX_PROCESSES = 4096
"""Threads included; Spark needs some hundreds."""
SPARE_BYTES = 3 << 30
"""Memory of each process beyond twice the heap: network buffers lie outside of the heap, and may become as large."""
POLL_SECONDS = 1.0
POOLS = """<?xml version="1.0"?>
<allocations><pool name="default"><schedulingMode>FAIR</schedulingMode></pool></allocations>
"""


def main() -> None:
    answers = os.dup(1)
    os.dup2(2, 1)  # stdout becomes stderr, because the JVM prints to stdout
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


def drop_privileges(spec: ServerSpec) -> None:
    """Lower priority, switch user and limit memory and processes. None of it can be undone by this process."""
    os.nice(NICE_INCREMENT)
    Path("/proc/self/oom_score_adj").write_text("1000")  # when memory runs out, the kernel kills this before the pipeline
    if spec.user is not None:
        os.setgroups([])
        os.setresgid(spec.user, spec.user, spec.user)
        os.setresuid(spec.user, spec.user, spec.user)
    data = 2 * _heap_bytes(spec) + SPARE_BYTES
    for limit, wanted in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NPROC, MAX_PROCESSES), (resource.RLIMIT_DATA, data)):
        hard = resource.getrlimit(limit)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(limit, (value, value))


async def _serve(spec: ServerSpec, answers: int) -> None:
    from orchestration.conf.model import Engine
    from orchestration.engine.session import spark_session
    from orchestration.serving.bi.catalog import SessionCatalogs

    engine = Engine(driver_memory=spec.driver_memory, cores=spec.cores)
    spark = spark_session(engine, [Path(jar) for jar in spec.jars], changes=_settings(spec))
    catalogs, relay = SessionCatalogs(spark), None
    while line := await asyncio.to_thread(sys.stdin.readline):
        message = SnapshotViews.of_line(line)
        left_out = await asyncio.to_thread(catalogs.build, message.views) if message.views else {}
        await asyncio.to_thread(catalogs.renew)
        if relay is None:
            _start_server(spark, spec)
            relay = asyncio.create_task(relay_inside(socket.socket(fileno=spec.control_socket), spec.port))
        os.write(answers, ViewsReady(left_out).line().encode())


def _settings(spec: ServerSpec) -> dict[str, str]:
    """Spark's settings in addition to those of every session; nothing secret, because they are on the command line of the JVM."""
    pools = Path(spec.scratch) / "pools.xml"
    pools.write_text(POOLS)
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "localhost",
        "spark.local.dir": spec.scratch,
        # A larger result is refused: several may be in the heap at once.
        "spark.driver.maxResultSize": str(_heap_bytes(spec) // 4),
        # Clients share the cores, job by job; otherwise a long query blocks all that come after it.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": pools.as_uri(),
        # History of finished queries, which nobody reads.
        "spark.sql.thriftserver.ui.retainedStatements": "10",
        # Rows are sent partition by partition: a result need not fit the heap.
        "spark.sql.thriftServer.incrementalCollect": "true",
        "spark.sql.thriftServer.queryTimeout": f"{spec.seconds}s",
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.hadoop.hive.server2.thrift.port": str(spec.port),
        # All clients are one user of the sandbox, whatever name they give.
        "spark.hadoop.hive.server2.enable.doAs": "false",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(spec.port),
    }


def _heap_bytes(spec: ServerSpec) -> int:
    from orchestration.conf.pipeline_settings import heap_bytes

    return heap_bytes(spec.driver_memory)


def _start_server(spark: "SparkSession", spec: ServerSpec) -> None:
    """Accept clients on the port of the spec; their sessions are made from this one."""
    jvm: Any = spark._jvm
    if spec.service == Service.THRIFT:
        jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2.startWithSparkSession(spark._jsparkSession, False)
        return
    context = spark.sparkContext._jsc.sc()
    # Not among the settings: those are on the command line of the JVM, which every process can read.
    context.conf().set("spark.connect.authenticate.token", spec.token)
    jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(context)
    if spec.seconds:
        threading.Thread(target=_interrupt_long_queries, args=(jvm, spec.seconds), daemon=True).start()


def _interrupt_long_queries(jvm: Any, seconds: int) -> None:
    """Interrupt queries that run longer, for ever: the Connect server has no such limit of its own."""
    manager = getattr(getattr(jvm, "org.apache.spark.sql.connect.service.SparkConnectService$"), "MODULE$").executionManager()
    while True:
        now, running = jvm.java.lang.System.nanoTime(), manager.listExecuteHolders()
        for index in range(running.length()):
            execution = running.apply(index)
            if now - execution.creationTimeNs() > seconds * 1e9:
                execution.interrupt()
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main()
