"""How Spark runs dbt. A build is many small statements, so in a lake of the usual size most of its time would go into compiling them."""

import os

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from orchestration.engine.session import INTERPRETED
from orchestration.storage.tables import in_log
from orchestration.storage.views import View

SMALL = 2_000_000
"""Readings; beyond it compiled code earns what it costs."""
OF_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""One compiler, the quick one. It alone has a code cache of 48 MB, which a build fills, and then Spark breaks (measured)."""
ALWAYS = {
    # Of new tables: Delta would forget versions by their age alone, and a build may be asked for longer.
    "spark.databricks.delta.properties.defaults.enableExpiredLogCleanup": "false",
}
QUICK = {**INTERPRETED, "spark.sql.adaptive.enabled": "false"}


def is_small(readings: View) -> bool:
    """By the log of silver.readings alone."""
    files = in_log(DeltaTable(readings.path, readings.version), "num_records").to_pydict()
    return bool(sum(files["num_records"]) < SMALL)


def prepare_java() -> None:
    """Before Java starts: for a small lake."""
    os.environ["JDK_JAVA_OPTIONS"] = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {OF_JVM}".strip()


def prepare(spark: SparkSession, *, is_small: bool) -> None:
    """Settings of the session; none changes a result."""
    for key, value in (ALWAYS | (QUICK if is_small else {})).items():
        spark.conf.set(key, value)
