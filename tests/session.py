"""Spark as tests start it, and the surroundings of every process of theirs."""

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Far from UTC, where a test would pass by luck.
os.environ["TZ"] = "Asia/Kathmandu"
time.tzset()
# Code of tests runs a few times: the JVM's second compiler would take more time than it saves. Every JVM of a test's processes too.
# Without the second compiler there are 48 MB for compiled code, and a long test ends with the JVM when they are full (seen).
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m")


def session() -> "SparkSession":
    """The session as the product makes it, but for plans, which are neither compiled nor changed while they run.

    For a few rows both take longer than running: 143 s with compiling and 96 s without for test_flows and test_retry on two processes, and
    97 s with adaptive execution and 85 s without for two others. Processes that tests start do both, as the product does.
    """
    # Imported here: tests of configuration, rows and errors run in a second without Spark.
    from orchestration.conf.model import Engine
    from orchestration.engine.jars import fetched
    from orchestration.engine.s3a import S3A, store_jars
    from orchestration.engine.session import INTERPRETED, spark_session

    changes = INTERPRETED | {"spark.sql.adaptive.enabled": "false"}
    # Which store it is, only the tests know that have a lake there.
    store = S3A(store_jars(), {})
    return spark_session(Engine(cores=2, shuffle_partitions=2, driver_memory="2g"), fetched(), changes=changes, store=store)
