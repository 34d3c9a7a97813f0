"""A plant for marts: every aggregation type, steps below and above an hour, gaps, late rows, devices that change; and dbt as a process."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pandas as pd
import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from orchestration.location import Location
from orchestration.serving.dbt.project import shipped
from orchestration.storage import registry
from tests.chaos.inotify import Watch
from tests.chaos.plants import SECONDS, TIDEMARK, Plant
from tests.lakes import event, land, run
from tests.rows import at

NAME = "a plant's"
START = at("2026-01-05T20:00:00")
METRICS = """
metrics:
  temperature: {aggregation: average, step_seconds: 600, unit: degC}
  humidity: {aggregation: median, step_seconds: 600, unit: "%"}
  vibration: {aggregation: max, step_seconds: 600, slide_seconds: 300, unit: mm/s}
  power: {aggregation: average, step_seconds: 3600, unit: W}
  tank: {aggregation: average, step_seconds: 7200, unit: l}
  door_open: {aggregation: latest, step_seconds: 600}
  energy: {aggregation: sum, step_seconds: 900, unit: Wh}
  lowest: {aggregation: min, step_seconds: 600}
  cycles: {aggregation: count, step_seconds: 1200}
  spread: {aggregation: stddev, step_seconds: 600, slide_seconds: 200}
  first: {aggregation: first, step_seconds: 420}
"""
NAMES = ["temperature", "humidity", "vibration", "power", "tank", "door_open", "energy", "lowest", "cycles", "spread", "first"]
GROUPS = f"""
groups:
  kitchen: {{metrics: [{", ".join(NAMES)}], stream: plant, lateness_seconds: 60}}
  building: {{metrics: [temperature, vibration, power], stream: plant, lateness_seconds: 60}}
  attic: {{metrics: [temperature], stream: plant, lateness_seconds: 60, late: keep_aside}}
"""
DEVICES = """
devices:
  oven-01: {groups: [kitchen, building], zone: hall-1}
  fridge-01: {groups: [kitchen, building], zone: hall-1}
  press-01: {groups: [building]}
  spare-01: {groups: [kitchen]}
"""
ALERTS = """
alerts:
  warm: {reading: temperature, when: value > 2.5, keep_firing_seconds: 400}
  gone: {count: {metric: power, every_seconds: 300}, when: readings < 1, escalate: [{after_seconds: 3600, severity: critical}]}
"""


@dataclass(frozen=True)
class Said:
    """What a command line ended with."""

    code: int
    out: str
    err: str


def made(folder: Path) -> Plant:
    """Nothing has landed. `attic` has no device, so its tables stay empty."""
    folder.mkdir(parents=True)
    plant = Plant(folder)
    for name, text in (("metrics", METRICS), ("groups", GROUPS), ("devices", DEVICES), ("alerts", ALERTS), ("rules", "rules: {}\n")):
        (folder / "conf" / f"{name}.yml").write_text(text)
    return plant


def dbt(plant: Plant, *arguments: str) -> Said:
    """`tidemark dbt` to its end."""
    call = [*TIDEMARK, str(plant.folder / "conf"), "dbt", *arguments]
    done = subprocess.run(call, capture_output=True, text=True, timeout=SECONDS, check=False)
    return Said(done.returncode, done.stdout, done.stderr)


def build(folder: Path, spark: SparkSession) -> None:
    """A plant whose marts were built once, below a name that must be quoted everywhere."""
    plant = made(folder / NAME)
    land_the_first_day(plant)
    run(plant.opened().conf, spark)
    before = files(shipped())
    said = dbt(plant, "build")
    assert said.code == 0, said.out + said.err
    assert files(shipped()) == before  # dbt writes below the lake, and nothing into the project


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


def killed(plant: Plant, pattern: str) -> str | None:
    """The file at whose sight the process group was killed; None if the build ended before."""
    end = time.monotonic() + SECONDS
    plant.lake.joinpath("marts").mkdir(exist_ok=True)
    with Watch(plant.lake) as watch, plant.running("dbt", "build") as process:
        begun = time.time()
        while process.poll() is None and time.monotonic() < end:
            for seen in watch.seen(seconds=0.2):
                name = str(seen.file.relative_to(plant.lake))
                if re.search(pattern, name) and seen.file.exists() and seen.file.stat().st_mtime >= begun - 1:
                    os.killpg(process.pid, signal.SIGKILL)
                    return name
    return None


def land_the_first_day(plant: Plant) -> None:
    """Twelve hours, over midnight. fridge-01 is silent from 23:00 to 2:30, press-01 from 5:00 on."""
    land(plant.folder, "first.jsonl", list(_measured(START, 144)))


def land_what_comes_late(plant: Plant) -> None:
    """Two hours more; what fridge-01 kept while silent, and what windows of oven-01 lacked; a duplicate, rubbish, a clock begun anew."""
    silent = [event("fridge-01", name, 7.25 + n, at("2026-01-06T00:10:00") + timedelta(minutes=7 * n)) for n in range(9) for name in NAMES]
    lacked = [event("oven-01", name, 31.5, at("2026-01-05T22:02:00")) for name in NAMES]
    again = [event("oven-01", "temperature", 20.0, START + timedelta(hours=12))] * 2
    strange = [event("oven-01", "temperature", 3.5, at("1970-01-01T00:00:30")), "{"]
    land(plant.folder, "second.jsonl", [*_measured(START + timedelta(hours=12), 24), *silent, *lacked, *again, *strange])


def change_devices(plant: Plant, now: datetime) -> None:
    """oven-01 moves twice before anybody builds a mart, a device comes, and one that only a file ever named."""
    for number, zone in enumerate(("hall-2", "hall-3")):
        file = plant.folder / f"devices-{number}.csv"
        file.write_text(f"device_id,zone,groups\noven-01,{zone},kitchen;building\nnew-01,attic,attic\n")
        registry.load(Location(plant.lake), file, now + timedelta(seconds=number))


def rows(lake: Path, name: str, version: int | None = None) -> pd.DataFrame:
    """Of a table by its SQL name."""
    return DeltaTable(lake.joinpath(*name.split(".")), version).to_pandas()


def content(lake: Path, name: str, version: int | None = None) -> list[str]:
    """Rows to the last bit, in an order of their own."""
    table = pa.table(DeltaTable(lake.joinpath(*name.split(".")), version).to_pyarrow_table())
    return sorted(map(repr, table.to_pylist()))


def _measured(start: datetime, steps: int) -> Iterator[str]:
    for n in range(steps):
        when = start + timedelta(minutes=5 * n, seconds=10)
        for number, device in enumerate(("oven-01", "fridge-01", "press-01")):
            is_silent = device == "fridge-01" and at("2026-01-05T23:00:00") <= when < at("2026-01-06T02:30:00")
            is_gone = device == "press-01" and when >= at("2026-01-06T05:00:00")
            for place, name in enumerate(NAMES):
                if not (is_silent or is_gone):
                    yield event(device, name, round(0.1 * (n * 7 % 31) + number + 0.37 * place, 3), when + timedelta(seconds=number))
