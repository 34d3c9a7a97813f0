"""The speed of all layers, against one hop and a medallion written by hand in the same run, and what the quality checks cost: `make bench`.

Fresh processes, timed whole (start included), in turn. Afterwards the tables are counted: a fast wrong answer is none.
"""

import argparse
import fcntl
import os
import platform
import shutil
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from rich.console import Console
from rich.table import Table

from orchestration.engine.jars import fetched
from tests.bench.factory import expected_rows, write_conf, write_events
from tests.bench.processes import Run, timed
from tests.bench.script import REPOSITORY, all_layers, parser_for, script, told, write_report

YARDSTICKS = ("one hop", "by hand")
GOLD = ("north_aggregates", "north_vectors")
"""Counted for the record: how many windows are closed depends on the watermark."""


def main() -> int:
    """Measure, check, tell; 0 when every count is right."""
    options = _options()
    folder = options.work / str(options.events)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)  # two benchmarks would share the lake and slow each other down
        return _measured(folder, options)


def _measured(folder: Path, options: argparse.Namespace) -> int:
    conf = write_conf(folder, options.driver_memory, options.cores)
    landing = write_events(folder, conf, options.events)
    _into_memory(landing)
    runs: dict[str, list[Run]] = {name: [] for name in (*YARDSTICKS, "all layers", "quality checks")}
    for number in range(options.rounds):
        told.log(f"round {number + 1} of {options.rounds}")
        if not options.only_layers:
            for name in YARDSTICKS:
                runs[name].append(_yardstick(folder, options, name))
        runs["all layers"].append(_all_layers(folder, conf))
        runs["quality checks"].append(_quality(folder, conf))
    rows, expected = _rows(folder / "lake"), expected_rows(folder)
    report = _report(options, runs, rows)
    _show(report)
    write_report(options, report)
    wrong = {name: (rows.get(name), count) for name, count in expected.items() if rows.get(name) != count}
    for name, (found, count) in wrong.items():
        told.print(f"{name} holds {found} rows and should hold {count}", style="red")
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = parser_for(__doc__, "bench")
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only-layers", action="store_true", help="leave the yardsticks out")
    return parser.parse_args()


def _yardstick(folder: Path, options: argparse.Namespace, name: str) -> Run:
    """A plain Spark job, in a file of its own."""
    made = folder / name.replace(" ", "-")
    shutil.rmtree(made, ignore_errors=True)
    job, jars = REPOSITORY / "tests/bench" / f"{name.replace(' ', '_')}.py", ",".join(map(str, fetched()))
    command = [sys.executable, str(job), str(folder / "landing"), str(made), jars, options.driver_memory, str(options.cores)]
    return timed(command, folder, made.with_suffix(".log"))


def _all_layers(folder: Path, conf: Path) -> Run:
    shutil.rmtree(folder / "lake", ignore_errors=True)
    return all_layers(conf, folder / "all-layers.log")


def _quality(folder: Path, conf: Path) -> Run:
    """All default suites over all rows of all layers; Great Expectations wants a program with a file."""
    command = [str(Path(sys.executable).with_name("tidemark")), "--conf", str(conf), "quality", "--full"]
    return timed([*command, "--report", str(folder / "quality.html")], REPOSITORY, folder / "quality.log")


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


def _report(options: argparse.Namespace, runs: Mapping[str, list[Run]], rows: Mapping[str, int]) -> dict[str, Any]:
    """Medians over the rounds; every single run beside them."""
    jobs = {
        name: {
            "seconds": statistics.median(run.seconds for run in of_job),
            "events_per_second": options.events / statistics.median(run.seconds for run in of_job),
            "cpu_seconds": statistics.median(run.cpu_seconds for run in of_job),
            "peak_bytes": max((run.peak_bytes or 0) for run in of_job) or None,
            "runs": [vars(run) for run in of_job],
        }
        for name, of_job in runs.items()
        if of_job
    }
    ratio = jobs["all layers"]["seconds"] / jobs["one hop"]["seconds"] if "one hop" in jobs else None
    share = jobs["quality checks"]["seconds"] / jobs["all layers"]["seconds"]
    machine = {"system": platform.system(), "processors": os.cpu_count(), "python": platform.python_version()}
    settings = {"events": options.events, "rounds": options.rounds, "driver_memory": options.driver_memory, "cores": options.cores}
    return {"jobs": jobs, "ratio": ratio, "quality_share": share, "rows": dict(rows), "settings": settings, "machine": machine}


def _show(report: Mapping[str, Any]) -> None:
    table = Table("job", "seconds", "times one hop", "CPU seconds", "events/s", "peak memory")
    hop = report["jobs"].get("one hop")
    for name, job in report["jobs"].items():
        ratio = f"{job['seconds'] / hop['seconds']:.2f}" if hop else ""
        peak = f"{job['peak_bytes'] / 2**30:.2f} GiB" if job["peak_bytes"] else "unknown"
        table.add_row(name, f"{job['seconds']:.1f}", ratio, f"{job['cpu_seconds']:.1f}", f"{job['events_per_second']:,.0f}", peak)
    console = Console()
    console.print(table)
    console.print(f"quality checks take {report['quality_share']:.1%} of the time of all layers")
    console.print(", ".join(f"{name} {count:,}" for name, count in report["rows"].items()))


if __name__ == "__main__":
    script(main)
