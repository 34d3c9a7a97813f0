"""A plant that runs on a cluster, and two batches for it."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyspark
import yaml

from tests.chaos.plants import Plant
from tests.cluster.event_log import SETTINGS as LOGGED
from tests.lakes import event
from tests.object_store import ACCESS_KEY, SECRET_KEY

LOCAL_CLUSTER = "local-cluster[2,1,1024]"
START = datetime(2026, 1, 5, tzinfo=UTC)
DEVICES = ("oven-01", "fridge-01", "press-01", "pump-01")
READINGS = 12_000
"""Of the first batch. They are more bytes than a batch may take, so that the next file is a batch of its own."""


SETTINGS = {
    # It begins when both executors are there.
    **LOGGED | {"spark.cores.max": "2", "spark.scheduler.minRegisteredResourcesRatio": "1.0"},
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
IMPATIENT = {"spark.network.timeout": "20s", "spark.network.timeoutInterval": "2s", "spark.executor.heartbeatInterval": "2s"}
"""Settings with which an executor that says nothing is given up after 20 s; by default that takes 120 s and the rest of a minute."""
KEYS = {"STORE_KEY": ACCESS_KEY, "STORE_SECRET": SECRET_KEY}
"""The environment of a plant whose lake is in a store."""
REFERENCES = {"access_key": "${env:STORE_KEY}", "secret_key": "${env:STORE_SECRET}"}


def logged(folder: Path) -> dict[str, str]:
    """Settings of a run on two executors, whose events Spark logs there."""
    folder.mkdir()
    return {**SETTINGS, "spark.eventLog.dir": folder.as_uri()}


def spark_home(folder: Path) -> dict[str, str]:
    """The environment of a cluster that is one process: it writes logs of executors into its home, here a folder of links."""
    folder.mkdir()
    for file in Path(pyspark.__file__).parent.iterdir():
        (folder / file.name).symlink_to(file)
    return {"SPARK_HOME": str(folder), "SPARK_LOCAL_IP": "127.0.0.1"}


def on_cluster(plant: Plant, master: str, settings: dict[str, str] | None = None) -> None:
    """Let the plant run there, and log into its folder `event-logs`."""
    engine = {"master": master, "settings": logged(plant.folder / "event-logs") | (settings or {})}
    pipeline = plant.folder / "conf" / "pipeline.yml"
    pipeline.write_text(pipeline.read_text().replace("engine:", f"engine:\n  <<: {json.dumps(engine)}", 1))


def in_store(conf: Path, endpoint: str, bucket: str, keys: Mapping[str, str] = REFERENCES) -> None:
    """Let a plant have its lake in a bucket, and events from objects there. Of this host it needs its conf alone."""
    at = {"endpoint": endpoint, "region": "us-east-1", **keys}
    change(conf / "pipeline.yml", {"lake": f"s3://{bucket}/lake", "store": at})
    source = yaml.safe_load((conf / "sources.yml").read_text())["sources"]["plant"]
    source = {name: value for name, value in source.items() if name not in ("path", "files", "settle_seconds")}
    change(conf / "sources.yml", {"sources": {"plant": source | {"s3": at | {"bucket": bucket, "prefix": "landing/"}}}})


def change(file: Path, settings: dict[str, Any]) -> None:
    """Give a file of a conf these settings, in place of what it says of them."""
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | settings))


def readings(first: int, count: int) -> list[str]:
    """Lines, ten seconds apart, of all devices in turn."""
    return [event(DEVICES[n % 4], "temperature", 20 + n % 7, START + timedelta(seconds=10 * n)) for n in range(first, first + count)]


def batches() -> tuple[list[str], list[str]]:
    """READINGS; then one that is late, one that came already, one that nobody can read, one of the future and one that is good."""
    in_time = readings(0, READINGS + 1)
    late, future = (event("oven-01", "temperature", 1, at) for at in (START + timedelta(seconds=5), datetime(2100, 1, 1, tzinfo=UTC)))
    return in_time[:-1], [late, in_time[-2], "{", future, in_time[-1]]
