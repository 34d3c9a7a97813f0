"""What the benchmark runs on: a conf for 200 devices, and their events, made once and kept."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
import yaml

DEVICES = 200
LATENESS_SECONDS = 120
STEP_SECONDS = 60
METRICS: dict[str, dict[str, Any]] = {
    "temperature": {"unit": "degC", "aggregation": "average"},
    "humidity": {"unit": "%", "aggregation": "latest"},
    "vibration": {"unit": "mm/s", "aggregation": "max"},
    "power": {"unit": "W", "aggregation": "average"},
    "pressure": {"unit": "bar", "aggregation": "min"},
}
GROUPS = ("north", "middle", "south")
SIMULATION = ["--files", "8", "--seed", "7", "--duplicate", "0.02"]
"""Nothing late, broken or from the future: what is compared is speed, and the counts are known."""
CLEAN = ["--late", "0", "--malformed", "0", "--future", "0", "--offline", "0"]
OF_YARD = re.compile(rb"sim-[0-9]*[02468]\"")
TIDEMARK = [sys.executable, "-c", "from orchestration.cli.app import main; main()"]


def write_conf(
    folder: Path,
    driver_memory: str,
    cores: int,
    *,
    names: Sequence[str] = GROUPS,
    devices: int = DEVICES,
    stream: str | None = None,
    transport: Mapping[str, Any] | None = None,
    references: int = 0,
    **engine_more: Any,
) -> Path:
    """A conf folder whose landing folder and lake are its siblings. Each device is in one of the groups `names`, which share a `stream`,
    or have one each. `transport`: how events come, instead of by the landing folder. `references`: rows of a table that says two things of
    each device, and of others. `engine_more`: further settings of the engine.
    """
    conf = folder / "conf"
    shutil.rmtree(conf, ignore_errors=True)
    conf.mkdir(parents=True)
    text = {name: {"field": name} for name in ("device", "zone", "metric", "value", "unit")}
    # Files are renamed when they are whole.
    transport = transport or {"path": "./landing", "settle_seconds": 0}
    source = {**transport, "format": "json", **text, "time": {"field": "ts", "format": "iso"}}
    policy = {"lateness_seconds": LATENESS_SECONDS, "max_future_seconds": 300, "max_payload_bytes": 1_048_576}
    engine = {"driver_memory": driver_memory, "cores": cores, "shuffle_partitions": cores, **engine_more}
    group: dict[str, Any] = {"metrics": list(METRICS), "vector": {"entity": "device", "max_fill_seconds": 5 * STEP_SECONDS}}
    group |= {"stream": stream} if stream else {}
    customers = {"path": "./customers.csv", "device_id": "serial", "attributes": ["customer", "contract"]}
    more = {"references": {"customers": customers}} if references else {}
    rows = "".join(f"sim-{n:04d},customer {n % 300},{n}\n" for n in range(1, references + 1))
    (folder / "customers.csv").write_text(f"serial,customer,contract\n{rows}", encoding="utf-8")
    _dump(conf / "pipeline.yml", {"pipeline": "bench", "lake": "./lake", "policy": policy, "engine": engine, **more})
    _dump(conf / "sources.yml", {"sources": {"plant": source}})
    known = registry(devices, names).items()
    _dump(conf / "devices.yml", {"devices": {name: {"groups": [of], "zone": f"zone-{n % 4}"} for n, (name, of) in enumerate(known, 1)}})
    _dump(conf / "metrics.yml", {"metrics": {name: {**metric, "step_seconds": STEP_SECONDS} for name, metric in METRICS.items()}})
    _dump(conf / "groups.yml", {"groups": dict.fromkeys(names, group)})
    _dump(conf / "rules.yml", {"rules": {}})
    return conf


def registry(devices: int, names: Sequence[str] = GROUPS) -> dict[str, str]:
    return {f"sim-{n:04d}": names[n % len(names)] for n in range(1, devices + 1)}


def write_events(folder: Path, conf: Path, events: int, interval_seconds: int = 1) -> Path:
    """The landing folder of so many events, of each device and metric one in an interval; written once, renamed when whole."""
    landing = folder / "landing"
    if not landing.exists():
        making = folder / "making"
        for leftover in (making, making.with_name("making.truth"), folder / "landing.truth"):
            shutil.rmtree(leftover, ignore_errors=True)
        simulate = [*TIDEMARK, "--conf", str(conf), "simulate", "--to", str(making), "--events", str(events)]
        simulate += ["--interval", str(interval_seconds), *SIMULATION, *CLEAN]
        subprocess.run(simulate, check=True)
        os.rename(making.with_name("making.truth"), folder / "landing.truth")
        os.rename(making, landing)
    return landing


def into_two_lanes(conf: Path) -> None:
    """Give a second source, with a lateness of its own, the half of the devices that have an even number."""
    landing, yard = conf.parent / "landing", conf.parent / "yard"
    sources = yaml.safe_load((conf / "sources.yml").read_text(encoding="utf-8"))["sources"]
    own = {"path": "./yard", "lateness_seconds": 2 * LATENESS_SECONDS}
    _dump(conf / "sources.yml", {"sources": sources | {"yard": sources["plant"] | own}})
    if yard.exists():
        return
    making = conf.parent / "making"
    making.mkdir()
    for file in sorted(landing.iterdir()):
        halves: tuple[list[bytes], list[bytes]] = ([], [])
        for line in file.read_bytes().splitlines(keepends=True):
            halves[OF_YARD.search(line) is not None].append(line)
        (making / file.name).write_bytes(b"".join(halves[True]))
        file.write_bytes(b"".join(halves[False]))
    making.rename(yard)


def expected_rows(folder: Path) -> Mapping[str, int]:
    """Rows that each table must hold, by the truth."""
    truth = ds.dataset(folder / "landing.truth")
    return {
        "bronze.events": truth.count_rows(),
        "silver.readings": truth.count_rows(filter=pc.field("kind") == "good"),
        "silver.quarantine": 0,
    }


def _dump(file: Path, content: Mapping[str, Any]) -> None:
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
