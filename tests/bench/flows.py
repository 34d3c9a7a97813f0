"""Sessions, joins and states: our slices beside Spark's own operators, over the same readings; and whole runs with ten alerts and a session
flow, and without, in turn: `make bench NAME=flows`.
"""

import argparse
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from rich.console import Console

from gold.flows.slices import THE_BEGINNING, Slice, instants
from gold.flows.spec import Kind, Pairs, Sessions, StateMachine, Transition
from gold.flows.steps import nothing_carried, readings_of, step
from gold.instants import SECOND
from orchestration.conf.pipeline_settings import Engine
from orchestration.engine.jars import fetched
from orchestration.engine.session import HEAP_STORE, ROCKSDB_STORE, spark_session
from tests.bench.factory import write_conf, write_events
from tests.bench.processes import Run
from tests.bench.script import all_layers, by_turns, narrow_table, parser_for, progress, script, write_report
from tests.declared_flow import flow_of

DEVICES, GAP, WITHIN, LATENESS, SLICES = 200, 30, 5, 600, 8
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
START = 1_767_571_200
MACHINE = StateMachine("power", "idle", (Transition("idle", "busy", "value > 0.9"), Transition("busy", "idle", "value < 0.1")))
KINDS: dict[str, Kind] = {
    "sessions": Sessions(GAP, "power"),
    "join, left": Pairs("command", "power", WITHIN, join="left"),  # type: ignore[arg-type]
    "state machine": MACHINE,
}


ALERTS: dict[str, dict[str, Any]] = {
    "hot": {"reading": "temperature", "when": "value > 28", "recover_when": "value < 26"},
    "cold": {"reading": "temperature", "when": "value < 14", "for_seconds": 60},
    "leaps": {"reading": "power", "when": "abs(rate) > 100", "for_times": 2},
    "high_pressure": {"reading": "pressure", "when": "value > 1.05", "no_data": {"after_seconds": 600}},
    "shaken": {"window": "vibration", "group": "north", "when": "max > 8"},
    "damp": {"window": "humidity", "group": "middle", "when": "value > 70"},
    "patchy": {"vector": "south", "when": "missing_share > 0.2"},
    "few": {"count": {"every_seconds": 300}, "when": "readings < 100"},
    "quiet_group": {"count": {"every_seconds": 300, "by": "group"}, "when": "readings = 0"},
    "bad_share": {"account": {"every_seconds": 3600}, "when": "quarantined_share > 0.01"},
}
WHOLE_RUNS: dict[str, dict[str, Any]] = {
    "all layers": {},
    "with ten alerts and a flow": {"alerts": ALERTS, "flows": {"activity": {"sessions": {"metric": "power", "gap_seconds": 30}}}},
}
"""By name: what its conf has beside that of other benchmarks."""


def main() -> int:
    parser = parser_for(__doc__, "bench-flows", events=1_000_000, rounds=3)
    parser.add_argument("--only-runs", action="store_true", help="leave Spark's operators out")
    chosen = parser.parse_args()
    seconds = {} if chosen.only_runs else _beside_spark(chosen)
    table = narrow_table("what", "seconds, median", "events a second")
    runs = by_turns({name: partial(_whole_run, chosen, more) for name, more in WHOLE_RUNS.items()}, chosen.rounds)
    for name, taken in {**seconds, **{name: [run.seconds for run in of_name] for name, of_name in runs.items()}}.items():
        table.add_row(name, f"{np.median(taken):.2f}", f"{chosen.events / np.median(taken):,.0f}")
    Console().print(table)
    write_report(chosen, {"events": chosen.events, "seconds": seconds, "runs": {name: [*map(vars, done)] for name, done in runs.items()}})
    return 0


def _beside_spark(chosen: argparse.Namespace) -> dict[str, list[float]]:
    rows, folder = _readings(chosen.events), chosen.work / "flows"
    spark = spark_session(Engine(driver_memory="2g", cores=2), fetched(), chosen.work / "flows.log")
    (folder / "in").mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(_slices(rows)):
        pq.write_table(part, folder / "in" / f"{number}.parquet")
    jobs: dict[str, Callable[[], float]] = {}
    for name, kind in KINDS.items():
        jobs[f"{name}: slices"] = partial(_timed, partial(_by_slices, kind, rows))
        jobs[f"{name}: Spark"] = partial(_timed, partial(_by_spark, spark, QUERIES[name], folder))
    seconds = by_turns(jobs, chosen.rounds)
    spark.stop()
    return seconds


def _whole_run(chosen: argparse.Namespace, more: Mapping[str, Any]) -> Run:
    """All layers of a fresh lake. `more`: files of its conf."""
    folder = chosen.work / f"flows-{chosen.events}"
    folder.mkdir(parents=True, exist_ok=True)
    conf = write_conf(folder, chosen.driver_memory, chosen.cores)
    write_events(folder, conf, chosen.events, 1)
    for key, declared in more.items():
        (conf / f"{key}.yml").write_text(yaml.safe_dump({key: declared}))
    shutil.rmtree(folder / "lake", ignore_errors=True)
    run = all_layers(conf, folder / "run.log")
    progress.log(f"{', '.join(more) or 'all layers'}: {run.seconds:.1f} s")
    return run


def _readings(count: int) -> pa.Table:
    """Of 200 devices, each in turn, with gaps; every tenth is a command."""
    place = np.arange(count)
    second = START + place // DEVICES * 4 + (place // DEVICES // 50) * GAP
    chance = np.random.default_rng(7)
    columns = {
        "device_id": pa.array(np.char.add("device-", (place % DEVICES).astype(str))),
        "zone": pa.nulls(count, pa.string()),
        "metric": pa.array(np.where(chance.random(count) < 0.1, "command", "power")),
        "event_time": instants(second * SECOND),
        "value": pa.array(chance.random(count)),
        "bronze_batch": pa.array(place * 0),
        "bronze_row": pa.array(place),
        "part": pa.array((place * 0).astype(np.int32)),
    }
    return pa.table(columns)


def _slices(rows: pa.Table) -> Iterator[pa.Table]:
    size = -(-len(rows) // SLICES)
    yield from (rows.slice(at, size) for at in range(0, len(rows), size))


def _by_slices(kind: Kind, rows: pa.Table) -> None:
    flow = flow_of("flow", kind)
    carried, after = nothing_carried(flow), THE_BEGINNING
    for part in _slices(rows):
        taken = part.filter(pa.compute.is_in(part["metric"], pa.array(flow.metrics)))
        value = taken["value"].to_numpy()
        met = {"value > 0.9": value > 0.9, "value < 0.1": value < 0.1, "true": value >= 0}
        columns = [*taken.columns, *(pa.array(met[predicate]) for predicate in flow.predicates)]
        until = pa.compute.max(part["event_time"]).cast(pa.int64()).as_py()
        stepped = step(flow, Slice(carried, pa.table(columns, readings_of(flow)), after, until))
        carried, after = stepped.carried, until


def _by_spark(spark: SparkSession, query: Callable[[DataFrame], DataFrame], folder: Path) -> None:
    files, checkpoint = str(folder / "in"), str(folder / f"checkpoint-{time.time_ns()}")
    schema = spark.read.parquet(files).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", "1").parquet(files).withWatermark("event_time", "0 seconds")
    writer = query(stream).writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True)
    writer.start().awaitTermination()


def _sessions(rows: DataFrame) -> DataFrame:
    rows.sparkSession.conf.set(PROVIDER, HEAP_STORE)
    window = F.session_window("event_time", f"{GAP} seconds")
    return rows.where("metric = 'power'").groupBy("device_id", window).agg(F.count("value"), F.min("value"), F.max("value"), F.sum("value"))


def _join(rows: DataFrame) -> DataFrame:
    left, right = (rows.where(f"metric = '{metric}'").alias(metric) for metric in ("command", "power"))
    within = (
        "command.device_id = power.device_id and power.event_time between command.event_time"
        f" and command.event_time + interval {WITHIN} seconds"
    )
    return left.join(right, F.expr(within), "left").select("command.device_id", "command.value", F.col("power.value").alias("other"))


class _Machine(StatefulProcessor):
    """The state of a device, in the order in which rows come."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("state", "state string")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        held = self._state.get()
        state, changes = held[0] if held else "idle", []
        for frame in rows:
            for value in frame["value"]:
                if (state == "idle" and value > 0.9) or (state == "busy" and value < 0.1):
                    state = "busy" if state == "idle" else "idle"
                    changes.append((key[0], state))
        self._state.update((state,))
        yield pd.DataFrame(changes, columns=["device_id", "state"])

    def close(self) -> None:
        """Holds nothing."""


def _machine(rows: DataFrame) -> DataFrame:
    rows.sparkSession.conf.set(PROVIDER, ROCKSDB_STORE)  # the only store that takes it
    grouped = rows.where("metric = 'power'").groupBy("device_id")
    return grouped.transformWithStateInPandas(_Machine(), "device_id string, state string", "append", "none")


QUERIES: dict[str, Callable[[DataFrame], DataFrame]] = {"sessions": _sessions, "join, left": _join, "state machine": _machine}


def _timed(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


if __name__ == "__main__":
    script(main)
