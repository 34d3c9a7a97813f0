"""A lake with judged vectors, written without Spark: two ovens, two weeks of learning, then a week in which one of them has two faults."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from gold.anomalies.model import Series, train
from gold.anomalies.rows import Chain, Judges, JudgingState, judged
from gold.anomalies.tail import Floats
from gold.anomalies.vectors import Vectors
from orchestration.conf.load import load
from orchestration.storage.registry import sync
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from orchestration.storage.tables import LakeStore
from orchestration.utc import to_micros
from tests.collectors import write_conf
from tests.lakes import write

START, STEP, DAY = datetime(2026, 1, 5, tzinfo=UTC), 600_000_000, 144
LEARNED, ROWS = 14 * DAY, 21 * DAY
FEATURES = ("temperature", "power")
HOT, COLD = range(LEARNED + 200, LEARNED + 206), range(LEARNED + 700, LEARNED + 730)
"""Vectors of oven-01 in which its temperature is too high, and its power too low."""
GROUPS = """
groups:
  kitchen: {metrics: [temperature, power], stream: plant, vector: {entity: device}, anomalies: {}}
  attic: {metrics: [temperature], stream: plant}
"""
METRICS = "temperature: {unit: degC, aggregation: average, step_seconds: 600}\n  power: {unit: W, aggregation: average, step_seconds: 600}"
HEADER = "entity,begins_at,ends_at,kind,metric"


def end_of(row: int) -> datetime:
    """The end of the window of a vector."""
    return START + timedelta(minutes=10 * (row + 1))


def labels(*faults: tuple[str, range, str, str]) -> str:
    """A file of labels: entity, vectors, kind and metric."""
    lines = [
        f"{entity},{end_of(rows[0] - 1).isoformat()},{end_of(rows[-1]).isoformat()},{kind},{metric}"
        for entity, rows, kind, metric in faults
    ]
    return "\n".join([HEADER, *lines]) + "\n"


def anomaly_lake(folder: Path) -> Path:
    """Its conf."""
    conf = write_conf(folder, plant="path: ./landing")
    (conf / "groups.yml").write_text(GROUPS)
    (conf / "metrics.yml").write_text(f"metrics:\n  {METRICS}\n")
    (conf / "devices.yml").write_text("devices:\n  oven-01: {groups: [kitchen]}\n  oven-02: {groups: [kitchen]}\n")
    loaded = load(conf)
    sync(loaded.lake, loaded.devices, START)
    store, noise = LakeStore(loaded), np.random.default_rng(1)
    values = {entity: _values(noise, entity) for entity in ("oven-01", "oven-02")}
    ends = np.array([to_micros(end_of(row)) for row in range(ROWS)])
    model = train(FEATURES, STEP, [(entity, Series(ends[:LEARNED], of_entity[:LEARNED])) for entity, of_entity in values.items()])
    judges = Judges("kitchen", FEATURES, STEP, Chain((int(ends[LEARNED - 1]),), (("m1", model),)))
    for entity, of_entity in values.items():
        rows, _ = judged(judges, entity, Vectors(ends - STEP, ends, of_entity), JudgingState(np.empty((0, len(FEATURES)))))
        write(store, "gold.anomalies", *({**row, "revision": 0, "gold_batch": 0} for row in rows.to_pylist()))
        vectors = [_window(entity, row) | {"vector": vector.tolist(), "missing": [], "filled": []} for row, vector in enumerate(of_entity)]
        write(store, "gold.vectors", *vectors)
        windows = [_window(entity, row) | {"device_id": entity, "count": 10} for row in range(LEARNED, ROWS)]
        for number, metric in enumerate(FEATURES):
            write(
                store,
                "gold.aggregates",
                *({**w, "metric": metric, "value": of_entity[LEARNED + n, number]} for n, w in enumerate(windows)),
            )
    reading = {"device_id": "oven-01", "metric": "temperature", "value": 200.0, "groups": ["kitchen"], "event_time": end_of(ROWS - 2)}
    write(store, "silver.readings", reading | {"source": "plant", "ingested_at": end_of(ROWS), "bronze_batch": 0})
    versions = {"silver.readings": 0, "gold.vectors": 1, "gold.anomalies": 1, "gold.aggregates": 3}
    SNAPSHOTS.append(loaded.lake, [Snapshot(0, end_of(ROWS), 1, 0, versions, {"plant": end_of(ROWS - 1)})])
    return conf


def _values(noise: np.random.Generator, entity: str) -> Floats:
    cause = np.sin(2 * np.pi * np.arange(ROWS) / DAY) + noise.normal(size=ROWS) * 0.1
    values = np.stack([200 + 10 * cause, 900 + 80 * cause], axis=1) + noise.normal(size=(ROWS, 2)) * [0.5, 6]
    if entity == "oven-01":
        values[HOT.start : HOT.stop, 0] += 30
        values[COLD.start : COLD.stop, 1] -= 200
    return values


def _window(entity: str, row: int) -> dict[str, Any]:
    return {
        "device_group": "kitchen",
        "entity": entity,
        "window_start": end_of(row - 1),
        "window_end": end_of(row),
        "revision": 0,
        "gold_batch": 0,
    }
