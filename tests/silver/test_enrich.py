"""Enrichment: units, the registry, unknown devices and metrics, rules of the user; what their tables say of a device or a zone."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expectations.rule import Rule
from orchestration.audit.verify import silver_evaluator
from silver.enrich import Enrichment
from silver.measurements import MEASURED
from silver.policy import Policy, Unknown
from silver.schema import DEVICES
from silver.spec import Origin
from tests.rows import INGESTED_AT, LONG, POLICY, at, devices, events, references, silver

EVER, BEFORE, AFTER = (datetime(year, month, 1, tzinfo=UTC) for year, month in ((1970, 1), (2025, 12), (2026, 2)))
SHAPE = replace(LONG, attributes={"customer": "c", "note": "n"})


def event(device: str = "oven", metric: str = "temperature", **more: Any) -> str:
    return json.dumps({"device": device, "metric": metric, "value": 1.0, "ts": "2026-01-01T00:00:01Z"} | more)


def test_values_are_in_the_unit_of_the_metric_whatever_unit_the_device_sends() -> None:
    payloads = [event(value=212, unit="degF"), event("room", value=100, unit="degC"), event("oven", "humidity", unit="%")]
    readings, _ = silver(events(payloads))
    assert [(round(row.value, 9), row.unit) for row in readings] == [(100.0, "degC"), (100.0, "degC"), (1.0, None)]


def test_a_device_counts_as_it_was_registered_when_the_event_was_ingested() -> None:
    before, after = datetime(2026, 1, 1, 11, tzinfo=UTC), datetime(2026, 1, 1, 13, tzinfo=UTC)
    registry = devices(
        ("moved", "hall-1", ["kitchen"], None, True, "conf", before),
        ("moved", "hall-2", ["press_line"], None, True, "conf", after),  # after INGESTED_AT: not yet
        ("retired", None, ["kitchen"], None, True, "conf", datetime(1970, 1, 1, tzinfo=UTC)),
        ("retired", None, [], None, False, "conf", before),
        ("coming", None, ["kitchen"], None, True, "conf", after),
        ("both", "hall-3", ["kitchen", "press_line"], None, True, "conf", INGESTED_AT),
    )
    rows = events([event(name) for name in ("moved", "retired", "coming", "both")])
    readings, quarantined = silver(rows, devices=registry)
    assert [(row.device_id, row.zone, row.groups) for row in readings] == [
        ("moved", "hall-1", ["kitchen"]),
        ("both", "hall-3", ["kitchen", "press_line"]),
    ]
    assert [(row.device_id, row.broken_rules) for row in quarantined] == [("retired", ["device_is_known"]), ("coming", ["device_is_known"])]


@pytest.mark.parametrize(("device", "metric"), [("nobody", "temperature"), ("oven", "mood"), ("nobody", "mood")])
def test_unknown_devices_and_metrics_go_to_the_unassigned_group_where_conf_says_so(device: str, metric: str) -> None:
    policy = Policy(600, 300, 1000, unknown_device=Unknown.UNASSIGNED, unknown_metric=Unknown.UNASSIGNED)
    readings, quarantined = silver(events([event(device, metric)]), policy=policy)
    assert quarantined == []
    assert [(row.device_id, row.metric, row.groups) for row in readings] == [(device, metric, ["unassigned"])]


def test_rules_of_the_user_are_named_beside_the_built_in_ones_and_null_is_broken() -> None:
    rules = (Rule("is_warm", "value > 20"), Rule("has_zone", "zone = 'hall'"), Rule("is_never_known", "1 / (value - value) > 0"))
    readings, quarantined = silver(events([event(value=30), event(value=900)]), rules=rules[:2])
    assert [row.value for row in readings] == [30.0]
    assert [row.broken_rules for row in quarantined] == [["value_is_in_range"]]
    assert silver(events([event()]), rules=rules)[1][0].broken_rules == ["is_warm", "is_never_known"]


VERSIONS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 6)), max_size=12, unique=True)


@given(versions=VERSIONS, asked=st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d", None]), st.integers(0, 6)), max_size=20))
def test_of_each_device_the_newest_version_before_the_event_counts(
    versions: list[tuple[str, int]], asked: list[tuple[str | None, int]]
) -> None:
    """Whatever the order of versions and events, and however many instants they are of."""
    registry = pa.Table.from_pylist(
        [
            {"device_id": name, "zone": f"{name}-{minute}", "groups": [], "is_known": True, "registered_at": at(f"12:0{minute}:00")}
            for name, minute in versions
        ],
        DEVICES,
    )
    rows = [{"device_id": name, "ingested_at": at(f"12:0{minute}:00")} for name, minute in asked]
    zones = Enrichment({}, POLICY).enriched(pa.Table.from_pylist(rows, MEASURED), registry)["zone"].to_pylist()
    minutes_before = [[minute for device, minute in versions if device == name and minute <= now] for name, now in asked]
    newest = [max(minutes, default=None) for minutes in minutes_before]
    assert zones == [None if minute is None else f"{name}-{minute}" for (name, _), minute in zip(asked, newest, strict=True)]


MOVES = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4))), max_size=10, unique=True)
ASKED = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4))), max_size=10)


@given(versions=MOVES, asked=ASKED)
def test_of_the_newest_declaration_that_has_one_the_site_counts_at_which_the_device_measured(
    versions: list[tuple[str, int, int | None]], asked: list[tuple[str, int, int | None]]
) -> None:
    """As Enrichment finds it, and as `verify` does; what has no time counts as of after all moves."""

    def instant(minute: int | None) -> datetime | None:
        return None if minute is None else at(f"12:0{minute}:00")

    def site(name: str, ingested: int, measured: int | None) -> str | None:
        counting = [row for row in versions if row[0] == name and row[1] <= ingested]
        counting = [row for row in counting if row[2] is None or measured is None or row[2] <= measured]
        newest = max(counting, key=lambda row: (row[1], -1 if row[2] is None else row[2]), default=None)
        return newest and str(newest)

    rows = [
        {"device_id": name, "zone": str((name, minute, moved)), "groups": [], "is_known": True}
        | {"registered_at": instant(minute), "moved_at": instant(moved)}
        for name, minute, moved in versions
    ]
    registry = pa.Table.from_pylist(rows, DEVICES)
    events_asked = [
        {"device_id": name, "ingested_at": instant(ingested), "event_time": instant(measured)} for name, ingested, measured in asked
    ]
    measured = pa.Table.from_pylist(events_asked, MEASURED)
    expected = [site(*event_asked) for event_asked in asked]
    assert Enrichment({}, POLICY).enriched(measured, registry)["zone"].to_pylist() == expected
    with duckdb.connect() as store:
        store.execute("set TimeZone = 'UTC'")
        store.register("recorded", registry)
        times = "* replace (registered_at::timestamp as registered_at, moved_at::timestamp as moved_at)"
        store.execute(f"create view devices as select {times} from recorded")
        store.register("arrived", pa.Table.from_pylist([row | {"n": n} for n, row in enumerate(events_asked)], ASKED_COLUMNS))
        store.execute(f"create table versions as from ({silver_evaluator.VERSIONS})")
        found = store.sql(
            silver_evaluator.ENRICHED.format(is_assigned="is_device_known", unassigned="unassigned", measured=OF_ASKED) + " order by n"
        )
        assert [row[0] for row in found.project("zone").fetchall()] == expected


ASKED_COLUMNS = pa.schema([MEASURED.field(name) for name in ("device_id", "ingested_at", "event_time")] + [("n", pa.int64())])
OF_ASKED = """
  select device_id, ingested_at::timestamp as ingested_at, event_time::timestamp as event_time, n, null::varchar as zone_text from arrived
"""


def attributes(payload: str, *versions: Any, **more: Any) -> Any:
    (reading,), _ = silver(events([payload]), references=references(*versions), **more)
    return None if reading.attributes is None else dict(reading.attributes)


def test_a_version_counts_for_events_ingested_from_its_instant_on() -> None:
    old, new = ("device_id", "oven", {"customer": "Ada"}, EVER), ("device_id", "oven", {"customer": "Bob"}, INGESTED_AT)
    assert attributes(event(), old) == {"customer": "Ada"}
    assert attributes(event(), old, new) == {"customer": "Bob"}
    assert attributes(event(), old, (*new[:3], AFTER)) == {"customer": "Ada"}
    assert attributes(event(), (*new[:3], AFTER)) is None, "it was not known then"


def test_a_row_that_left_the_table_and_a_device_that_it_never_had_give_no_attributes() -> None:
    assert attributes(event(), ("device_id", "oven", {"customer": "Ada"}, EVER), ("device_id", "oven", None, BEFORE)) is None
    assert attributes(event(), ("device_id", "room", {"customer": "Ada"}, EVER)) is None


def test_a_zone_is_that_of_the_event_else_that_of_the_registry() -> None:
    halls = [("zone", name, {"foreman": foreman}, EVER) for name, foreman in (("hall", "Eve"), ("yard", "Kim"))]
    assert attributes(event(), *halls) == {"foreman": "Eve"}
    zoned = replace(LONG, zone=Origin(field="z"))
    assert attributes(event(z="yard"), *halls, shape=zoned) == {"foreman": "Kim"}
    assert attributes(event(z="moon"), *halls, shape=zoned) is None
    of_device = ("device_id", "oven", {"customer": "Ada"}, EVER)
    assert attributes(event(), *halls, of_device) == {"customer": "Ada", "foreman": "Eve"}


def test_an_attribute_of_the_event_stays_and_one_that_it_leaves_blank_is_filled() -> None:
    said = ("device_id", "oven", {"customer": "Ada", "contract": "7"}, EVER)
    assert attributes(event(c="Zoe", n="x"), said, shape=SHAPE) == {"customer": "Zoe", "note": "x", "contract": "7"}
    assert attributes(event(c=" "), said, shape=SHAPE) == {"customer": "Ada", "note": None, "contract": "7"}
    assert attributes(event("room", c="Zoe"), said, shape=SHAPE) == {"customer": "Zoe", "note": None}


def test_a_rule_sees_the_attributes_of_the_event_alone() -> None:
    rules = (Rule("is_of_ada", "attributes['customer'] = 'Ada'"),)
    said = references(("device_id", "oven", {"customer": "Ada"}, EVER))
    found, rejected = silver(events([event()]), references=said, shape=SHAPE, rules=rules)
    assert (found, [row.broken_rules for row in rejected]) == ([], [["is_of_ada"]])
