"""Starts Spark's Thrift or Connect server in the JVM of a session."""

import time
from typing import Any

from pyspark.sql import SparkSession

from orchestration.serving.bi.messages import ServerSpec, Service

POLL_SECONDS = 1.0


def start(spark: SparkSession, spec: ServerSpec) -> None:
    """Accept clients on the port of the spec; their sessions are made from this one."""
    jvm: Any = spark._jvm
    if spec.service == Service.THRIFT:
        jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2.startWithSparkSession(spark._jsparkSession, False)
        return
    context = spark.sparkContext._jsc.sc()
    # Not among the settings: those are on the command line of the JVM, which every process can read.
    context.conf().set("spark.connect.authenticate.token", spec.token)
    jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(context)


def interrupt_long_queries(spark: SparkSession, seconds: int) -> None:
    """Interrupt queries that run longer, for ever: the Connect server has no such limit of its own."""
    jvm: Any = spark._jvm
    manager = getattr(getattr(jvm, "org.apache.spark.sql.connect.service.SparkConnectService$"), "MODULE$").executionManager()
    while True:
        now, running = jvm.java.lang.System.nanoTime(), manager.listExecuteHolders()
        for index in range(running.length()):
            execution = running.apply(index)
            if now - execution.creationTimeNs() > seconds * 1e9:
                execution.interrupt()
        time.sleep(POLL_SECONDS)
