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
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from orchestration.engine.jars import fetched, ivy
from orchestration.storage.ops_tables import LEDGER_FLOW
from tests.bench.factory import DEVICES, GROUPS, expected_rows, into_two_lanes, write_conf, write_events
from tests.bench.processes import FailedError, Run, timed
from tests.bench.script import REPOSITORY, all_layers, narrow_table, of, parser_for, progress, script, write_report

YARDSTICK, OURS, CHECKS = "single write", "all layers", ("quality checks", "verify")
Counts = Mapping[str, int | None]
BLUE, GREY = "#0072B2", "#9a9a9a"
BENCH = REPOSITORY / "tests" / "bench"
OTHERS = REPOSITORY / ".venv-others" / "bin" / "python"
BY_SPARK = {YARDSTICK: "single_write.py", "hand-written medallion": "hand_written_medallion.py"}
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
    folder = options.work / f"{options.events}{'-sparse' if options.sparse else ''}{f'-{options.lanes}-lanes' if options.lanes > 1 else ''}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)  # two benchmarks would share the lake and slow each other down
        return _measured(folder, options)


def _measured(folder: Path, options: argparse.Namespace) -> int:
    conf = write_conf(folder, options.driver_memory, options.cores, devices=options.devices, references=options.references)
    landing = write_events(folder, conf, options.events, options.interval)
    if options.lanes > 1:
        into_two_lanes(conf)
    _into_memory(landing)
    yardsticks = () if options.only_layers or options.lanes > 1 else (*BY_SPARK, *(BY_OTHERS if options.others else ()))
    runs: dict[str, list[Run]] = {name: [] for name in (*yardsticks, OURS, *CHECKS)}
    for number in range(options.rounds):
        progress.log(f"round {number + 1} of {options.rounds}")
        for name in (name for name in yardsticks if name in runs):
            try:
                runs[name].append(_yardstick(folder, options, name))
            except FailedError as error:  # as the hand-written medallion does at 20,000,000 events: its state does not fit in 2 GB
                progress.print(f"{name} is left out. {error}", style="red", markup=False)
                del runs[name]
        runs[OURS].append(_all_layers(folder, conf))
        runs["quality checks"].append(_quality(folder, conf))
        runs["verify"].append(timed([*of(conf), "verify"], REPOSITORY, folder / "verify.log"))
    rows, expected = _rows(folder / "lake"), expected_rows(folder)
    made = {name: folder / name.replace(" ", "-") for name in yardsticks if name in runs}
    readings = {name: _readings_of(lake) for name, lake in made.items()} | {"all layers": rows["silver.readings"]}
    windows = {name: _in_windows([lake / f"gold_{group}" for group in GROUPS]) for name, lake in made.items()}
    windows["all layers"] = _in_windows([folder / "lake" / "gold" / "aggregates"])
    report = summary(runs, readings, windows, options.events)
    report |= {"rows": rows, "settings": _settings(options), "ledger_seconds": _ledger_seconds(folder / "all-layers.log")}
    show(report, Console())
    write_report(options, report)
    picture(report, options.output.with_suffix(".png"))
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
    parser.add_argument("--lanes", type=int, default=1, choices=(1, 2), help="2: half of the devices send by a source of a lane of its own")
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


def summary(runs: Mapping[str, Sequence[Run]], readings: Counts, in_windows: Counts, events: int) -> dict[str, Any]:
    """By job. `readings`: rows of its silver table; `in_windows`: those of them that are in gold.

    Ratios are of runs of the same round: their median, least and most.
    """
    jobs: dict[str, Any] = {}
    for name, of_job in runs.items():
        seconds = [run.seconds for run in of_job]
        ratios = [run.seconds / single.seconds for run, single in zip(of_job, runs.get(YARDSTICK, []), strict=False)]
        jobs[name] = {
            "seconds": statistics.median(seconds),
            "times_single_write": [statistics.median(ratios), min(ratios), max(ratios)] if ratios else None,
            "events_per_second": events / statistics.median(seconds),
            "cpu_seconds": statistics.median(run.cpu_seconds for run in of_job),
            # The least: in the moment of a fork a process counts twice.
            "peak_bytes": min((run.peak_bytes for run in of_job if run.peak_bytes), default=None),
            "readings": readings.get(name),
            "in_windows": in_windows.get(name),
            "runs": [vars(run) for run in of_job],
        }
    return {"jobs": jobs, "shares": {name: jobs[name]["seconds"] / jobs[OURS]["seconds"] for name in CHECKS}}


def show(report: Mapping[str, Any], console: Console) -> None:
    """Two tables that fit 80 columns: how fast each job was, and what it made."""
    console.print(_table_of_speeds(report["jobs"]), "", _table_of_rows(report["jobs"]), "", sep="\n")
    shares = report["shares"] | {"ledger": report["ledger_seconds"] / report["jobs"][OURS]["runs"][-1]["seconds"]}
    console.print("of the time of all layers: " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()))
    console.print(", ".join(f"{name} {count:,}" for name, count in report["rows"].items()))


def _table_of_speeds(jobs: Mapping[str, Any]) -> Table:
    table = narrow_table("job", "seconds", "times the\nsingle write", "CPU\nseconds", "events/s", "peak\nmemory")
    for name, job in jobs.items():
        peak = f"{job['peak_bytes'] / 2**30:.2f} GiB" if job["peak_bytes"] else "unknown"
        numbers = (f"{job['cpu_seconds']:.1f}", f"{job['events_per_second']:,.0f}", peak)
        table.add_row(name, f"{job['seconds']:.1f}", _ratio(job), *numbers)
    return table


def _ratio(job: Mapping[str, Any]) -> str:
    """With the least and the most where rounds differ; empty where no single write was measured."""
    if job["times_single_write"] is None:
        return ""
    median, least, most = job["times_single_write"]
    return f"{median:.2f}" + (f" ({least:.2f}-{most:.2f})" if least < most else "")


def _table_of_rows(jobs: Mapping[str, Any]) -> Table:
    """Of the jobs that make a silver table."""
    table = narrow_table("job", "readings", "readings in\nclosed windows")
    for name, job in jobs.items():
        if job["readings"] is not None:
            table.add_row(name, f"{job['readings']:,}", "" if job["in_windows"] is None else f"{job['in_windows']:,}")
    return table


def picture(report: Mapping[str, Any], file: Path) -> None:
    """Seconds of each job as a bar, a dot for each run of it."""
    jobs = dict(reversed(report["jobs"].items()))
    figure = Figure(figsize=(8, 0.5 * len(jobs) + 1.1), layout="constrained")
    axes = figure.subplots()
    axes.barh(list(jobs), [job["seconds"] for job in jobs.values()], color=[BLUE if name in (OURS, *CHECKS) else GREY for name in jobs])
    for height, job in enumerate(jobs.values()):
        seconds = [run["seconds"] for run in job["runs"]]
        axes.plot(seconds, [height] * len(seconds), "o", color="white", markeredgecolor="#333333", markersize=4)
        axes.annotate(f"{job['seconds']:.1f}", (max(seconds), height), xytext=(6, 0), textcoords="offset points", va="center")
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("seconds of a fresh process, its start included")
    axes.set_title(f"{report['settings']['events']:,} events, {report['settings']['cores']} cores", loc="left")
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    script(main)
