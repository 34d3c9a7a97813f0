"""The account of the silver layer as functions: whatever comes, in whatever order, each measurement ends in exactly one table."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from bronze.schema import EVENTS
from silver import account
from silver.enrich import ReferenceData
from silver.judging import judged
from silver.policy import SilverConfig
from silver.schema import READING_COLUMNS
from silver.spec import Origin, PayloadFormat, Time
from tests.rows import INGESTED_AT, METRICS, POLICY, at, devices

LISTS = PayloadFormat(
    "json", Origin(field="each.d"), Time("each.t"), metric=Origin(constant="humidity"), value=Origin("each.v"), each="list"
)
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
IDENTITIES = pa.schema([("bronze_batch", pa.int64()), ("bronze_row", pa.int64()), ("part", pa.int32())])
MEASUREMENTS = st.builds(Measurement, st.sampled_from(["oven", "room"]), st.integers(0, 12), st.sampled_from([True, True, True, False]))
EVENTS_OF_A_BATCH = st.lists(st.tuples(st.integers(0, SITES - 1), st.lists(MEASUREMENTS, max_size=3)), min_size=20, max_size=60)
BATCHES = st.lists(EVENTS_OF_A_BATCH, min_size=2, max_size=4)


@dataclass
class Expected:
    """What each measurement is, by a model of the stream that has no table in it."""

    accepted: set[Identity] = field(default_factory=set)
    rejected: set[Identity] = field(default_factory=set)
    key_of: dict[Identity, tuple[str, int]] = field(default_factory=dict)


def expected(batches: Batches) -> Expected:
    """What is late depends on the watermark of the batches before; of a key the stream takes one, here the last that is in the batch."""
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


def sent(batches: Batches) -> pa.Table:
    rows = [
        (payload(*event), None, "plant", "1.json", INGESTED_AT, None, None, INGESTED_AT, INGESTED_AT.date(), batch, row)
        for batch, events in enumerate(batches)
        for row, event in enumerate(events)
    ]
    return pa.Table.from_pylist([dict(zip(EVENTS.names, row, strict=True)) for row in rows], EVENTS)


def accounted(batches: Batches, accepted: set[Identity], cut: int) -> dict[str, list[dict[str, Any]]]:
    """The tables after two accounts: of the batches before `cut`, then of the others."""
    registry: list[tuple[Any, ...]] = [
        (f"{name}-{site}", None, [], None, True, "conf", START) for name in ("oven", "room") for site in range(SITES)
    ]
    events, config = sent(batches), SilverConfig({"plant": LISTS}, POLICY, METRICS)
    measurements = pa.concat_tables(judged(events, ReferenceData(devices(*registry)), config))
    of_stream = pa.Table.from_pylist([dict(zip(account.IDENTITY, identity, strict=True)) for identity in accepted], IDENTITIES)
    readings = account.among(measurements, account.IDENTITY, of_stream).select(READING_COLUMNS)
    tables: dict[str, list[pa.Table]] = {"readings": [readings], "quarantine": [], "late": [readings.slice(0, 0)], "duplicates": []}
    for first, last in ((0, cut), (cut, len(batches))):
        of_range = (pc.field("bronze_batch") >= first) & (pc.field("bronze_batch") < last)
        known = readings.filter(of_range)
        incomplete = account.incomplete(events.filter(of_range), halves(known))
        to_place = account.among(measurements, account.OF_EVENT, incomplete)
        broken, good = account.split(account.without_readings(to_place, known))
        tables["quarantine"] += account.quarantine(broken, events)
        stored = [readings.filter(pc.field("bronze_batch") < last), *tables["late"]]
        kept = account.kept_of_keys(halves(good), stored)
        beside = [account.with_kept(rows, kept) for rows in halves(good)]
        tables["late"] += [account.late(rows).select(READING_COLUMNS) for rows in beside]
        tables["duplicates"] += map(account.duplicates, beside)
    return {name: [row for piece in pieces for row in piece.to_pylist()] for name, pieces in tables.items()}


def halves(rows: pa.Table) -> list[pa.Table]:
    return [rows.slice(0, len(rows) // 2), rows.slice(len(rows) // 2)]


def identity_of(row: Mapping[str, Any], names: Sequence[str] = account.IDENTITY) -> Identity:
    batch, place, part = (row[name] for name in names)
    return batch, place, part


@given(batches=BATCHES, share=st.floats(0, 1))
@settings(max_examples=20, deadline=None)
def test_every_measurement_ends_in_exactly_one_table(batches: Batches, share: float) -> None:
    model = expected(batches)
    tables = accounted(batches, model.accepted, round(share * len(batches)))
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
        named = identity_of(row, account.KEPT)
        assert named in kept
        assert model.key_of[named] == model.key_of[identity_of(row)]


def test_an_event_is_complete_once_all_its_measurements_are_readings_also_of_several_pieces() -> None:
    readings = pa.table({"bronze_batch": [0, 0], "bronze_row": [4, 4], "part": [0, 1], "parts": [2, 2]})
    events = readings.select(account.OF_EVENT).slice(0, 1)
    assert len(account.incomplete(events, [readings.slice(0, 1), readings.slice(1)])) == 0
    assert account.incomplete(events, [readings.slice(1)]).to_pylist() == events.to_pylist()
