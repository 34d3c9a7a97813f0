"""The medallion of hand_written_medallion.py in polars and delta-rs, as fast as one machine can.

Batch jobs in memory: no stream, nothing to recover.

What it does not do is why it is fast: it reads everything at once, so nothing is late, and a second run starts from nothing.

Usage: polars_medallion.py JSON, the arguments of `main`, with the packages of requirements.lock beside this file
"""

import json
import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
sys.path.insert(0, str(REPOSITORY))  # run as a script, by another Python

from tests.bench.factory import GROUPS, METRICS, STEP_SECONDS, registry  # noqa: E402


def main(*, landing: str, lake: str, cores: int, devices: int, **_: object) -> None:
    os.environ["POLARS_MAX_THREADS"] = str(cores)
    import polars as pl  # it counts its threads when it is imported

    schema = {"device": pl.String, "metric": pl.String, "value": pl.Float64, "unit": pl.String, "zone": pl.String, "ts": pl.String}
    events = pl.scan_ndjson(f"{landing}/*", schema=schema).collect()
    events.write_delta(f"{lake}/bronze")
    groups = registry(devices)
    known = pl.LazyFrame({"device": [*groups], "of_group": [*groups.values()]})
    at = pl.col("ts").str.to_datetime(time_unit="us", time_zone="UTC")
    readings = (
        events.lazy()
        .with_columns(at.alias("event_time"))
        .drop("ts")
        .drop_nulls(["event_time", "value"])
        .join(known, on="device")
        .join(pl.LazyFrame({"metric": [*METRICS]}), on="metric")
        .unique(["device", "metric", "event_time"], keep="any")
        .collect()
    )
    readings.write_delta(f"{lake}/silver")
    value = pl.col("value")
    numbers = [value.mean().alias("mean"), pl.len().alias("count"), value.min().alias("min"), value.max().alias("max")]
    numbers.append(value.sort_by("event_time").last().alias("latest"))
    window = pl.col("event_time").dt.truncate(f"{STEP_SECONDS}s").alias("window_start")
    for group in GROUPS:
        of_group = readings.lazy().filter(pl.col("of_group") == group)
        of_group.group_by("device", "metric", window).agg(numbers).collect().write_delta(f"{lake}/gold_{group}")


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
