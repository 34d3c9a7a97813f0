"""A run whose tasks are done by executors, each a process of its own; `make cluster` has machines of their own."""

from pathlib import Path

import pytest

from tests.chaos.plants import Plant
from tests.cluster.event_log import DONE, tasks
from tests.cluster.sample import LOCAL_CLUSTER, READINGS, batches, on_cluster, spark_home
from tests.lakes import land, table

pytestmark = [pytest.mark.cluster, pytest.mark.processes, pytest.mark.spark]
HDFS = "<configuration><property><name>fs.defaultFS</name><value>hdfs://nowhere.invalid:1</value></property></configuration>"
"""As on machines of a Hadoop cluster."""


def test_a_run_on_two_executors_accounts_for_every_event_and_both_do_silver_and_gold(tmp_path: Path) -> None:
    plant = Plant(tmp_path / "plant")
    on_cluster(plant, LOCAL_CLUSTER)
    for number, lines in enumerate(batches()):
        land(plant.folder, f"{number}.jsonl", lines)
    environment = spark_home(tmp_path / "spark") | {"HADOOP_CONF_DIR": str(tmp_path)}
    (tmp_path / "core-site.xml").write_text(HDFS)
    assert plant.exit_code("run", "--once", **environment) == 0, plant.log_end()
    for command in ("ledger", "verify"):
        assert plant.exit_code(command) == 0, plant.log_end()
    counts = table(plant.opened().conf, "ops.ledger").sum(numeric_only=True)
    assert counts[["events", "readings", "late", "duplicates", "quarantined"]].tolist() == [READINGS + 5, READINGS + 1, 1, 1, 2]
    did = {(task.flow, task.executor) for task in tasks(plant.folder / "event-logs") if task.end == DONE}
    assert did >= {(flow, executor) for flow in ("silver.readings", "gold.plant") for executor in ("0", "1")}
