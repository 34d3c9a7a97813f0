"""Jobs that were measured in turn, side by side: medians with what was least and most, as a table and as a picture."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from tests.bench.processes import Run

YARDSTICK, OURS, CHECKS = "one hop", "all layers", ("quality checks", "verify")
Counts = Mapping[str, int | None]
BLUE, GREY = "#0072B2", "#9a9a9a"


def report(runs: Mapping[str, Sequence[Run]], readings: Counts, in_windows: Counts, events: int) -> dict[str, Any]:
    """By job. `readings`: rows of its silver table; `in_windows`: those of them that are in gold.

    Ratios are of runs of the same round: their median, least and most.
    """
    jobs: dict[str, Any] = {}
    for name, of_job in runs.items():
        seconds = [run.seconds for run in of_job]
        ratios = [run.seconds / hop.seconds for run, hop in zip(of_job, runs.get(YARDSTICK, []), strict=False)]
        jobs[name] = {
            "seconds": statistics.median(seconds),
            "times_one_hop": [statistics.median(ratios), min(ratios), max(ratios)] if ratios else None,
            "events_per_second": events / statistics.median(seconds),
            "cpu_seconds": statistics.median(run.cpu_seconds for run in of_job),
            # The least: in the moment of a fork a process counts twice.
            "peak_bytes": min((run.peak_bytes for run in of_job if run.peak_bytes), default=None),
            "readings": readings.get(name),
            "in_windows": in_windows.get(name),
            "runs": [vars(run) for run in of_job],
        }
    return {"jobs": jobs, "shares": {name: jobs[name]["seconds"] / jobs[OURS]["seconds"] for name in CHECKS}}


def show(told: Mapping[str, Any]) -> None:
    """As a table."""
    table = Table("job", "seconds", "times one hop", "CPU seconds", "events/s", "readings", "in windows", "peak memory")
    for name, job in told["jobs"].items():
        ratio = "{:.2f} ({:.2f} to {:.2f})".format(*job["times_one_hop"]) if job["times_one_hop"] else ""
        peak = f"{job['peak_bytes'] / 2**30:.2f} GiB" if job["peak_bytes"] else "unknown"
        counts = ("" if job[count] is None else f"{job[count]:,}" for count in ("readings", "in_windows"))
        numbers = (f"{job['seconds']:.1f}", ratio, f"{job['cpu_seconds']:.1f}", f"{job['events_per_second']:,.0f}")
        table.add_row(name, *numbers, *counts, peak)
    console = Console()
    console.print(table)
    shares = told["shares"] | {"ledger": told["ledger_seconds"] / told["jobs"][OURS]["runs"][-1]["seconds"]}
    console.print("of the time of all layers: " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()))
    console.print(", ".join(f"{name} {count:,}" for name, count in told["rows"].items()))


def picture(told: Mapping[str, Any], file: Path) -> None:
    """Seconds of each job as a bar, a dot for each run of it."""
    jobs = dict(reversed(told["jobs"].items()))
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
    axes.set_title(f"{told['settings']['events']:,} events, {told['settings']['cores']} cores", loc="left")
    figure.savefig(file, dpi=120)
