"""Lakes of which vectors are written by hand and judged slice by slice, without Spark."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gold.anomalies.spec import Anomalies
from gold.flows.slices import instants
from orchestration.engine.lake import Lake
from orchestration.jobs.gold import slices
from orchestration.jobs.gold.anomalies import judged_streams
from orchestration.jobs.gold.prefix import Prefix
from orchestration.storage.commit import append_rows
from orchestration.storage.delta import written_by
from orchestration.storage.positions import GoldPosition
from orchestration.storage.tables import ensure
from orchestration.utc import to_micros
from tests.lakes import KITCHEN, conf
from tests.rows import at

START, STEP = to_micros(at("2026-01-05T00:00:00")), 600_000_000
DAY = 144


def lake_of(folder: Path, **anomalies: Any) -> Lake:
    """A lake with a group that learns for two days."""
    of_group = replace(KITCHEN, anomalies=Anomalies(**{"learning_seconds": 2 * 86_400, **anomalies}))
    lake = Lake(conf(folder, groups={"kitchen": of_group}))
    for table in lake.tables.values():
        ensure(table)
    return lake


def values_of(device: int, count: int) -> npt.NDArray[np.float64]:
    noise = np.random.default_rng(device)
    heat = np.sin(2 * np.pi * np.arange(count) / DAY) + noise.normal(size=count) * 0.1
    return np.stack([200 + 20 * heat, 5 + heat + noise.normal(size=count) * 0.05], axis=1)


def vectors(
    lake: Lake, devices: Sequence[str], rows: Sequence[int], gold_batch: int, revision: int = 0, *, faulty: Sequence[int] = ()
) -> None:
    """Append vectors of devices, by their numbers since START; power is filled in five of six. Amended and faulty ones are 30 higher."""
    ends = START + (np.asarray(rows) + 1) * STEP
    for number, device in enumerate(devices):
        values = values_of(number, 2000)[np.asarray(rows)] + 30 * (revision + np.isin(rows, faulty)[:, None])
        columns = {
            "device_group": pa.repeat("kitchen", len(rows)),
            "entity": pa.repeat(device, len(rows)),
            "window_start": instants(ends - STEP),
            "window_end": instants(ends),
            "vector": pa.array(values.tolist()),
            "missing": pa.array([[]] * len(rows), pa.list_(pa.string())),
            "filled": pa.array([["power"] if row % 6 else [] for row in rows], pa.list_(pa.string())),
            "revision": pa.array([revision] * len(rows), pa.int32()),
            "gold_batch": pa.array([gold_batch] * len(rows), pa.int64()),
        }
        table = lake.tables["gold.vectors"]
        by = lake.app_id("gold.amendments/kitchen", "gold.vectors") if revision else None
        rows_of_device = pa.table([columns[name] for name in table.schema.names], table.schema)
        append_rows(table.location, rows_of_device, by, written_by(table.location, by) + 1 if by else 0)


def follow(lake: Lake, batch: int, rows: int) -> int:
    """Judge up to a bronze batch, with so many windows closed; returns how many rows are written."""
    reached = GoldPosition(batch, (START + rows * STEP) // 1000, batch, batch)
    return sum(sum(slices.follow(lake, stream, Prefix(batch, {"kitchen": reached}))) for stream in judged_streams(lake))
