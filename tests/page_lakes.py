"""A lake that has something for every view of the live page: what is late, duplicate, unreadable, future and hostile."""

from pathlib import Path

from hypothesis import strategies as st
from pyspark.sql import SparkSession

from orchestration.conf.load import load
from tests.collectors import write_conf
from tests.lakes import event, land, run
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
    *("/quarantine", "/quality", "/runs", "/sql", "/sql?query=from+silver.readings", "/sql?query=select+nothing"),
    "/readings?device=oven&metric=temperature&end=2026-01-01T12:10:00Z",
)
"""Addresses of all views, with what the lake has."""
PATHS = st.sampled_from(
    [
        "/api/completions",
        "/api/overview",
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
    st.sampled_from(["text", "place", "query", "snapshot", "group", "device", "metric", "end", "span", "from", "to", "find", "of"]),
    st.text(max_size=40) | st.sampled_from(["kitchen", "temperature", "9e99", "nan", "-1", "0001-01-01", "9999-12-31T23:59:59Z", "week"]),
    max_size=4,
)
"""Any of them, and of those that views ask for."""


def plant(folder: Path, spark: SparkSession) -> Path:
    """Its conf. The oven measures for four hours, the fridge for one, then the oven says something late. Quality has been checked."""
    written = write_conf(folder, plant="path: ./landing")
    for name, text in (("groups", GROUPS), ("devices", DEVICES), ("metrics", METRICS)):
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
