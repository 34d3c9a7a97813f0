"""Objects of an S3-compatible store and rows of Parquet files through all layers, with a real store: all accounted for."""

import math
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from orchestration.conf.model import Source
from orchestration.conf.transport_settings import LandingFolder, S3Settings
from tests.lakes import KITCHEN, SHAPE, conf, event, minutes, run
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.orchestration.test_kafka_flows import account_of
from tests.rows import at


def test_events_of_objects_and_of_parquet_are_accounted_for_and_an_overwritten_one_gives_duplicates(
    spark: SparkSession, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_S3", ACCESS_KEY)
    monkeypatch.setenv("SECRET_OF_S3", SECRET_KEY)
    bucket = store.bucket()
    where = S3Settings(bucket=bucket, endpoint=store.endpoint, access_key="${env:KEY_OF_S3}", secret_key="${env:SECRET_OF_S3}")
    rows = Source("rows", replace(SHAPE, format="parquet"), LandingFolder(tmp_path / "landing", settle_seconds=0.0))
    made = conf(tmp_path, sources={"plant": Source("plant", SHAPE, where), "rows": rows}, groups={"kitchen": KITCHEN})
    times = minutes(at("2026-01-05T00:00:00"), 40)
    (tmp_path / "landing").mkdir()
    columns = {"device": ["fridge"] * 30, "metric": ["temperature"] * 30, "value": [*range(29), math.nan], "ts": times[:30]}
    pq.write_table(pa.table(columns), tmp_path / "landing/a.parquet")
    lines = [event("oven", "temperature", n, time).encode() for n, time in enumerate(times)]
    store.put(bucket, {"1.json": b"\n".join([*lines[:30], b"{broken"])})
    run(made, spark)
    store.put(bucket, {"1.json": b"\n".join([*lines[20:30], *lines[30:]])})
    for _ in range(2):  # the second time nothing waits
        run(made, spark)
        assert account_of(made) == {"plant": (51, 40, 1, 0, 10), "rows": (30, 29, 1, 0, 0)}
