"""A small lake for tests of sinks, written without Spark: readings, windows of one group, and snapshots of both."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import ANY

from deltalake import DeltaTable

from gold.alerts.spec import Alert, Signal
from gold.flows.spec import FlowSpec, Sessions
from gold.schema import CARRY
from orchestration.conf.model import Conf
from orchestration.conf.sink_settings import SinkSettings
from orchestration.connectors.sinks.all import sinks
from orchestration.jobs.sinks import Sent, send
from orchestration.storage import generations
from orchestration.storage.delta import files_of, open_table
from orchestration.storage.generations import Generation
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS, all_snapshots
from orchestration.storage.tables import LakeStore, ensure
from tests.lakes import KITCHEN, conf, recorded, write

START = datetime(2026, 1, 5, tzinfo=UTC)
NOW = datetime(2026, 1, 6, 12, tzinfo=UTC)
STEPS = count()
"""Seconds after NOW at which a step begins."""
READINGS, AGGREGATES, VECTORS = "silver.readings", "gold.kitchen_aggregates", "gold.kitchen_vectors"
KEYS = {
    READINGS: ["bronze_batch", "bronze_row", "part"],
    AGGREGATES: ["device_id", "metric", "window_end"],
    VECTORS: ["entity", "window_end"],
    "gold.heating": ["device_id", "session_start"],
    "gold.alerts": ["alert", "entity", "changed_at", "state", "previous_state"],
}
HOT = Alert("hot", Signal("reading", "temperature"), "value > 280")
Row = dict[str, Any]


class SmallLake:
    """Each `pin` is a snapshot of what was written before."""

    def __init__(self, folder: Path, sinks: Mapping[str, Mapping[str, Any]], generation: Generation | None = None) -> None:
        """`sinks`: as pipeline.yml has them."""
        (folder / "conf").mkdir(parents=True, exist_ok=True)
        declared = {name: SinkSettings(**settings) for name, settings in sinks.items()}
        flows = {name: FlowSpec(name, sessions=Sessions(120, "power")) for name in ("heating", "cooling")}
        self.conf: Conf = replace(
            conf(folder, groups={"kitchen": KITCHEN}, sinks=declared, flows=flows, alerts={"hot": HOT}), folder=folder / "conf"
        )
        self.store = LakeStore(self.conf, generation)
        for table in self.store.tables.values():
            ensure(table)

    def write(self, table: str, rows: Sequence[Row]) -> "SmallLake":
        """Append rows; a column that is left out is null."""
        write(self.store, table, *rows)
        return self

    def pin(self, bronze_batch: int) -> Snapshot:
        """Of everything as it is now."""
        number = max((snapshot.snapshot_id for snapshot in all_snapshots(self.conf.lake)), default=-1) + 1
        versions = {name: DeltaTable(str(table.location)).version() for name, table in self.store.tables.items()}
        at = START + timedelta(days=1, seconds=number)
        snapshot = Snapshot(number, at, self.store.generation.generation, bronze_batch, versions, {})
        SNAPSHOTS.append(self.conf.lake, [snapshot])
        return snapshot

    def step(self, name: str | None = None) -> Sent | None:
        """One batch to a sink, which may be the only one."""
        (name,) = self.conf.sinks if name is None else (name,)
        return send(self.conf, name, sinks(self.conf)[name], NOW + timedelta(seconds=next(STEPS)))

    def send_all(self) -> None:
        while self.step():
            pass

    def grow(self, number: int, chance: random.Random, count: int = 2000) -> Snapshot:
        """New windows, and amendments of some earlier ones."""
        first, end = number * count, (number + 1) * count
        self.write(AGGREGATES, [window(number, at, float(number), device=f"oven-{at % 50}") for at in range(first, end)])
        amended = chance.sample(range(end), 50)
        self.write(AGGREGATES, [window(number, at, chance.random(), revision=number + 1, device=f"oven-{at % 50}") for at in amended])
        return self.pin(number)

    def send_a_million(self) -> None:
        """A million windows, in 20,000 of 50 devices, and how fast they were sent."""
        for part in range(10):
            rows = (window(part, part * 2000 + at // 50, float(at), device=f"oven-{at % 50}") for at in range(100_000))
            self.write(AGGREGATES, [*rows])
        self.pin(0)
        sent = self.step()
        assert sent is not None and sent.rows == 1_000_000
        print(f"{sent.rows / sent.seconds:,.0f} rows/s")

    def compact(self, table: str, *kept: Snapshot) -> None:
        """Small files become one; on the disk is then only what the table and the kept snapshots need."""
        name = self.store.stored(table)
        path = self.store.tables[name].location
        DeltaTable(str(path)).optimize.compact()
        versions = [None, *(snapshot.versions[name] for snapshot in kept)]
        needed = {name for version in versions for name in files_of(open_table(path, version))}
        for file in path.glob("*.parquet"):
            if file.name not in needed:
                file.local.unlink()

    def expected(self, table: str, snapshot: Snapshot) -> dict[tuple[str, ...], Row]:
        """What readers see at a snapshot, by key, computed in Python."""
        of_snapshot = LakeStore(self.conf, generations.numbered(self.conf.lake, snapshot.generation))
        seen: dict[tuple[str, ...], Row] = {}
        for row in recorded(of_snapshot, table, snapshot.versions).to_pylist(maps_as_pydicts="lossy"):
            key = tuple(str(row[name]) for name in KEYS[table])
            if row.get("bronze_batch", -1) <= snapshot.bronze_batch and row.get("revision", 0) >= seen.get(key, row).get("revision", 0):
                seen[key] = {name: value for name, value in row.items() if name != CARRY.name}
        return seen

    def next_generation(self) -> "SmallLake":
        """As after a replay: tables of its own, active from now on."""
        places = {table.replace(".", "/"): 2 for table in self.store.tables if table.startswith("silver.")}
        places["checkpoints/gold.kitchen"] = 2
        generation = Generation(1, 2, START, "a test", 0, places)
        generations.GENERATIONS.append(self.conf.lake, [generation])
        other = object.__new__(SmallLake)
        other.conf, other.store = self.conf, LakeStore(self.conf, generation)
        for table in other.store.tables.values():
            ensure(table)
        return other


def sent(rows: int, *, is_complete: bool = True) -> Sent:
    return Sent(ANY, rows, ANY, is_complete)


def reading(bronze_batch: int, row: int, value: float | None = 1.0, **changes: Any) -> Row:
    """One a minute."""
    return {
        "device_id": f"oven-{row % 7}",
        "metric": "temperature",
        "event_time": START + timedelta(minutes=row),
        "value": value,
        "groups": ["kitchen", 'say "hi", \\ {x}', ""],
        "source": "plant",
        "ingested_at": START,
        "bronze_batch": bronze_batch,
        "bronze_row": row,
        "part": 0,
        **changes,
    }


def window(gold_batch: int, number: int, value: float | None, revision: int = 0, device: str = "oven") -> Row:
    """One every ten minutes."""
    end = START + timedelta(minutes=10 * number + 10)
    numbers = dict.fromkeys(("value", "min", "max", "sum", "latest"), value)
    times = {"window_start": end - timedelta(minutes=10), "window_end": end}
    return {"device_id": device, "metric": "power", **times, "count": 3, **numbers, "revision": revision, "gold_batch": gold_batch}


def vector(gold_batch: int, number: int, values: Sequence[float | None] | None, revision: int = 0) -> Row:
    end = START + timedelta(minutes=10 * number + 10)
    lists = {"vector": None if values is None else [*values], "missing": ["power"], "filled": []}
    times = {"window_start": end - timedelta(minutes=10), "window_end": end}
    return {"entity": "oven", **times, **lists, "revision": revision, "gold_batch": gold_batch}


def windows(gold_batch: int, numbers: Sequence[int], value: float = 1.0) -> Iterator[Row]:
    yield from (window(gold_batch, number, value) for number in numbers)


def session(number: int, flow: str = "heating") -> Row:
    """One every ten minutes."""
    begin = START + timedelta(minutes=10 * number)
    return {
        "flow": flow,
        "device_id": "oven",
        "session_start": begin,
        "session_end": begin + timedelta(minutes=5),
        "sum": math.nan,
        "bronze_batch": 0,
    }


def alert(number: int, state: str) -> Row:
    """A change of state every ten minutes."""
    at = START + timedelta(minutes=10 * number)
    return {"alert": "hot", "entity": "oven", "state": state, "previous_state": "normal", "changed_at": at, "bronze_batch": 0}
