"""A session for a lake on an object store, in a process of its own, as it decides about the jars of the JVM."""

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from orchestration.engine import jars
from tests.canary import command_lines, texts_with
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.s3_proxy import Proxy

ON_A_STORE = """
import os, sys
from pathlib import Path
from orchestration.conf.model import Engine
from orchestration.engine.jars import fetched
from orchestration.engine.s3a import s3a
from orchestration.engine.session import spark_session
from orchestration.stores.object_store import ObjectStore
log, uri, endpoint, *keys = sys.argv[1:]
keys = ["${env:KEY}", "${env:SECRET}"] if "KEY" in os.environ else [None, None]
store = s3a(ObjectStore(endpoint, None, *keys))
spark = spark_session(Engine(cores=2, driver_memory="1g"), fetched(), Path(log), store=store)
spark.range(40).write.parquet(f"{uri}/rows")
spark.range(40).write.format("delta").save(f"{uri}/table")
rows = spark.read.parquet(f"{uri}/rows").join(spark.read.format("delta").load(f"{uri}/table"), "id")
rows.explain(True)
names = "ENDPOINT_URL", "SECRET_ACCESS_KEY"
of_worker = spark.sparkContext.parallelize([0]).map(lambda _: [len(os.environ[f"AWS_{name}"]) for name in names]).collect()
print("rows", rows.count(), "of a worker", of_worker[0])
"""
pytestmark = pytest.mark.spark


@pytest.mark.parametrize("named", ["KEY SECRET", "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY"])
def test_spark_reads_and_writes_a_store_with_the_keys_of_conf_or_of_the_environment_and_shows_them_nowhere(
    named: str, store: Store, tmp_path: Path
) -> None:
    key, secret = named.split()
    with command_lines() as shown, Proxy(tmp_path, store.endpoint).running() as proxy:
        command = [sys.executable, "-c", ON_A_STORE, str(tmp_path / "log"), f"s3://{store.bucket()}/lake", proxy.endpoint]
        ended = subprocess.run(command, env=os.environ | {key: ACCESS_KEY, secret: SECRET_KEY}, capture_output=True, text=True, check=False)
        assert proxy.counts("_delta_log/0+.json$")["PUT"] == 1
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert f"rows 40 of a worker [{len(proxy.endpoint)}, {len(SECRET_KEY)}]" in ended.stdout
    assert any(b"SparkSubmit" in line for line in shown)
    assert texts_with(SECRET_KEY, [*shown, ended.stdout, ended.stderr, (tmp_path / "log").read_text()]) == []


def test_the_lock_names_the_jars_of_s3a_and_none_that_every_lake_has() -> None:
    of_s3, of_all = (jars.locked((files("conf") / name).read_text()) for name in ("jars-s3.lock", "jars.lock"))
    assert len(of_s3) == 36
    assert {jar.file_name for jar in of_s3} >= {"hadoop-aws-3.5.0.jar", "s3-2.35.4.jar", "analyticsaccelerator-s3-1.3.1.jar"}
    assert {jar.name for jar in of_s3}.isdisjoint(jar.name for jar in of_all)
