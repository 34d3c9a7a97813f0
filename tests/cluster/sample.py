"""A plant that runs on a cluster, and two batches for it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyspark

from tests.chaos.plants import Plant
from tests.cluster.event_log import SETTINGS as LOGGED
from tests.lakes import event, land

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


def readings(first: int, count: int) -> list[str]:
    """Lines, ten seconds apart, of all devices in turn."""
    return [event(DEVICES[n % 4], "temperature", 20 + n % 7, START + timedelta(seconds=10 * n)) for n in range(first, first + count)]


def land_batches(plant: Plant) -> None:
    """READINGS; then one that is late, one that came already, one that nobody can read, one of the future and one that is good."""
    in_time = readings(0, READINGS + 1)
    late, future = (event("oven-01", "temperature", 1, at) for at in (START + timedelta(seconds=5), datetime(2100, 1, 1, tzinfo=UTC)))
    land(plant.folder, "1.jsonl", in_time[:-1])
    land(plant.folder, "2.jsonl", [late, in_time[-2], "{", future, in_time[-1]])
