"""Rows for tests: short ways to write events, readings and instants."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from bronze.schema import EVENTS
from silver import account
from silver.aggregation import Aggregation
from silver.enrich import ReferenceData
from silver.judging import judged
from silver.metric import Conversion, Metric
from silver.policy import Policy, SilverConfig
from silver.schema import DEVICES, READINGS, REFERENCES
from silver.spec import Origin, PayloadFormat, Time

INGESTED_AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            "temperature", Aggregation.AVERAGE, 60, "degC", minimum=-50.0, maximum=500.0, conversions={"degF": Conversion(5 / 9, -160 / 9)}
        ),
        Metric("humidity", Aggregation.MAX, 60),
        Metric("power", Aggregation.SUM, 3600, "W"),
    )
}
LONG = PayloadFormat(
    "json", Origin(field="device"), Time("ts"), metric=Origin(field="metric"), value=Origin("value"), unit=Origin(field="unit")
)
POLICY = Policy(lateness_seconds=600, max_future_seconds=300, max_payload_bytes=1000, max_age_seconds=100_000_000_000)


def at(text: str) -> datetime:
    """`12:00:01` on the first of January 2026, or a whole ISO instant; UTC."""
    return datetime.fromisoformat(text if "-" in text else f"2026-01-01T{text}").replace(tzinfo=UTC)


def frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> DataFrame:
    return spark.createDataFrame(rows, from_arrow_schema(schema))


def events(payloads: Sequence[str | bytes], header: str | None = None, position: str = "room.txt", first: int = 0) -> pa.Table:
    """Events of source `plant`, numbered from `first` in `bronze_row`."""
    rows = [
        {
            "payload": payload if isinstance(payload, bytes) else payload.encode(),
            "header": header,
            "source": "plant",
            "position": position,
            "received_at": INGESTED_AT,
            "ingested_at": INGESTED_AT,
            "bronze_batch": 0,
            "bronze_row": first + n,
        }
        for n, payload in enumerate(payloads)
    ]
    return pa.Table.from_pylist(rows, EVENTS)


def devices(*versions: tuple[Any, ...]) -> pa.Table:
    """A registry; without versions, `oven` and `room` are in the kitchen since 1970. The last column, `moved_at`, may be left out."""
    since = datetime(1970, 1, 1, tzinfo=UTC)
    known = versions or tuple((name, "hall", ["kitchen"], None, True, "conf", since) for name in ("oven", "room"))
    return pa.Table.from_pylist([dict(zip(DEVICES.names, version, strict=False)) for version in known], DEVICES)


def references(*versions: tuple[str, str, dict[str, str] | None, datetime]) -> pa.Table:
    """Versions of what references say: of what, its name, attributes, since when."""
    rows = [(key_of, key, said and list(said.items()), since) for key_of, key, said, since in versions]
    return pa.Table.from_pylist([dict(zip(REFERENCES.names, row, strict=True)) for row in rows], REFERENCES)


def silver(rows: pa.Table, shape: PayloadFormat = LONG, policy: Policy = POLICY, **more: Any) -> tuple[list[Any], list[Any]]:
    """Good measurements of events and their quarantine, in the order of events; duplicates are among the good ones."""
    config = SilverConfig({"plant": shape}, policy, METRICS, more.get("rules", ()))
    measurements = pa.concat_tables(judged(rows, ReferenceData(more.get("devices") or devices(), more.get("references")), config))
    broken, good = account.split(measurements.sort_by([("bronze_row", "ascending"), ("part", "ascending")]))
    rejected = [Row(**row) for piece in account.quarantine(broken, rows) for row in piece.to_pylist()]
    return [Row(**row) for row in good.to_pylist()], rejected


def rows_of(found: DataFrame) -> list[Any]:
    """Its rows; unlike those of `collect`, their instants are in UTC and say so."""
    return [Row(**row) for row in found.toArrow().to_pylist()]


def measured(spark: SparkSession, rows: Sequence[tuple[str, str, float, datetime]], groups: Sequence[str] = ("kitchen",)) -> DataFrame:
    """Readings: device, metric, value, event time."""
    full = [
        (device, metric, event_time, value, None, None, None, None, list(groups), None, "plant", INGESTED_AT, 0, n, 0, 1)
        for n, (device, metric, value, event_time) in enumerate(rows)
    ]
    return frame(spark, full, READINGS)
