"""Spark's settings in the sandbox, in addition to those of every session of Tidemark (orchestration/engine/session.py)."""

from pathlib import Path

from orchestration.serving.bi.messages import ServerSpec

POOLS = """<?xml version="1.0"?>
<allocations><pool name="default"><schedulingMode>FAIR</schedulingMode></pool></allocations>
"""


def settings(spec: ServerSpec) -> dict[str, str]:
    """By name; nothing secret, because they are on the command line of the JVM. Writes the file of pools into the scratch folder."""
    pools = Path(spec.scratch) / "pools.xml"
    pools.write_text(POOLS)
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "localhost",
        "spark.local.dir": spec.scratch,
        # A larger result is refused: several may be in the heap at once.
        "spark.driver.maxResultSize": str(heap_bytes(spec.driver_memory) // 4),
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


def heap_bytes(memory: str) -> int:
    """Bytes of `engine.driver_memory`, which is digits and m or g."""
    return int(memory[:-1]) << {"m": 20, "g": 30}[memory[-1].lower()]
