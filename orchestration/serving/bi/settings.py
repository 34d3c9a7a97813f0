"""Spark's settings behind the fence, beside those of every session of Tidemark (orchestration/engine/session.py)."""

from pathlib import Path

from orchestration.serving.bi.messages import Order

POOLS = """<?xml version="1.0"?>
<allocations><pool name="default"><schedulingMode>FAIR</schedulingMode></pool></allocations>
"""


def settings(order: Order) -> dict[str, str]:
    """By name; nothing that is secret, as they are on the command line of the JVM. A file that they need is left in the scratch folder."""
    pools = Path(order.scratch) / "pools.xml"
    pools.write_text(POOLS)
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "localhost",
        "spark.local.dir": order.scratch,
        # A larger result is refused: several may be on their way at once, in one heap.
        "spark.driver.maxResultSize": str(heap_bytes(order.driver_memory) // 4),
        # Clients take turns, job by job; otherwise a long query goes before all that come after it.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": pools.as_uri(),
        # What is kept about queries that are done, though nobody looks at it.
        "spark.sql.thriftserver.ui.retainedStatements": "10",
        # Rows leave partition by partition: a result need not fit the heap.
        "spark.sql.thriftServer.incrementalCollect": "true",
        "spark.sql.thriftServer.queryTimeout": f"{order.seconds}s",
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.hadoop.hive.server2.thrift.port": str(order.port),
        # All clients are one user of the fence, whoever they say they are.
        "spark.hadoop.hive.server2.enable.doAs": "false",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(order.port),
    }


def heap_bytes(memory: str) -> int:
    """Of `engine.driver_memory`, digits and m or g."""
    return int(memory[:-1]) << {"m": 20, "g": 30}[memory[-1].lower()]
