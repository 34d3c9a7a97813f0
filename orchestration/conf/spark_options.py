"""Settings of Spark: those that Tidemark sets, each with its reason, and which others a conf may set."""

import re
from collections.abc import Iterator, Mapping

from expectations.settings import Problem

CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    # Paths of a lake have no scheme: a machine with a conf of Hadoop would look for them in HDFS.
    "spark.hadoop.fs.defaultFS": "file:///",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Nobody looks at them, and plans of the last 1000 queries are 100 MB.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Of each table that it met within an hour Delta keeps some 4 MB (measured): a lake of 300 groups has 900.
    "spark.databricks.delta.delta.log.cacheSize": "100",
    # The default, INT96, counts nanoseconds: readers other than Spark break on an instant before 1677 or after 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.numRecentProgressUpdates": "5",
    "spark.sql.streaming.maxBatchesToRetainInMemory": "1",
    "spark.sql.streaming.metricsEnabled": "false",
    # The default asks about links, for which Hadoop starts `readlink`, some for each file of a checkpoint: 600 in a run of one batch.
    "spark.sql.streaming.checkpointFileManagerClass": f"{CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
    # Flows and jobs have more than the default of 100 classes in turn: gold compiled its own anew in each round.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # A checkpoint knows its sources by their names and not by their places, where they have names (queries.started).
    "spark.sql.streaming.offsetLog.formatVersion": "2",
    # Looks for a number of partitions that this format does not keep, and ends a query whose last batch was not finished (measured).
    "spark.sql.streaming.checkUnfinishedRepartitionOnRestart": "false",
    # A batch then turns rows away by the newest event of all batches before it; otherwise Spark is one batch more lenient,
    # but only if no empty batch ran between, so that what is late would depend on pauses.
    "spark.sql.streaming.statefulOperator.allowMultiple": "false",
    # A snapshot is kept as long as conf says, and the newest one for ever: Delta would refuse versions older than a week.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    # `env:` in a query's text would give away the environment.
    "spark.sql.variable.substitute": "false",
}
OTHERS = {
    "spark.app.name": None,
    "spark.driver.extraClassPath": None,
    "spark.driver.extraJavaOptions": None,
    "spark.driver.memory": "driver_memory",
    "spark.executor.defaultJavaOptions": None,
    "spark.jars": None,
    "spark.master": "master",
    "spark.sql.execution.arrow.compression.codec": None,
    "spark.sql.shuffle.partitions": "shuffle_partitions",
    "spark.sql.streaming.noDataMicroBatches.enabled": None,
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": None,
    "spark.sql.streaming.stateStore.maintenanceInterval": None,
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": None,
    "spark.sql.streaming.stateStore.providerClass": "state_store",
    "spark.sql.warehouse.dir": None,
}
"""Settings that engine/session.py and engine/queries.py set beside SETTINGS; each with the setting of `engine` that decides it, if there
is one."""
SECRET = re.compile(r"(?i)(secret|password|token|access\.?key)(?!.*file$)")
"""Names of secrets, as Spark itself recognizes them, but for names of files."""
KUBERNETES_SECRET = re.compile(r"spark\.kubernetes\.(executor\.(secretKeyRef|secrets)\..+|container\.image\.pullSecrets)")
"""Settings whose value is the name of a Secret of Kubernetes."""


def problems_of_settings(settings: Mapping[str, str]) -> Iterator[Problem]:
    for name in settings:
        if name in SETTINGS or name in OTHERS:
            setting = OTHERS.get(name)
            yield Problem(("settings", name), f"is set by Tidemark; {f'write engine.{setting} instead' if setting else 'remove it'}")
        elif SECRET.search(name) and not KUBERNETES_SECRET.fullmatch(name):
            remedy = "set it in the spark-defaults.conf of SPARK_CONF_DIR"
            yield Problem(("settings", name), f"is a secret, which must not stand in a file of the conf; {remedy}")
