"""The speed of all layers, against a single write and a hand-written medallion, and what ledger and checks cost: `make bench`.

Fresh processes, timed whole (start included), in turn. Afterwards the tables are counted: a fast wrong answer is none. Flink and polars are
measured too where they are there: `make bench ARGS=--others`.
"""

import argparse
import fcntl
import json
import math
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from rich.console import Console

from orchestration.engine.jars import fetched, ivy
from orchestration.storage.ops_tables import LEDGER_FLOW
from tests.bench import comparison
from tests.bench.factory import DEVICES, GROUPS, expected_rows, write_conf, write_events
from tests.bench.processes import FailedError, Run, timed
from tests.bench.script import REPOSITORY, all_layers, of, parser_for, progress, script, write_report

BENCH = REPOSITORY / "tests" / "bench"
OTHERS = REPOSITORY / ".venv-others" / "bin" / "python"
BY_SPARK = {comparison.YARDSTICK: "single_write.py", "hand-written medallion": "hand_written_medallion.py"}
BY_OTHERS = {"flink": "others/flink_medallion.py", "polars": "others/polars_medallion.py"}
"""Scripts by the name of their job."""
SPARSE_DEVICES, SPARSE_SECONDS = 2_000, 60
"""About one reading in a window."""
GOLD = ("aggregates", "vectors")
"""Counted for the record: how many windows are closed depends on the watermark."""


def main() -> int:
    """Measure, check, tell; 0 when every count is right."""
    options = _options()
    if options.sparse:
        options.devices, options.interval = SPARSE_DEVICES, SPARSE_SECONDS
    folder = options.work / (f"{options.events}-sparse" if options.sparse else str(options.events))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)  # two benchmarks would share the lake and slow each other down
        return _measured(folder, options)


def _measured(folder: Path, options: argparse.Namespace) -> int:
    conf = write_conf(folder, options.driver_memory, options.cores, devices=options.devices, references=options.references)
    landing = write_events(folder, conf, options.events, options.interval)
    _into_memory(landing)
    yardsticks = () if options.only_layers else (*BY_SPARK, *(BY_OTHERS if options.others else ()))
    runs: dict[str, list[Run]] = {name: [] for name in (*yardsticks, comparison.OURS, *comparison.CHECKS)}
    for number in range(options.rounds):
        progress.log(f"round {number + 1} of {options.rounds}")
        for name in (name for name in yardsticks if name in runs):
            try:
                runs[name].append(_yardstick(folder, options, name))
            except FailedError as error:  # as the hand-written medallion does at 20,000,000 events: its state does not fit in 2 GB
                progress.print(f"{name} is left out. {error}", style="red", markup=False)
                del runs[name]
        runs[comparison.OURS].append(_all_layers(folder, conf))
        runs["quality checks"].append(_quality(folder, conf))
        runs["verify"].append(timed([*of(conf), "verify"], REPOSITORY, folder / "verify.log"))
    rows, expected = _rows(folder / "lake"), expected_rows(folder)
    made = {name: folder / name.replace(" ", "-") for name in yardsticks if name in runs}
    readings = {name: _readings_of(lake) for name, lake in made.items()} | {"all layers": rows["silver.readings"]}
    windows = {name: _in_windows([lake / f"gold_{group}" for group in GROUPS]) for name, lake in made.items()}
    windows["all layers"] = _in_windows([folder / "lake" / "gold" / "aggregates"])
    report = comparison.summary(runs, readings, windows, options.events)
    report |= {"rows": rows, "settings": _settings(options), "ledger_seconds": _ledger_seconds(folder / "all-layers.log")}
    comparison.show(report, Console())
    write_report(options, report)
    comparison.picture(report, options.output.with_suffix(".png"))
    wrong = {name: (rows.get(name), count) for name, count in expected.items() if rows.get(name) != count}
    for name, (rows_there, count) in wrong.items():
        progress.print(f"{name} holds {rows_there} rows and should hold {count}", style="red")
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = parser_for(__doc__, "bench", events=2_000_000, rounds=1)
    parser.add_argument("--only-layers", action="store_true", help="leave the yardsticks out")
    parser.add_argument("--others", type=Path, nargs="?", const=OTHERS, help="also run the jobs of tests/bench/others, by this Python")
    parser.add_argument("--sparse", action="store_true", help=f"{SPARSE_DEVICES} devices, a reading of each metric in {SPARSE_SECONDS} s")
    parser.add_argument("--references", type=int, default=0, metavar="ROWS", help="of a reference that says two things of each device")
    parser.set_defaults(devices=DEVICES, interval=1)
    return parser.parse_args()


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    names = ("events", "rounds", "driver_memory", "cores", "devices", "interval")
    machine = {"system": platform.system(), "processors": os.cpu_count(), "python": platform.python_version()}
    return {name: getattr(options, name) for name in names} | machine


def _yardstick(folder: Path, options: argparse.Namespace, name: str) -> Run:
    """A job in a file of its own, which knows nothing of Tidemark."""
    made = folder / name.replace(" ", "-")
    shutil.rmtree(made, ignore_errors=True)
    if name in BY_SPARK:
        command, jars = [sys.executable, str(BENCH / BY_SPARK[name])], fetched()
    else:
        command = [str(options.others.absolute()), str(BENCH / BY_OTHERS[name])]
        jars = [*fetched(BENCH / "others" / "jars.lock"), *ivy().parent.glob("hadoop-client-*.jar")]
    places = {"landing": str(folder / "landing"), "lake": str(made), "jars": [*map(str, jars)]}
    settings = {"memory": options.driver_memory, "cores": options.cores, "devices": options.devices}
    return timed([*command, json.dumps(places | settings)], folder, made.with_suffix(".log"))


def _all_layers(folder: Path, conf: Path) -> Run:
    shutil.rmtree(folder / "lake", ignore_errors=True)
    return all_layers(conf, folder / "all-layers.log")


def _quality(folder: Path, conf: Path) -> Run:
    """All default suites over all rows of all layers; Great Expectations wants a program with a file."""
    command = [str(Path(sys.executable).with_name("tidemark")), "--conf", str(conf), "quality", "--full"]
    return timed([*command, "--report", str(folder / "quality.html")], REPOSITORY, folder / "quality.log")


def _ledger_seconds(log: Path) -> float:
    """Of the last run, by its progress; some of them pass beside gold."""
    told_by_run = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    return math.fsum(batch["seconds"] for batch in told_by_run if batch.get("job") == LEDGER_FLOW)


def _into_memory(landing: Path) -> None:
    """Read the files once, so that the first process does not pay for the disk."""
    for file in landing.iterdir():
        with file.open("rb") as stream:
            while stream.read(1 << 24):
                pass


def _rows(lake: Path) -> dict[str, int]:
    """Rows of each table, from its log."""
    names = ["bronze/events", "silver/readings", "silver/quarantine", *(f"gold/{name}" for name in GOLD)]
    return {
        name.replace("/", "."): sum(pa.table(DeltaTable(lake / name).get_add_actions()).column("num_records").to_pylist()) for name in names
    }


def _readings_of(made: Path) -> int | None:
    """Rows of a yardstick's silver table; a table that was only appended to is what its files hold. None for the single write."""
    return ds.dataset(made / "silver").count_rows() if (made / "silver").exists() else None


def _in_windows(tables: Sequence[Path]) -> int | None:
    """Readings that windows of gold were made of. What came late for a window is not among them, nor, in a stream, what is in open ones."""
    found = [ds.dataset(table) for table in tables if table.exists()]
    return sum(pc.sum(each.to_table(columns=["count"])["count"]).as_py() for each in found if each.files) if found else None


if __name__ == "__main__":
    script(main)
