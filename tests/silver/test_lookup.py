"""What is looked up for a few measurements is what SQL joins for all, for every combination of what may be known."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bronze.events import ARRIVED, identified
from bronze.schema import INSTANT
from expectations.rule import Rule
from silver.config import SilverConfig
from silver.enrich import catalogue
from silver.evaluated import PLAIN_INSTANT, evaluated, evaluation, holds_all, retyped
from silver.lookup import Lookup
from silver.measurements import measured
from silver.schema import DEVICES, READING_COLUMNS
from silver.spec import Aggregation, Conversion, Metric, Origin, PayloadFormat, Policy, Time, Unknown

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
SHAPE = PayloadFormat(
    "json",
    Origin(field="d"),
    Time("ts"),
    Origin(field="z"),
    metric=Origin(field="m"),
    value="v",
    unit=Origin(field="u"),
    attributes={"a": "a"},
)
METRICS = {
    "temperature": Metric("temperature", Aggregation.AVERAGE, 60, "degC", maximum=300.0, conversions={"degF": Conversion(5 / 9, -160 / 9)}),
    "level": Metric("level", Aggregation.LATEST, 60),
}
REGISTRY = [("oven", "hall-1", ["kitchen"], True), ("lost", "hall-2", ["kitchen"], False), ("loose", None, [], True)]
FIELDS: dict[str, list[Any]] = {
    "d": [None, "oven", "lost", "loose", "nobody"],
    "m": [None, "temperature", "level", "noise"],
    "u": [None, "degC", "degF", "K"],
    "v": [None, 20.5, 1e308, "x"],
    "z": [None, "hall-9"],
    "ts": [None, "2026-01-05T09:59:00Z", "2026-01-05T23:00:00Z"],
}
POLICY = Policy(lateness_seconds=60, max_future_seconds=3600, max_payload_bytes=1000)


@pytest.mark.parametrize("unknown_metric", Unknown)
@pytest.mark.parametrize("unknown_device", Unknown)
def test_readings_that_are_looked_up_are_those_that_are_joined(unknown_metric: Unknown, unknown_device: Unknown) -> None:
    policy = replace(POLICY, unknown_metric=unknown_metric, unknown_device=unknown_device)
    config = SilverConfig({"plant": SHAPE}, policy, (Rule("not_of_hall_9", "zone is null or zone != 'hall-9' or value > 20.6"),))
    payloads = [json.dumps(dict(zip(FIELDS, values, strict=True))) for values in product(*FIELDS.values())]
    events = of_payloads([text.encode() for text in payloads] + [b"no JSON", b"\xff", b"{}", b'{"a":"' + b"x" * 1000 + b'"}'])
    devices = pa.Table.from_pylist(
        [{"device_id": d, "zone": z, "groups": g, "is_known": k, "origin": "conf", "registered_at": NOW} for d, z, g, k in REGISTRY],
        DEVICES,
    )
    sql = evaluation(config)
    assert sql is not None
    joined = [row for piece in evaluated(events, devices, catalogue(METRICS), config, sql) for row in piece.to_pylist()]
    expected = [{name: row[name] for name in READING_COLUMNS} for row in joined if not row["broken_rules"]]
    lookup = Lookup(catalogue(METRICS), devices, policy)
    found = []
    with duckdb.connect() as store:
        for piece in measured(events, config):
            store.register("enriched", retyped(lookup.enriched(piece), INSTANT, PLAIN_INSTANT))
            rows = store.sql(f"select {', '.join(READING_COLUMNS)} from enriched where {holds_all(config)}").to_arrow_table()
            found += retyped(rows, PLAIN_INSTANT, INSTANT).to_pylist()
    assert len(expected) > 20
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def of_payloads(payloads: list[bytes]) -> pa.Table:
    same = {"source": "plant", "position": "a/1", "received_at": NOW}
    return identified(pa.Table.from_pylist([{"payload": payload} | same for payload in payloads], ARRIVED), NOW, 0, 0)
