"""Streaming queries: up to where one reads is settled while the table that it reads is held."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import AVAILABLE_NOW, WriteBarrier, start_queries, stop_queries
from orchestration.flows import gold
from orchestration.storage.bindings import bind
from orchestration.storage.checkpoints import newest_batch
from orchestration.storage.tables import ensure
from tests.lakes import conf, event, land, run, table
from tests.rows import at
from tests.waiting import until


def test_a_query_that_repeats_a_batch_has_not_begun_before_it_knows_what_comes_after(spark: SparkSession, tmp_path: Path) -> None:
    """Delta looks for the end of its table only then: what came since the repeat began would be read as well."""
    made = conf(tmp_path)
    land(tmp_path, "a.jsonl", [event("oven", "temperature", 20.0, at("12:00:00"))])
    run(made, spark, ["bronze.events", "silver.readings"])
    lake = Lake(made, spark)
    flow = gold(lake, "kitchen")
    for of_flow in flow.tables:
        ensure(of_flow)
    bind(lake, flow.name, flow.tables)

    def die(batch: DataFrame, batch_id: int) -> None:
        raise RuntimeError("killed")

    gate, offsets = WriteBarrier(threading.Event()), lake.checkpoint(flow.name) / "offsets"
    (broken,) = start_queries(lake, [replace(flow, write=die)], AVAILABLE_NOW, gate).values()
    with pytest.raises(StreamingQueryException, match="killed"):
        broken.awaitTermination()
    with pytest.raises(RuntimeError, match=r"^killed$"):  # what it was, and not Spark's trace of it
        stop_queries({flow: broken}, Progress([flow.name]), gate)
    assert newest_batch(offsets) == 0

    queries = start_queries(lake, [flow], AVAILABLE_NOW, gate)
    gate.await_begin(queries, 0.2)
    (query,) = queries.values()
    is_settled = not query.isActive or newest_batch(offsets) > 0
    query.awaitTermination()
    assert is_settled


def test_a_query_that_was_killed_while_it_noted_its_first_batch_begins_again(spark: SparkSession, tmp_path: Path) -> None:
    made = conf(tmp_path)
    land(tmp_path, "a.jsonl", [event("oven", "temperature", 20.0, at("12:00:00"))])
    offsets = made.lake.local / "checkpoints/silver.readings/offsets"
    offsets.mkdir(parents=True)
    for draft in (".0.b22795ee-14fc-4d94-a42a-556335d33da2.tmp", "..0.b22795ee-14fc-4d94-a42a-556335d33da2.tmp.crc"):
        (offsets / draft).write_text("v2")
    run(made, spark, ["bronze.events", "silver.readings"])
    assert table(made, "silver.readings").value.to_list() == [20.0]


def test_queries_that_have_ended_leave_neither_threads_nor_descriptors(spark: SparkSession, tmp_path: Path) -> None:
    made = conf(tmp_path)

    def bring(number: int) -> tuple[int, int]:
        land(tmp_path, f"{number}.jsonl", [event("oven", "temperature", float(number), at(f"{number}:00:00"))])
        run(made, spark, ["bronze.events", "silver.readings", "gold.kitchen"])
        return threading.active_count(), len(os.listdir("/proc/self/fd"))

    threads, descriptors = bring(10)
    more = range(11, 14)
    for number in more:
        bring(number)
    # Queries that happen to call back at the same time open one connection more, once; a leak is one for each run.
    until(lambda: threading.active_count() - threads < len(more) and len(os.listdir("/proc/self/fd")) - descriptors < len(more))
