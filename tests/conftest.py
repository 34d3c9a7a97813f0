"""What several tests need: one Spark session, made when the first test asks for it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Far from UTC, where a test would pass by luck.
os.environ["TZ"] = "Asia/Kathmandu"
time.tzset()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session as the product makes it, with two partitions for shuffles and Delta snapshots and without a UI; one for all tests."""
    # Imported here: tests of configuration, rows and errors run in a second without Spark.
    from orchestration.conf.model import Engine
    from orchestration.engine.jars import fetched
    from orchestration.engine.session import spark_session

    session = spark_session(Engine(cores=2, shuffle_partitions=2, driver_memory="2g"), fetched())
    yield session
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def _forget_logs() -> Iterator[None]:
    """Delta keeps for an hour what it knows of every table that it met, 4 MB each: lakes of many tests fill the memory (measured)."""
    yield
    if "pyspark" in sys.modules and (jvm := sys.modules["pyspark"].SparkContext._jvm) is not None:
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
