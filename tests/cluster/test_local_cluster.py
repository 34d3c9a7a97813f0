"""A run whose tasks are done by executors, each a process of its own; `make cluster` has machines of their own."""

from pathlib import Path

import pyspark
import pytest

from tests.chaos.plants import Plant
from tests.cluster.event_log import DONE, tasks
from tests.cluster.sample import READINGS, land_batches, on_cluster
from tests.lakes import table

pytestmark = pytest.mark.spark


def spark_home(folder: Path) -> Path:
    """Links to pyspark: a cluster of one process writes its logs beside them."""
    folder.mkdir()
    for file in Path(pyspark.__file__).parent.iterdir():
        (folder / file.name).symlink_to(file)
    return folder


def test_a_run_on_two_executors_accounts_for_every_event_and_both_do_silver_and_gold(tmp_path: Path) -> None:
    plant = Plant(tmp_path / "plant")
    on_cluster(plant, "local-cluster[2,1,1024]")
    land_batches(plant)
    home = {"SPARK_HOME": str(spark_home(tmp_path / "spark")), "SPARK_LOCAL_IP": "127.0.0.1"}
    assert plant.exit_code("run", "--once", **home) == 0, plant.log_end()
    for command in ("ledger", "verify"):
        assert plant.exit_code(command) == 0, plant.log_end()
    counts = table(plant.opened().conf, "ops.ledger").sum(numeric_only=True)
    assert counts[["events", "readings", "late", "duplicates", "quarantined"]].tolist() == [READINGS + 5, READINGS + 1, 1, 1, 2]
    did = {(task.flow, task.executor) for task in tasks(plant.folder / "event-logs") if task.end == DONE}
    assert did >= {(flow, executor) for flow in ("silver.readings", "gold.plant") for executor in ("0", "1")}
