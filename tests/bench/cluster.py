"""What tasks of two executors do of a run, and what comes to the driver: `make bench NAME=cluster`."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.bench.factory import write_conf, write_events
from tests.bench.script import all_layers, narrow_table, parser_for, script, write_report
from tests.cluster.event_log import Task, tasks
from tests.cluster.sample import LOCAL_CLUSTER, logged, spark_home

MB = 1_000_000


def main() -> int:
    """Measure, tell. Steps overlap, and `of tasks` adds up what both executors do at the same time."""
    options = parser_for(__doc__, "bench-cluster", events=300_000).parse_args()
    folder = options.work / f"{options.events}-cluster"
    for name in ("lake", "event-logs", "spark"):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    settings = logged(folder / "event-logs")
    conf = write_conf(folder, options.driver_memory, options.cores, master=LOCAL_CLUSTER, settings=settings)
    landed = sum(file.stat().st_size for file in write_events(folder, conf, options.events).iterdir())
    os.environ |= spark_home(folder / "spark")
    run = all_layers(conf, folder / "run.log")
    steps = _steps(folder, [*tasks(folder / "event-logs")])
    table = narrow_table("step", "rows", "seconds", "of tasks", "MB to driver")
    for name, step in steps.items():
        table.add_row(name, f"{step['rows']:,}", *(f"{step[key]:.1f}" for key in ("seconds", "of_tasks", "megabytes_sent")))
    Console().print(table, f"{landed / MB:.1f} MB had landed; {run.seconds:.1f} s in all", sep="\n")
    write_report(options, {**vars(run), "landed": landed, "steps": steps})
    return 0


def _steps(folder: Path, done: list[Task]) -> dict[str, dict[str, Any]]:
    """By flow or job; what no flow asked for is of Delta's log and of jobs."""
    told = [json.loads(line) for line in (folder / "run.log").read_text().splitlines() if line.startswith("{")]
    names = dict.fromkeys([*(line.get("flow") or line["job"] for line in told if "rows" in line), "others"])
    return {
        name: _step([line for line in told if name in line.values()], [of for of in done if (of.flow or "others") == name])
        for name in names
    }


def _step(told: list[dict[str, Any]], done: list[Task]) -> dict[str, Any]:
    of_run = {key: sum(line[key] for line in told) for key in ("rows", "seconds")}
    return of_run | {"of_tasks": sum(task.seconds for task in done), "megabytes_sent": sum(task.sent for task in done) / MB}


if __name__ == "__main__":
    script(main)
