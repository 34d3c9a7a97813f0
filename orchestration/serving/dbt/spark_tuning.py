"""Spark settings for dbt. A build is many small statements, so in a lake of the usual size compiling them would take most of its time."""

import os

from pyspark.sql import SparkSession

from orchestration.engine.session import INTERPRETED
from orchestration.storage.delta import in_log, open_table
from orchestration.storage.views import View

MAX_SMALL_READINGS = 2_000_000
"""Above it, compiled code saves more time than the compilation costs."""
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Only the quick compiler. Its default code cache of 48 MB is filled by a build, and then Spark breaks (measured)."""
ALWAYS = {
    # For new tables: Delta would remove versions by their age alone, and a build may be queried for longer.
    "spark.databricks.delta.properties.defaults.enableExpiredLogCleanup": "false",
}
SMALL = {**INTERPRETED, "spark.sql.adaptive.enabled": "false"}


def is_small(readings: View) -> bool:
    """Whether the lake is small, by the log of silver.readings alone."""
    files = in_log(open_table(readings.location, readings.version), "num_records").to_pydict()
    return bool(sum(files["num_records"]) < MAX_SMALL_READINGS)


def tune_java() -> None:
    """Set the JVM options for a small lake; call it before Java starts."""
    os.environ["JDK_JAVA_OPTIONS"] = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {JVM_OPTIONS}".strip()


def tune_session(spark: SparkSession, *, is_small: bool) -> None:
    """Settings of the session; none changes a result."""
    for key, value in (ALWAYS | (SMALL if is_small else {})).items():
        spark.conf.set(key, value)
