"""A lake with every shape of table that queries meet, written without Spark: two snapshots, and rows that came after them."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from gold.schema import AGGREGATES, VECTORS
from orchestration.conf.model import Conf
from orchestration.storage.delta import version_of
from orchestration.storage.marts import MARTS, Build
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from tests.lakes import conf
from tests.rows import at

START = at("2026-01-05T00:00:00")
INSTANT = pa.timestamp("us", "UTC")
TEXTS = pa.list_(pa.string())
IDENTITY = (("bronze_batch", pa.int64()), ("bronze_row", pa.int64()))
EVENTS = pa.schema([("payload", pa.binary()), ("source", pa.string()), ("position", pa.string()), *IDENTITY])
READINGS = pa.schema(
    [
        *(("device_id", pa.string()), ("metric", pa.string()), ("event_time", INSTANT), ("value", pa.float64()), ("unit", pa.string())),
        *(("groups", TEXTS), ("attributes", pa.map_(pa.string(), pa.string())), *IDENTITY, ("part", pa.int32())),
    ]
)
QUARANTINE = pa.schema([("broken_rules", TEXTS), ("payload", pa.binary()), ("device_id", pa.string()), *IDENTITY])
LATE = pa.schema(
    [
        *(("device_id", pa.string()), ("metric", pa.string()), ("event_time", INSTANT), ("cause", pa.string())),
        *(("value", pa.float64()), ("groups", TEXTS), *IDENTITY),
    ]
)
LEDGER = pa.schema([("source", pa.string()), ("bronze_batch", pa.int64()), *((name, pa.int64()) for name in ("events", "readings"))])
PINNED = ("bronze.events", "silver.readings", "silver.quarantine", "silver.late", "gold.aggregates", "gold.vectors")


def minute(number: float) -> datetime:
    """So many minutes behind the start."""
    return START + timedelta(minutes=number)


def plant(folder: Path) -> Conf:
    """Bronze batches 0 and 1 in snapshots 0 and 1; of batch 2 the rows are there and no snapshot."""
    made = conf(folder)
    _batch(made, 0, [("oven", "temperature", 0, 20.0), ("oven", "temperature", 5, 22.0), ("oven", "power", 0, 1.5)])
    _write(made, "gold.aggregates", AGGREGATES, [_window("oven", 0, 21.0, 2, 20.0, 22.0, 0)])
    _write(made, "gold.vectors", VECTORS, [_vector("oven", [21.0, None], ["power"], [], 0)])
    _write(made, "marts.hourly", pa.schema([("device_id", pa.string()), ("n", pa.int64())]), [("oven", 3)])
    _pin(made, 0)
    build = Build(1, minute(61), 0, 1, {"marts.hourly": 0})
    MARTS.append(made.lake, [build])
    fridge = [("fridge", "temperature", 1, 4.0), ("fridge", "temperature", 6, 5.0), ("oven", "temperature", 15, 30.0)]
    _batch(made, 1, [*fridge, ("press", "vibration", 2, -1.0), ("press", "vibration", 7, 3.0)])
    again = [_window("oven", 0, 20.5, 3, 19.5, 22.0, 1), _window("oven", 10, 30.0, 1, 30.0, 30.0, 0)]
    _write(made, "gold.aggregates", AGGREGATES, [*again, _window("fridge", 0, 4.5, 2, 4.0, 5.0, 0)])
    vectors = [_vector("oven", [20.5, 1.5], [], ["power"], 1), _vector("fridge", [4.5, None], ["power"], [], 0)]
    _write(made, "gold.vectors", VECTORS, vectors)
    _pin(made, 1)
    _batch(made, 2, [("fridge", "temperature", 20, 99.0)])
    _write(made, "gold.aggregates", AGGREGATES, [_window("fridge", 10, 99.0, 1, 99.0, 99.0, 0)])
    return made


def _batch(made: Conf, batch: int, readings: list[tuple[str, str, float, float]]) -> None:
    """Its events and readings, and two events in quarantine."""
    payloads = [f'{{"device": "{device}", "{metric}": {value}}}'.encode() for device, metric, _, value in readings]
    bad = [(["payload_is_valid_json"], b"{broken", None), (["something_is_measured"], b"{}", "oven")]
    group = {"oven": "kitchen", "fridge": "kitchen", "press": "presses"}
    everything = [*payloads, *(payload for _, payload, _ in bad)]
    events = [(payload, "plant", f"{batch}.json:{row}", batch, row) for row, payload in enumerate(everything)]
    rows = [
        (*(device, metric, minute(time), value, "W" if metric == "power" else None), [group[device]], [("shift", "early")], batch, row, 0)
        for row, (device, metric, time, value) in enumerate(readings)
    ]
    _write(made, "bronze.events", EVENTS, events)
    _write(made, "silver.readings", READINGS, rows)
    _write(made, "silver.quarantine", QUARANTINE, [(*each, batch, len(rows) + n) for n, each in enumerate(bad)])
    _write(made, "silver.late", LATE, [("oven", "temperature", minute(2), "late", 1.0, ["kitchen"], batch, 0)])
    _write(made, "ops.ledger", LEDGER, [("plant", batch, len(events), len(rows))])


def _window(device: str, start: float, *values: float) -> tuple[Any, ...]:
    """Of ten minutes. `values`: value, count, min, max, revision."""
    value, count, least, greatest, revision = values
    of_readings = (value, count, least, greatest, value * count, greatest)
    return "kitchen", device, "temperature", minute(start), minute(start + 10), *of_readings, revision, 0


def _vector(entity: str, vector: list[float | None], missing: list[str], filled: list[str], revision: int) -> tuple[Any, ...]:
    return "kitchen", entity, minute(0), minute(10), vector, missing, filled, revision, 0


def _write(made: Conf, name: str, schema: pa.Schema, rows: list[tuple[Any, ...]]) -> None:
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    write_deltalake(made.lake.local / name.replace(".", "/"), table, mode="append")


def _pin(made: Conf, number: int) -> None:
    versions = {name: version_of(made.lake / name.replace(".", "/")) for name in PINNED}
    SNAPSHOTS.append(made.lake, [Snapshot(number, minute(60 * (number + 1)), 1, number, versions, {"kitchen": minute(20)})])
