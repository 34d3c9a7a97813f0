"""An object store as Spark takes it: by S3A of Hadoop, whose jars are fetched for such a lake only."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestration.engine.checkpoint_jar import CLASS, checkpoint_jar
from orchestration.engine.jars import OF_S3, fetched
from orchestration.stores.object_store import OF_WORKER, ObjectStore

BEHIND = "SPARK_DIST_CLASSPATH"
"""Names the end of the JVM's class path. Jars before those of pyspark would make it refuse its class-data archive: a session then starts in
14 s instead of 8 (measured)."""

FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@dataclass(frozen=True)
class S3A:
    """The jars, and the settings of a session. The settings hold the keys: they belong on no command line."""

    jars: Sequence[Path]
    settings: Mapping[str, str]

    def extend_class_path(self) -> None:
        """Let the JVM that this process is about to start find the jars."""
        before = [path for path in os.environ.get(BEHIND, "").split(os.pathsep) if path]
        os.environ[BEHIND] = os.pathsep.join(dict.fromkeys([*before, *map(str, self.jars)]))


def store_jars() -> Sequence[Path]:
    """Return the jars that a lake on an object store needs besides; what is missing is fetched or made."""
    return [*fetched(OF_S3), checkpoint_jar()]


def s3a(store: ObjectStore) -> S3A:
    """Return what a session needs to read and write `s3://`, the driver and executors alike.

    Without an endpoint the store is Amazon's. Without keys the SDK looks for them: in the environment, a profile, a token of Kubernetes,
    the machine's role. Python workers get the keys by their environment.
    """
    endpoint, (access_key, secret_key) = store.endpoint, store.keys or (None, None)
    hadoop = {
        # delta-rs knows no other scheme than s3, and Hadoop has nothing of its own for it.
        "s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "s3a.endpoint": endpoint,
        "s3a.endpoint.region": store.signed_region,
        # A store of one's own rarely has a name for each bucket in its DNS.
        "s3a.path.style.access": "true" if endpoint else None,
        "s3a.access.key": access_key,
        "s3a.secret.key": secret_key,
        "s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
        if access_key
        else "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
    }
    python = {"ENDPOINT_URL": endpoint, "REGION": store.signed_region, "ACCESS_KEY_ID": access_key, "SECRET_ACCESS_KEY": secret_key}
    named = {f"spark.hadoop.fs.{name}": value for name, value in hadoop.items()}
    named |= {f"spark.executorEnv.AWS_{name}": value for name, value in python.items()} | {f"spark.executorEnv.{OF_WORKER}": "1"}
    named[FILE_MANAGER] = CLASS
    return S3A(store_jars(), {name: value for name, value in named.items() if value is not None})
