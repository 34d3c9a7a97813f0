"""A plant that runs on a cluster, and two batches for it."""

import json
from datetime import UTC, datetime, timedelta

from tests.chaos.plants import Plant
from tests.cluster.event_log import SETTINGS as LOGGED
from tests.lakes import event, land

START = datetime(2026, 1, 5, tzinfo=UTC)
DEVICES = ("oven-01", "fridge-01", "press-01", "pump-01")
READINGS = 12_000
"""Of the first batch. They are more bytes than a batch may take, so that the next file is a batch of its own."""


SETTINGS = {
    # It begins when both executors are there.
    **LOGGED | {"spark.cores.max": "2", "spark.scheduler.minRegisteredResourcesRatio": "1.0"},
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


def on_cluster(plant: Plant, master: str) -> None:
    """Let the plant run there, on two executors, and log the events of Spark in its folder `event-logs`."""
    logs = plant.folder / "event-logs"
    logs.mkdir()
    engine = {"master": master, "settings": {**SETTINGS, "spark.eventLog.dir": logs.as_uri()}}
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
