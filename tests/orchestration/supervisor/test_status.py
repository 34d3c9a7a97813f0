"""`tidemark status`: what it says of logs and checkpoints as Spark leaves them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from gold.windows.spec import Group
from orchestration import flows as wired
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.storage.generations import active_generation
from orchestration.supervisor.status import FLOW_COLUMNS, flow_status, flows
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.lakes import bare_conf, commit_at

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
GROUPS = {
    "kitchen": Group("kitchen", ("temperature",), 600, "kitchen"),
    "press_line": Group("press_line", ("temperature",), 600, "halls"),
    "building": Group("building", ("temperature",), 600, "halls"),
}


def conf_of(folder: Path) -> Conf:
    return bare_conf(folder, groups=GROUPS, metrics={"temperature": Metric("temperature", Aggregation.AVERAGE, 600)})


def append(table: Path, count: int, at: datetime, **columns: list[int]) -> None:
    """A version of `count` rows, committed at that time."""
    rows = {name: pa.array(values, pa.int64()) for name, values in ({"number": list(range(count))} | columns).items()}
    write_deltalake(table, pa.table(rows), mode="append")
    commit_at(Location(table), DeltaTable(table).version(), at)


def finished(checkpoint: Path, batch: int, watermark: datetime | None, *offsets: dict[str, Any]) -> None:
    """A batch as Spark notes it, begun at noon."""
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
    named = (f"source_{n}:{json.dumps(offset)}" for n, offset in enumerate(offsets))
    lines = ["v2", json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": int(NOON.timestamp() * 1000)}), "empty:-", *named]
    (checkpoint / "offsets" / str(batch)).write_text("\n".join(lines))
    ends = json.dumps({"nextBatchWatermarkMs": int(watermark.timestamp() * 1000) if watermark else 0})
    (checkpoint / "commits" / str(batch)).write_text(f"v1\n{ends}")


def read_up_to(table: Path, version: int, index: int) -> dict[str, Any]:
    return {"sourceVersion": 1, "reservoirId": str(DeltaTable(table).metadata().id), "reservoirVersion": version, "index": index}


def of(flow: str, conf: Conf, now: datetime = NOON) -> dict[str, Any]:
    return next(row for row in flow_status(conf, now) if row["flow"] == flow)


def test_the_flows_are_those_that_run(tmp_path: Path) -> None:
    conf = conf_of(tmp_path)
    assert [(name, tables) for name, _, tables in flows(conf, active_generation(conf.lake))] == [
        (flow.name, [table.name for table in flow.tables]) for flow in wired.flows(Lake(conf))
    ]


def test_a_lake_that_does_not_exist_has_no_rows_and_nothing_to_say(tmp_path: Path) -> None:
    rows = flow_status(conf_of(tmp_path), NOON)
    assert [row["table"] for row in rows][4:7] == ["silver.duplicates", "gold.aggregates", "gold.vectors"]
    assert {(tuple(row), row["rows"], *list(row.values())[3:]) for row in rows} == {(FLOW_COLUMNS, 0, None, None, None, None, None)}
    assert not (tmp_path / "lake").exists()


def test_a_flow_that_read_everything_is_not_behind(tmp_path: Path) -> None:
    conf = conf_of(tmp_path)
    events = conf.lake / "bronze/events"
    append(events.local, 7, NOON)
    finished(conf.lake.local / "checkpoints/silver.readings", 0, None, read_up_to(events.local, 0, -1))
    finished(conf.lake.local / "checkpoints/silver.readings", 10, NOON - timedelta(minutes=10), read_up_to(events.local, 1, -1))
    row = of("silver.readings", conf, NOON + timedelta(hours=1))
    assert [row[name] for name in FLOW_COLUMNS[3:]] == [10, NOON, NOON - timedelta(minutes=10), 0.0, 0]


def test_a_flow_is_behind_by_the_rows_after_its_offset_and_lags_by_the_oldest_of_them(tmp_path: Path) -> None:
    conf = conf_of(tmp_path)
    events = conf.lake / "bronze/events"
    for count in (1, 10, 100):
        append(events.local, count, NOON + timedelta(minutes=count))
    finished(conf.lake.local / "checkpoints/silver.readings", 0, None, read_up_to(events.local, 1, -1))
    row = of("silver.readings", conf, NOON + timedelta(minutes=11))
    assert (row["behind"], row["lag_seconds"]) == (110, 60.0)
    # Another flow has not begun: every row waits for it.
    assert of("gold.kitchen", conf)["behind"] is None


def test_a_version_read_in_part_counts_for_the_files_that_are_left(tmp_path: Path) -> None:
    conf = conf_of(tmp_path)
    events = conf.lake / "bronze/events"
    parts = pa.table({"part": ["a", "b", "b", "c", "c", "c"], "number": [0] * 6})
    write_deltalake(events.local, parts, partition_by=["part"], mode="append")
    added = [
        json.loads(line)["add"]
        for line in (events.local / f"_delta_log/{0:020d}.json").read_text().splitlines()
        if line.startswith('{"add"')
    ]
    left = [json.loads(add["stats"])["numRecords"] for add in added][1:]
    finished(conf.lake.local / "checkpoints/silver.readings", 0, None, read_up_to(events.local, 0, 0))
    assert of("silver.readings", conf)["behind"] == sum(left) > 0


@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_a_flow_whose_checkpoint_is_damaged_is_behind_by_all_that_it_reads(log: str, tmp_path: Path) -> None:
    conf = conf_of(tmp_path)
    events, checkpoint = conf.lake / "bronze/events", conf.lake.local / "checkpoints/silver.readings"
    append(events.local, 7, NOON)
    finished(checkpoint, 3, NOON, read_up_to(events.local, 1, -1))
    (checkpoint / log / "3").write_text("v1")
    assert of("silver.readings", conf)["behind"] == 7
    assert of("bronze.events", conf)["rows"] == 7


def ingested(conf: Conf, batch: int, count: int, at: datetime) -> None:
    """A bronze batch of `count` events."""
    append(conf.lake.local / "bronze/events", count, at, bronze_batch=[batch] * count)


def test_the_ledger_is_behind_by_the_events_of_later_batches_and_lags_by_the_oldest_of_them(tmp_path: Path) -> None:
    conf = conf_of(tmp_path)
    for batch, count in enumerate((1, 10, 100)):
        ingested(conf, batch, count, NOON + timedelta(minutes=count))
    append(conf.lake.local / "ops/ledger", 1, NOON + timedelta(minutes=5), bronze_batch=[0])
    row = of("silver.ledger", conf, NOON + timedelta(minutes=11))
    assert [row[name] for name in FLOW_COLUMNS[3:]] == [0, NOON + timedelta(minutes=5), None, 60.0, 110]
    append(conf.lake.local / "ops/ledger", 2, NOON + timedelta(hours=2), bronze_batch=[1, 2])
    DeltaTable(conf.lake.local / "bronze/events").optimize.compact()
    row = of("silver.ledger", conf, NOON + timedelta(hours=3))
    assert [row[name] for name in FLOW_COLUMNS[3:]] == [2, NOON + timedelta(hours=2), None, 0.0, 0]


def test_a_ledger_that_has_not_begun_is_behind_by_all_events(tmp_path: Path) -> None:
    conf = conf_of(tmp_path)
    append(conf.lake.local / "ops/ledger", 0, NOON, bronze_batch=[])
    ingested(conf, 0, 7, NOON)
    row = of("silver.ledger", conf, NOON + timedelta(seconds=9))
    assert [row[name] for name in FLOW_COLUMNS[3:]] == [None, None, None, 9.0, 7]


def test_rearranging_a_table_leaves_nobody_behind(tmp_path: Path) -> None:
    conf = conf_of(tmp_path)
    events = conf.lake / "bronze/events"
    append(events.local, 3, NOON)
    append(events.local, 3, NOON)
    finished(conf.lake.local / "checkpoints/silver.readings", 0, None, read_up_to(events.local, 2, -1))
    DeltaTable(events.local).optimize.compact()
    assert (of("silver.readings", conf)["behind"], DeltaTable(events.local).version()) == (0, 2)


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_sources_the_offset_of_the_readings_counts(tmp_path: Path, order: int) -> None:
    conf = conf_of(tmp_path)
    readings, ticks = conf.lake / "silver/readings", conf.lake / "ops/ticks"
    append(readings.local, 5, NOON)
    append(ticks.local, 1, NOON)
    offsets = [read_up_to(readings.local, 1, -1), read_up_to(ticks.local, 0, -1)][::order]
    finished(conf.lake.local / "checkpoints/gold.halls", 0, NOON, *offsets)
    rows = [row for row in flow_status(conf, NOON) if row["flow"] == "gold.halls"]
    assert [(row["table"], row["behind"]) for row in rows] == [("gold.aggregates", 0), ("gold.vectors", 0)]
