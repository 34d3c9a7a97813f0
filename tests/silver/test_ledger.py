"""The account of the silver layer as functions: whatever comes, in whatever order, each measurement ends in exactly one table."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bronze.schema import EVENTS
from silver import few
from silver import ledger as layer
from silver.enrich import catalogue
from silver.readings import KEYS, READING_COLUMNS, Declared
from silver.spec import Origin, PayloadFormat, Time
from tests.rows import INGESTED_AT, METRICS, POLICY, at, devices

LISTS = PayloadFormat("json", Origin(field="each.d"), Time("each.t"), metric=Origin(constant="humidity"), value="each.v", each="list")
START = at("2026-01-01T00:00:00")
LATENESS_MINUTES = 3


class Measurement(NamedTuple):
    """One of a list in an event. `is_good` false: its value is no number."""

    device: str
    minute: int
    is_good: bool


Event = tuple[int, list[Measurement]]
"""Sites know nothing of each other: each has devices and a watermark of its own. An event without measurements cannot be read."""
Batches = list[list[Event]]
Identity = tuple[int, int, int]

SITES = 8
MEASUREMENTS = st.builds(Measurement, st.sampled_from(["oven", "room"]), st.integers(0, 12), st.sampled_from([True, True, True, False]))
EVENTS_OF_A_BATCH = st.lists(st.tuples(st.integers(0, SITES - 1), st.lists(MEASUREMENTS, max_size=3)), min_size=20, max_size=60)
BATCHES = st.lists(EVENTS_OF_A_BATCH, min_size=2, max_size=4)


@dataclass
class Expected:
    """What each measurement is, told by a model of the stream that has no table in it."""

    accepted: set[Identity] = field(default_factory=set)
    rejected: set[Identity] = field(default_factory=set)
    key_of: dict[Identity, tuple[str, int]] = field(default_factory=dict)


def expected(batches: Batches) -> Expected:
    """A batch is judged by the watermark that those before it left; of a key the stream takes one, here the last that is in the batch."""
    model = Expected()
    watermark, newest, taken = [-1] * SITES, [-1] * SITES, set[tuple[str, int]]()
    for batch, events in enumerate(batches):
        candidates: dict[tuple[str, int], Identity] = {}
        for row, (site, event) in enumerate(events):
            model.rejected.update(() if event else {(batch, row, 0)})
            model.rejected.update((batch, row, part) for part, one in enumerate(event) if not one.is_good)
            for part, one in enumerate(event):
                key = f"{one.device}-{site}", one.minute
                if one.is_good:
                    model.key_of[batch, row, part] = key
                    newest[site] = max(newest[site], one.minute)
                    if one.minute > watermark[site] and key not in taken:
                        candidates[key] = batch, row, part
        taken |= candidates.keys()
        model.accepted.update(candidates.values())
        watermark = [minute - LATENESS_MINUTES for minute in newest]
    return model


def payload(site: int, event: Sequence[Measurement]) -> bytes:
    if not event:
        return b"{broken"
    times = [(START + timedelta(minutes=one.minute)).isoformat() for one in event]
    rows = [{"d": f"{one.device}-{site}", "t": time, "v": 1 if one.is_good else "none"} for one, time in zip(event, times, strict=True)]
    return json.dumps({"list": rows}).encode()


def sent(spark: SparkSession, batches: Batches) -> DataFrame:
    rows = [
        (payload(*event), None, "plant", "1.json", INGESTED_AT, INGESTED_AT, INGESTED_AT.date(), batch, row)
        for batch, events in enumerate(batches)
        for row, event in enumerate(events)
    ]
    return spark.createDataFrame(rows, EVENTS)


def accounted(spark: SparkSession, batches: Batches, accepted: set[Identity], cut: int) -> dict[str, list[dict[str, Any]]]:
    """The tables after two accounts: of the batches before `cut`, then of the others."""
    registry: list[tuple[Any, ...]] = [
        (f"{name}-{site}", None, [], None, True, "conf", START) for name in ("oven", "room") for site in range(SITES)
    ]
    metrics = spark.createDataFrame(catalogue(METRICS))
    knowledge = (devices(spark, *registry), metrics, Declared({"plant": LISTS}, POLICY))
    events = sent(spark, batches).localCheckpoint()
    of_stream = spark.createDataFrame(sorted(accepted), "bronze_batch bigint, bronze_row bigint, part int")
    every = layer.judged(events, *knowledge).select(*READING_COLUMNS)
    readings = every.join(of_stream, on=layer.IDENTITY, how="left_semi").select(*READING_COLUMNS).localCheckpoint()
    tables: dict[str, list[dict[str, Any]]] = {
        "readings": told({"readings": readings})["readings"],
        "quarantine": [],
        "late": [],
        "duplicates": [],
    }
    kept = readings.select(*KEYS, *layer.IDENTITY)
    for first, last in ((0, cut), (cut, len(batches))):
        of_these = (F.col("bronze_batch") >= first) & (F.col("bronze_batch") < last)
        keys = layer.keys_not_yet_readings(events.where(of_these).toArrow(), readings.where(of_these).toArrow())
        judged = layer.judged(layer.of_keys(events.where(of_these), spark.createDataFrame(keys)), *knowledge)
        measurements = layer.not_among(judged, readings.where(of_these)).localCheckpoint()
        beside = layer.with_kept(layer.turned_away(measurements), kept.where(F.col("bronze_batch") < last))
        late = layer.late(beside).localCheckpoint()
        alone = (judged.toArrow(), readings.where(of_these).toArrow(), events.toArrow(), kept.where(F.col("bronze_batch") < last).toArrow())
        kinds = {"quarantine": layer.quarantine(measurements, events), "late": late, "duplicates": layer.duplicates(beside)}
        for kind, rows in told(kinds).items():
            tables[kind] += rows
        for kind, few_rows in of_few(*alone).items():
            assert ordered(few_rows) == ordered(kinds[kind].select(*few_rows.column_names).toArrow())
        kept = kept.unionByName(late.select(*KEYS, *layer.IDENTITY))
    return tables


def of_few(judged: pa.Table, accepted: pa.Table, events: pa.Table, kept: pa.Table) -> dict[str, pa.Table]:
    """The same account without Spark; what is kept comes in two pieces."""
    broken, turned_away = few.broken_and_turned_away(few.not_among(judged, accepted))
    halves = (kept.slice(0, len(kept) // 2), kept.slice(len(kept) // 2))
    late, duplicates = few.late_and_duplicates(few.with_kept(turned_away, few.of_these_keys(halves, turned_away)))
    return {"quarantine": few.quarantine(broken, events), "late": late, "duplicates": duplicates}


def ordered(rows: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.sort_by([(name, "ascending") for name in layer.IDENTITY]).to_pylist()
    return found


def told(kinds: Mapping[str, DataFrame]) -> dict[str, list[dict[str, Any]]]:
    """Identities, and those of the kept ones where a table has them; in one job."""
    parts = [rows.select(F.lit(kind).alias("kind"), *(set(rows.columns) & {*layer.IDENTITY, *layer.KEPT})) for kind, rows in kinds.items()]
    rows = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts).toArrow().to_pylist()
    return {kind: [row for row in rows if row["kind"] == kind] for kind in kinds}


def identity_of(row: Mapping[str, Any], names: Sequence[str] = layer.IDENTITY) -> Identity:
    batch, place, part = (row[name] for name in names)
    return batch, place, part


@given(batches=BATCHES, share=st.floats(0, 1))
@settings(max_examples=3, deadline=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck])
def test_every_measurement_ends_in_exactly_one_table(spark: SparkSession, batches: Batches, share: float) -> None:
    """Shrinking would take hours of Spark; Hypothesis prints what it found."""
    model = expected(batches)
    tables = accounted(spark, batches, model.accepted, round(share * len(batches)))
    ends = Counter(identity_of(row) for rows in tables.values() for row in rows)
    assert ends == dict.fromkeys([*model.key_of, *model.rejected], 1)
    assert {identity_of(row) for row in tables["quarantine"]} == model.rejected
    assert {identity_of(row) for row in tables["readings"]} == model.accepted
    # Of each key one measurement is kept, as a reading or late, and all its duplicates name that one.
    kept = {identity_of(row) for kind in ("readings", "late") for row in tables[kind]}
    assert sorted(model.key_of[identity] for identity in kept) == sorted(set(model.key_of.values()))
    for row in tables["late"]:
        key = model.key_of[identity_of(row)]
        assert identity_of(row) == min(identity for identity, other in model.key_of.items() if other == key)
    for row in tables["duplicates"]:
        named = identity_of(row, layer.KEPT)
        assert named in kept
        assert model.key_of[named] == model.key_of[identity_of(row)]
