"""Spark's two servers, started in the JVM of a session."""

import time
from typing import Any

from pyspark.sql import SparkSession

from orchestration.serving.bi.messages import Order, Service

LOOK_SECONDS = 1.0


def start(spark: SparkSession, order: Order) -> None:
    """Take clients on the port of the order; their sessions are made from this one."""
    jvm: Any = spark._jvm
    if order.service == Service.THRIFT:
        jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2.startWithSparkSession(spark._jsparkSession, False)
        return
    context = spark.sparkContext._jsc.sc()
    # Not among the settings: these are on the command line of the JVM, for all to see.
    context.conf().set("spark.connect.authenticate.token", order.token)
    jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(context)


def interrupt_for_ever(spark: SparkSession, seconds: int) -> None:
    """Interrupt what has run for longer, in the server of notebooks, which has no such limit of its own."""
    jvm: Any = spark._jvm
    manager = getattr(getattr(jvm, "org.apache.spark.sql.connect.service.SparkConnectService$"), "MODULE$").executionManager()
    while True:
        now, running = jvm.java.lang.System.nanoTime(), manager.listExecuteHolders()
        for place in range(running.length()):
            execution = running.apply(place)
            if now - execution.creationTimeNs() > seconds * 1e9:
                execution.interrupt()
        time.sleep(LOOK_SECONDS)
