"""Small whole lakes that several tests read, built once by one JVM: `python -m tests.built` builds what is missing of them.

They stay in artifacts/test-lakes under a key of all that they are made of, and go when it changes. A test changes a copy, and no lake here.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from orchestration.conf.load import load
from orchestration.conf.model import Conf, Device, Source
from orchestration.conf.transport_settings import LandingFolder
from silver.spec import Origin, PayloadFormat, Time
from tests import page_lakes
from tests.collectors import write_conf
from tests.damage import damaged
from tests.lakes import DEVICES, conf, copy_tree, event, land, minutes, run, with_batches_of
from tests.orchestration.serving.dbt import plant as marts
from tests.rows import at
from tests.session import session

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "artifacts" / "test-lakes"
SOURCE = ("bronze", "silver", "gold", "expectations", "orchestration", "conf", "tests")
START = at("2026-01-05T00:00:00")
ROOMS = PayloadFormat("csv", Origin(file_name=r"(\w+)\."), Time("when"), metrics={"temperature": "T", "power": "P"}, has_header=True)
SILVER = ("bronze.events", "silver.readings", "silver.ledger")
LATE = event("oven", "temperature", 99.0, START + timedelta(minutes=15, seconds=1))
BROKEN = '{"device": "oven", "metric": "temperature", "value": 7'


def account_conf(folder: Path) -> Conf:
    """Only silver, of a source of JSON lines and of one of wide CSV."""
    plain = conf(folder, groups={})
    return replace(plain, sources=plain.sources | {"rooms": Source("rooms", ROOMS, LandingFolder(folder / "rooms", settle_seconds=0.0))})


def _account(folder: Path, spark: SparkSession) -> None:
    """Readings, a duplicate, two rows in quarantine, a late one, and events of several measurements; in two bronze batches."""
    made = account_conf(folder)
    lines = [event("oven", "temperature", n, time) for n, time in enumerate(minutes(START, 31))]
    land(folder, "1.json", [*lines, lines[3], "{broken", event("oven", "temperature", 9, at("2099-01-01T00:00:00"))])
    land(folder, "fridge.csv", ["T,when,P", *(f"{n},2026-01-05 00:{n:02},{n}" for n in range(3))], "rooms")
    run(made, spark, SILVER)
    land(folder, "2.json", [event("oven", "temperature", 1000, START + timedelta(minutes=15, seconds=1))])  # the watermark is at 00:20
    run(made, spark, SILVER)


def verify_conf(folder: Path) -> Conf:
    """All devices stand in one hall; a file is a bronze batch."""
    return with_batches_of(conf(folder, devices={name: Device(name, groups, "hall") for name, groups in DEVICES.items()}), 1)


def _verify(folder: Path, spark: SparkSession) -> None:
    """Two bronze batches with duplicates within and across them, a hostile line, and all kinds of windows and vectors."""
    lines = [
        event(device, metric, 20 + n % 7 + 0.1, time)
        for n, time in enumerate(minutes(START, 240))
        for device, metric in (("oven", "temperature"), ("oven", "power"), ("fridge", "temperature"), ("press", "vibration"))
        if (n // 40) % 2 or metric != "power"
    ]
    half = len(lines) // 2
    land(folder, "1.json", [*lines[:half], *lines[5:8], "broken", b'{"device":"\xff"}'])
    land(folder, "2.json", [*lines[half - 3 :], event("nobody", "temperature", 1, START)])
    run(verify_conf(folder), spark)


def _tampered(folder: Path, spark: SparkSession) -> None:
    """By conf files; two bronze batches: the second one has a late row and a broken one."""
    written = write_conf(folder, plant="path: ./landing, settle_seconds: 0")
    (written / "groups.yml").write_text("groups:\n  kitchen: {metrics: [temperature], vector: {entity: device}}\n")
    land(folder, "1.json", [event("oven", "temperature", 20 + n, time) for n, time in enumerate(minutes(START, 31))])
    land(folder, "2.json", [LATE, BROKEN, event("oven", "temperature", 60, START + timedelta(minutes=40))])
    run(with_batches_of(load(written), 1), spark)


def _cases(folder: Path, spark: SparkSession) -> None:
    """All inputs of tests/cases after one run."""
    shutil.copytree(ROOT / "tests" / "cases", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("test_*.py", "__pycache__"))
    run(load(folder / "conf"), spark)


LAKES: Mapping[str, Callable[[Path, SparkSession], object]] = {
    "account": _account,
    "verify": _verify,
    "tampered": _tampered,
    "cases": _cases,
    "page": page_lakes.small,
    "views": page_lakes.plant,
    "damage": damaged.build,
    "marts": marts.build,
}


def built(name: str) -> Path:
    """Folder of a lake, which nobody writes to; it is built, in a process of its own, if it is not there."""
    folder = KEPT / _key() / name
    if not folder.exists():
        made = subprocess.run([sys.executable, "-m", "tests.built", name], cwd=ROOT, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stdout + made.stderr
    return folder


def copy_of(name: str, folder: Path) -> Path:
    """The folder, to which the lake is copied with its conf and its landing folder."""
    copy_tree(built(name), folder)
    return folder


@cache
def _key() -> str:
    """A digest of the product, its packages and jars, and of what the lakes are made by."""
    files = [ROOT / "requirements.lock", *(file for top in SOURCE for file in (ROOT / top).rglob("*") if file.is_file())]
    digest = hashlib.sha256()
    for file in sorted(files):
        if "__pycache__" not in file.parts and file.suffix != ".md" and not file.name.startswith("test_"):
            digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def main(names: Sequence[str]) -> None:
    """Build lakes that are not there, one process at a time, and remove those of other keys."""
    kept = KEPT / _key()
    kept.mkdir(parents=True, exist_ok=True)
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for other in KEPT.iterdir():
            if other.is_dir() and other != kept:
                shutil.rmtree(other)
        missing = [name for name in names or LAKES if not (kept / name).exists()]
        if missing:
            _build(missing, kept)


def _build(names: Sequence[str], kept: Path) -> None:
    """Each in a folder of its own, which gets its name when the lake is whole."""
    spark = session()
    spark.conf.set("spark.sql.streaming.stateStore.maintenanceInterval", "300ms")  # before any query: tests of damage want its snapshots
    for name in names:
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            (made := Path(folder) / name).mkdir()
            LAKES[name](made, spark)
            made.rename(kept / name)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
