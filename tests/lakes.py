"""Whole lakes for tests: a conf in code, a landing folder, the real flows in the session of the tests."""

import io
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from pyspark.sql import SparkSession
from rich.console import Console

from gold.windows.spec import Group, Vector
from orchestration.audit.verify.check import verify
from orchestration.audit.verify.compare import Difference
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.conf.model import Conf, Device, Engine, Source
from orchestration.conf.transport_settings import LandingFolder
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.flows import flows
from orchestration.location import Location
from orchestration.storage.delta import log_of
from orchestration.storage.generations import active_generation
from orchestration.storage.tables import LakeStore
from orchestration.supervisor import pipeline_run
from orchestration.supervisor.replay import STEPS, build, finish, plan
from orchestration.supervisor.run import run_continuously, run_once
from orchestration.supervisor.summary import Summary
from silver.aggregation import Aggregation
from silver.metric import Metric
from silver.policy import Policy
from silver.spec import Origin, PayloadFormat, Time
from tests.waiting import until

SHAPE = PayloadFormat("json", Origin(field="device"), Time("ts"), metric=Origin(field="metric"), value=Origin("value"))
METRICS = {
    "temperature": Metric("temperature", Aggregation.AVERAGE, 600),
    "power": Metric("power", Aggregation.SUM, 3600),
    "vibration": Metric("vibration", Aggregation.MAX, 600, slide_seconds=300),
}
KITCHEN = Group("kitchen", ("temperature", "power"), 600, "kitchen", Vector("device", ("temperature", "power"), 3600))
PRESSES = Group("presses", ("vibration",), 600, "presses", Vector("group", ("press.vibration",)))
DEVICES = {"oven": ("kitchen",), "fridge": ("kitchen",), "press": ("presses",)}


def conf(folder: Path, **changes: Any) -> Conf:
    """A small conf; `changes` replace its fields."""
    made = Conf(
        folder=folder,
        pipeline="test",
        lake=Location(folder / "lake"),
        policy=Policy(lateness_seconds=600, max_future_seconds=300, max_payload_bytes=10_000),
        engine=Engine(shuffle_partitions=2, trigger_seconds=0.2),
        sources={"plant": Source("plant", SHAPE, LandingFolder(folder / "landing", settle_seconds=0.0))},
        metrics=METRICS,
        devices={name: Device(name, groups) for name, groups in DEVICES.items()},
        groups={"kitchen": KITCHEN, "presses": PRESSES},
        rules=(),
    )
    return replace(made, **changes)


def bare_conf(folder: Path, **changes: Any) -> Conf:
    """One that declares nothing but a group without a vector; `changes` replace its fields."""
    kitchen = Group("kitchen", ("temperature",), 600, "kitchen")
    nothing = {"sources": {}, "metrics": {}, "devices": {}, "groups": {"kitchen": kitchen}}
    return replace(conf(folder), **{"folder": folder / "conf", "pipeline": "plant", **nothing, **changes})


def copied(made: Conf, folder: Path) -> Conf:
    """A lake of `conf` with its landing folder in another folder, so that tests go on from what one of them has brought in."""
    copy_tree(made.folder, folder)
    return conf(folder, devices=made.devices, groups=made.groups)


def copy_tree(folder: Path, to: Path) -> None:
    """Without files that are still being written: the state store goes on with its snapshots for a while when a stream has ended."""
    shutil.copytree(folder, to, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.tmp*"))


def event(device: str, metric: str, value: float, event_time: datetime) -> str:
    return json.dumps({"device": device, "metric": metric, "value": value, "ts": event_time.isoformat()})


def commit_at(table: Location, version: int, at: datetime) -> None:
    """Write into the log that a version was committed at that time."""
    file = log_of(table, version).local
    file.write_text(re.sub(r'(?<={"commitInfo":{"timestamp":)\d+', str(int(at.timestamp() * 1000)), file.read_text(), count=1))


def land(folder: Path, name: str, lines: Sequence[str | bytes], landing: str = "landing") -> Path:
    """A file of these lines in the landing folder."""
    return land_bytes(folder, name, b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines), landing)


def land_bytes(folder: Path, name: str, content: bytes, landing: str = "landing") -> Path:
    """A file in the landing folder; its time is that of its number of siblings, so that files keep their order."""
    file = folder / landing / name
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = folder / f"draft of {file.name}"
    draft.write_bytes(content)
    modified = 1_700_000_000 + len({*file.parent.iterdir(), file})
    os.utime(draft, (modified, modified))
    return draft.rename(file)  # who follows the folder would take a file of another time for another one


def run(made: Conf, spark: SparkSession | None, names: Sequence[str] = ()) -> Summary:
    """`tidemark run --once`, of all flows or those named, and what it ends with. Without a session it fails where it wants one."""
    lake, summaries = Lake(made, spark), list[Summary]()
    lake.start = no_session
    chosen = [flow for flow in flows(lake) if not names or flow.name in names]
    with Progress([flow.name for flow in chosen], Console(file=io.StringIO())) as progress:
        run_once(lake, chosen, progress, threading.Event(), summaries.append)
    (summary,) = summaries
    return summary


def no_session(_: Callable[[], SparkSession]) -> SparkSession:
    """Instead of the one that Spark would start."""
    raise AssertionError("Spark is started, and nothing waits")


def run_until(made: Conf, spark: SparkSession, is_done: Callable[[], bool]) -> None:
    """`tidemark run` until `is_done`, then as if SIGTERM had come. Gold rests for a moment only between two cycles."""
    lake, stop = Lake(made, spark), threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with Progress([flow.name for flow in flows(lake)], Console(file=io.StringIO())) as progress:
                run_continuously(lake, flows(lake), progress, stop)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    with patch.object(pipeline_run, "PAUSE_SECONDS", 0.2):
        thread.start()
        try:
            until(lambda: bool(failures) or is_done(), pause_seconds=0.2)
        finally:
            stop.set()
            thread.join()
    for query in spark.streams.active:  # of a run that broke; the next test starts queries of the same names
        query.stop()
    assert not failures, failures


def replay(made: Conf, spark: SparkSession, group: str | None = None, since: date | None = None) -> int:
    """`tidemark replay`; returns the generation that then serves."""
    lake = Lake(made, spark)
    wanted = plan(lake, group, since)
    with Progress([*STEPS, *(flow.name for flow in flows(lake))], Console(file=io.StringIO())) as progress:
        finish(build(lake, wanted, progress), wanted, progress)
    return active_generation(made.lake).generation


def differences(made: Conf) -> list[Difference]:
    """What `tidemark verify` finds."""
    return [difference for outcome in verify(latest_snapshot(made), made).outcomes for difference in outcome.first]


def write(lake: LakeStore, name: str, *rows: Mapping[str, Any]) -> None:
    """A version of a table that has these rows more; a column that a row does not name is null. Of gold.<group>_<kind> of the group.

    Rows of a group come with the transaction of its stream.
    """
    whole, group = lake.stored(name), lake.conf.group_of(name)
    of, of_group = lake.tables[whole], {"device_group": group.name} if group else {}
    partition = [of.partition] if of.partition else None
    made = pa.Table.from_pylist([{**row, **of_group} for row in rows], of.schema)
    batches = [row["gold_batch"] for row in rows if row.get("gold_batch") is not None and group]
    by_stream = [Transaction(lake.app_id(f"gold.{group.stream}", whole), max(batches))] if batches and group else []
    properties = CommitProperties(app_transactions=by_stream)
    write_deltalake(of.location.local, made, mode="append", partition_by=partition, commit_properties=properties)


def rewrite(lake: LakeStore, name: str, rows: pa.Table) -> None:
    """As somebody does who writes to a table by hand: these rows instead of those that it has, of gold.<group>_<kind> of the group."""
    whole, group = lake.stored(name), lake.conf.group_of(name)
    table = DeltaTable(lake.table_path(whole).local)
    if group is not None:
        others = table.to_pyarrow_table().filter(pc.field("device_group") != group.name)
        rows = pa.concat_tables(
            [others, rows.append_column("device_group", pa.array([group.name] * len(rows))).select(others.column_names)]
        )
    write_deltalake(table, rows, mode="overwrite")


def recorded(lake: LakeStore, name: str, versions: Mapping[str, int] | None = None) -> pa.Table:
    """Rows of a table, by default as it is now, read without Spark; of gold.<group>_<kind> all revisions, as readers see them.

    Of gold.<flow> too.
    """
    whole, group = lake.stored(name), lake.conf.group_of(name)
    path, version = lake.table_path(whole), versions[whole] if versions else None
    rows = DeltaTable(str(path), version=version, storage_options=path.store.delta_options).to_pyarrow_table()
    flow = name.removeprefix("gold.")
    if flow in lake.conf.flows:
        return rows.filter(pc.field("flow") == flow).drop_columns("flow")
    return rows if group is None else rows.filter(pc.field("device_group") == group.name).drop_columns("device_group")


def table(made: Conf, name: str) -> pd.DataFrame:
    """The same of the active generation."""
    return pd.DataFrame(recorded(LakeStore(made), name).to_pandas())


def latest(made: Conf, name: str, key: Sequence[str]) -> pd.DataFrame:
    """Of a gold table the newest revision of each key."""
    return table(made, name).sort_values("revision").drop_duplicates(list(key), keep="last")


def minutes(start: datetime, count: int, step: float = 1.0) -> list[datetime]:
    """Instants a `step` of minutes apart."""
    return [start + timedelta(minutes=step * n) for n in range(count)]


def multiset(rows: pd.DataFrame, columns: Sequence[str]) -> Mapping[Any, int]:
    """Rows by their content, whatever their order."""
    return rows[list(columns)].map(str).value_counts().to_dict()


def assert_same(found: pd.DataFrame, expected: pd.DataFrame, key: Sequence[str], columns: Sequence[str]) -> None:
    """The same rows in any order: floats to 1e-9 of themselves, all else exactly. Rows of one key have to be equal in `columns`."""
    assert len(expected) > 0
    left, right = (rows.sort_values(list(key), ignore_index=True)[list(columns)].map(_plain) for rows in (found, expected))
    pd.testing.assert_frame_equal(left, right, check_dtype=False, check_exact=False, rtol=1e-9, atol=0)


def _plain(cell: Any) -> Any:
    """An array as a list, whoever read it."""
    return list(cell) if isinstance(cell, np.ndarray) else cell


def with_batches_of(made: Conf, max_bytes: int) -> Conf:
    """The conf with micro-batches of at most so many bytes, also fewer than a file may set: one file a batch, where it is 1."""
    engine = copy(made.engine)
    object.__setattr__(engine, "max_batch_bytes", max_bytes)
    return replace(made, engine=engine)
