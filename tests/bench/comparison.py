"""Jobs that were measured in turn, side by side: medians with the least and the most, as tables and as a picture."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from tests.bench.processes import Run
from tests.bench.script import narrow_table

YARDSTICK, OURS, CHECKS = "single write", "all layers", ("quality checks", "verify")
Counts = Mapping[str, int | None]
BLUE, GREY = "#0072B2", "#9a9a9a"


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
    console.print(_speeds(report["jobs"]), "", _rows(report["jobs"]), "", sep="\n")
    shares = report["shares"] | {"ledger": report["ledger_seconds"] / report["jobs"][OURS]["runs"][-1]["seconds"]}
    console.print("of the time of all layers: " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()))
    console.print(", ".join(f"{name} {count:,}" for name, count in report["rows"].items()))


def _speeds(jobs: Mapping[str, Any]) -> Table:
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


def _rows(jobs: Mapping[str, Any]) -> Table:
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
    for place, job in enumerate(jobs.values()):
        seconds = [run["seconds"] for run in job["runs"]]
        axes.plot(seconds, [place] * len(seconds), "o", color="white", markeredgecolor="#333333", markersize=4)
        axes.annotate(f"{job['seconds']:.1f}", (max(seconds), place), xytext=(6, 0), textcoords="offset points", va="center")
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("seconds of a fresh process, its start included")
    axes.set_title(f"{report['settings']['events']:,} events, {report['settings']['cores']} cores", loc="left")
    figure.savefig(file, dpi=120)
