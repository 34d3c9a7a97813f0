"""Real runs send what readers see: to Postgres and to files, amendments too, also when the server was away."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from orchestration.conf.model import Conf
from orchestration.conf.sink_settings import SinkSettings
from orchestration.connectors.outages import current_outage
from orchestration.connectors.sinks.sink_states import read_state
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.storage.snapshots import all_snapshots
from orchestration.supervisor import sinks as supervisor_sinks
from tests.lakes import KITCHEN, conf, event, land, minutes, run, run_until
from tests.orchestration.connectors.sinks.postgres_server import PASSWORD, PostgresServer
from tests.rows import at

pytestmark = pytest.mark.postgres
START = at("2026-01-05T00:00:00")
TABLE = "gold.kitchen_aggregates"
SINKS = {
    "warehouse": {"table": TABLE, "postgres": {"dsn": "${env:PG_DSN}", "table": "kitchen"}},
    "export": {"table": "silver.readings", "files": {"path": "./export"}},
}


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer().running() as made:
        yield made


@pytest.fixture
def made(tmp_path: Path, server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Conf:
    (tmp_path / "conf").mkdir()
    monkeypatch.setenv("PG_DSN", server.dsn)
    declared = {name: SinkSettings(**settings) for name, settings in SINKS.items()}  # type: ignore[arg-type]
    return replace(conf(tmp_path, groups={"kitchen": KITCHEN}, sinks=declared), folder=tmp_path / "conf")


def in_lake(made: Conf, spark: SparkSession) -> list[tuple[Any, ...]]:
    rows = Lake(made, spark).sql(f"select metric, unix_seconds(window_end), revision, value from {TABLE} order by 1, 2").collect()
    return [tuple(row) for row in rows]


def in_postgres(server: PostgresServer) -> list[tuple[Any, ...]]:
    rows = server.rows("select metric, window_end, revision, value from kitchen order by 1, 2")
    return [(metric, int(end.timestamp()), *others) for metric, end, *others in rows]


def late(value: float) -> str:
    return event("oven", "temperature", value, START + timedelta(minutes=5, seconds=1))


def test_what_a_run_brings_and_amends_is_sent_at_its_end_also_after_one_that_found_the_server_down(
    spark: SparkSession, made: Conf, server: PostgresServer, tmp_path: Path
) -> None:
    land(tmp_path, "1.json", [event("oven", "temperature", 1, time) for time in minutes(START, 31)])
    run(made, spark)
    assert in_postgres(server) == in_lake(made, spark) != []
    server.kill()
    land(tmp_path, "2.json", [late(100)])
    with pytest.raises(TidemarkError, match="sink warehouse: the Postgres server was not reached, or the connection broke"):
        run(made, spark)
    assert [snapshot.bronze_batch for snapshot in all_snapshots(made.lake)] == [0, 1]
    server.start()
    run(made, spark)
    assert in_postgres(server) == in_lake(made, spark)
    assert [row[2] for row in in_postgres(server)] == [1, 0]
    exported = ds.dataset(tmp_path / "export", partitioning="hive").to_table()
    assert [file for file in tmp_path.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()] == []
    assert exported.num_rows == Lake(made, spark).sql("select * from silver.readings").count() == 31


def test_a_run_that_goes_on_sends_after_each_snapshot_and_a_server_that_is_down_holds_nothing_up(
    spark: SparkSession, made: Conf, server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_sinks, "MAX_PAUSE_SECONDS", 1.0)
    land(tmp_path, "1.json", [event("oven", "temperature", 1, time) for time in minutes(START, 31)])
    steps: list[datetime] = []

    def is_done() -> bool:
        """Sent; then the server is away for a snapshot; then it is back, and has all."""
        newest = all_snapshots(made.lake)
        state, is_down = read_state(made, "warehouse"), current_outage(made.lake, "sink", "warehouse") is not None
        if not steps and state.sent is not None:
            server.kill()
            land(tmp_path, "2.json", [late(100), *(event("oven", "temperature", 1, START + timedelta(minutes=45)),)])
            steps.append(START)
        if len(steps) == 1 and newest[-1].bronze_batch == 1 and is_down:
            server.start()
            steps.append(START)
        return len(steps) == 2 and state.sent is not None and state.sent.snapshot_id == newest[-1].snapshot_id and not is_down

    run_until(made, spark, is_done)
    assert in_postgres(server) == in_lake(made, spark)
    assert max(row[2] for row in in_postgres(server)) == 1
