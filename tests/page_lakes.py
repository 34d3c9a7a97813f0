"""Lakes for the live page: one with something for every view, also late, unreadable and hostile, and one of thousands of devices."""

from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import strategies as st
from pyspark.sql import SparkSession

from orchestration.conf.load import load
from orchestration.storage.delta import is_table
from orchestration.storage.registry import sync
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from orchestration.storage.tables import LakeStore
from tests.collectors import write_conf
from tests.lakes import event, land, run, write
from tests.rows import at
from tests.services import tidemark

HOSTILE = '<img src=x onerror="document.title=1">'
LONG, LONGER = "m" * 200, "x" * 500
"""The longest name that conf takes, and one that an event may have all the same."""
GROUPS = f"""
groups:
  kitchen: {{label: "Kitchen <b>", metrics: [temperature, {LONG}], vector: {{entity: device, max_fill_seconds: 3600}}}}
  attic: {{metrics: [temperature]}}
"""
DEVICES = f"devices:\n  oven: {{groups: [kitchen]}}\n  fridge: {{groups: [kitchen], label: Fridge}}\n  {HOSTILE!r}: {{groups: [kitchen]}}\n"
METRICS = f"""
metrics:
  temperature: {{unit: degC, aggregation: average, step_seconds: 600}}
  {LONG}: {{aggregation: sum, step_seconds: 600}}
"""
ALERTS = "alerts:\n  hot: {reading: temperature, when: value > 300, no_data: {after_seconds: 3600}}\n"
SUITE = """
table: silver.readings
sample: [device_id]
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: value, max_value: 310}
    severity: warning
    description: No oven is hotter than 310.
"""

VIEWS = (
    *("/", "/groups", "/groups?group=kitchen&span=day", "/groups?group=attic", "/devices", "/devices?device=oven", "/batches"),
    *("/quarantine", "/quality", "/runs", "/alerts", "/sql", "/sql?query=from+silver.readings", "/sql?query=select+nothing"),
    "/readings?device=oven&metric=temperature&end=2026-01-01T12:10:00Z",
)
"""Addresses of all views, with what the lake has."""
PATHS = st.sampled_from(
    [
        "/api/completions",
        "/api/overview",
        "/api/tables",
        "/sql/answer.csv",
        "/sql/answer.parquet",
        "/sql",
        "/quality",
        "/runs",
        "/groups",
        "/readings",
        "/devices",
    ]
)
PARAMETERS = st.dictionaries(
    st.sampled_from(["text", "place", "name", "query", "snapshot", "group", "device", "metric", "end", "span", "from", "to", "find", "of"]),
    st.text(max_size=40) | st.sampled_from(["kitchen", "temperature", "9e99", "nan", "-1", "0001-01-01", "9999-12-31T23:59:59Z", "week"]),
    max_size=4,
)
"""Any of them, and of those that views ask for."""


def small(folder: Path, spark: SparkSession) -> Path:
    """Its conf. One run has brought readings, a duplicate, an unreadable, a hostile and a future one."""
    written = write_conf(folder, plant="path: ./landing")
    good = [event("oven", "temperature", 20.0, at(f"12:{minute:02d}:00")) for minute in range(0, 60, 5)]
    hostile = event(HOSTILE, "temperature", 20.0, at("12:00:00"))
    land(folder, "1.jsonl", [*good, good[0], "rubbish", hostile, event("oven", "temperature", 20.0, at("2999-01-01"))])
    run(load(written), spark)
    return written


def plant(folder: Path, spark: SparkSession) -> Path:
    """Its conf. The oven measures for four hours, the fridge for one, then the oven says something late. Quality has been checked."""
    written = write_conf(folder, plant="path: ./landing")
    for name, text in (("groups", GROUPS), ("devices", DEVICES), ("metrics", METRICS), ("alerts", ALERTS)):
        (written / f"{name}.yml").write_text(text)
    (written / "expectations").mkdir()
    (written / "expectations/ovens.yml").write_text(SUITE)
    with (written / "pipeline.yml").open("a") as file:
        file.write("quality: {gates: {silver.readings: hold}}\n")
    minutes = [at(f"{12 + minute // 60}:{minute % 60:02d}:00") for minute in range(0, 240, 2)]
    oven = [event("oven", "temperature", 200.0 + place, instant) for place, instant in enumerate(minutes)]
    fridge = [event("fridge", "temperature", 4.0, instant) for instant in minutes[:30]]
    long = [event("oven", LONG, 1.0, instant) for instant in minutes[::25]]
    bad = ["rubbish", event(HOSTILE, "temperature", 20.0, at("12:00:00")), event("oven", "temperature", 1.0, at("2999-01-01")), oven[0]]
    bad.append(event("oven", LONGER, 1.0, at("12:00:00")))
    land(folder, "1.jsonl", [*oven, *fridge, *long, *bad])
    run(load(written), spark)
    land(folder, "2.jsonl", [event("oven", "temperature", 1000.0, at("12:05:01"))])
    run(load(written), spark)
    checked = tidemark(written, "quality")
    assert "report: " in checked.stderr
    return written


def many(folder: Path, count: int) -> Path:
    """The conf of a lake with so many groups, a device in each, written without Spark; the first group has all devices.

    Each device has two readings and a window, and a row of what went wrong of each kind.
    """
    names = [f"group_{number:05d}" for number in range(count)]
    written = write_conf(folder, plant="path: ./landing")
    groups = "".join(f"  {name}: *of\n" for name in names[1:])
    (written / "groups.yml").write_text(f"groups:\n  {names[0]}: &of {{metrics: [temperature], stream: plant}}\n{groups}")
    members = "".join(f"  dev-{number:05d}: {{groups: [{name}, {names[0]}]}}\n" for number, name in enumerate(names[1:], 1))
    (written / "devices.yml").write_text(f"devices:\n  dev-00000: {{groups: [{names[0]}]}}\n{members}")
    (written / "metrics.yml").write_text("metrics:\n  temperature: {aggregation: average, step_seconds: 600}\n")
    conf = load(written)
    sync(conf.lake, conf.devices, at("12:00:00"))
    store, devices = LakeStore(conf), [*conf.devices.values()]
    reading = {"metric": "temperature", "value": 20.0, "source": "plant", "ingested_at": at("13:00:00"), "bronze_batch": 0, "part": 0}
    window = {"metric": "temperature", "window_start": at("12:00:00"), "window_end": at("12:10:00"), "value": 20.0, "count": 2}
    window |= {"revision": 0, "gold_batch": 0}
    rows = [{**reading, "device_id": device.device_id, "groups": device.groups, "bronze_row": n} for n, device in enumerate(devices)]
    write(store, "bronze.events", *({**row, "payload": b"{}", "position": "1.jsonl"} for row in rows))
    for second in (0, 600):
        write(store, "silver.readings", *({**row, "event_time": at("12:05:00") + timedelta(seconds=second)} for row in rows))
    for name in ("silver.late", "silver.duplicates", "silver.quarantine"):
        write(store, name, *({**row, "event_time": at("12:01:00"), "broken_rules": ["value_is_finite"], "payload": b"{}"} for row in rows))
    of_groups = ({"device_id": device.device_id, "device_group": group} for device in devices for group in device.groups)
    write(store, "gold.aggregates", *(window | of_group for of_group in of_groups))
    versions = {name: 0 for name in store.tables if name.startswith(("bronze", "silver", "gold")) and is_table(store.table_path(name))}
    SNAPSHOTS.append(conf.lake, [Snapshot(0, at("13:00:00"), 1, 0, versions | {"silver.readings": 1}, {"plant": at("12:10:00")})])
    return written


def living(folder: Path, now: datetime) -> Path:
    """The conf of a lake without Spark: the oven has a closed window, a state, and a reading of now in one that ends in the future."""
    written = write_conf(folder, plant="path: ./landing")
    (written / "groups.yml").write_text("groups:\n  kitchen: {metrics: [temperature], stream: plant}\n")
    (written / "devices.yml").write_text("devices:\n  oven: {groups: [kitchen]}\n")
    (written / "metrics.yml").write_text("metrics:\n  temperature: {aggregation: average, step_seconds: 3600}\n")
    states = "{metric: temperature, initial: cold, transitions: [{from: cold, to: hot, when: value > 20}]}"
    (written / "flows.yml").write_text(f"flows:\n  heat: {{states: {states}}}\n")
    conf = load(written)
    sync(conf.lake, conf.devices, now)
    store, hour = LakeStore(conf), now.replace(minute=0, second=0, microsecond=0)
    reading = {
        "metric": "temperature",
        "device_id": "oven",
        "groups": ("kitchen",),
        "source": "plant",
        "ingested_at": now,
        "bronze_batch": 0,
    }
    write(store, "silver.readings", reading | {"value": 21.0, "event_time": now})
    write(store, "gold.states", {"flow": "heat", "device_id": "oven", "changed_at": now, "state": "hot", "previous": "cold"})
    window = {"metric": "temperature", "device_id": "oven", "device_group": "kitchen", "value": 20.0, "count": 2}
    window |= {"revision": 0, "gold_batch": 0}
    ends = [hour - timedelta(hours=before) for before in (3, 2)]
    write(
        store, "gold.aggregates", *(window | {"window_start": end - timedelta(hours=1), "window_end": end, "gold_batch": 0} for end in ends)
    )
    SNAPSHOTS.append(
        conf.lake, [Snapshot(0, now, 1, 0, {"silver.readings": 0, "gold.aggregates": 0, "gold.states": 0}, {"plant": ends[-1]})]
    )
    return written
