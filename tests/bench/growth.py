"""Does a batch take longer as history grows? `make bench NAME=growth`.

A lake is filled step by step, with a counter and a time-weighted average among its metrics; after each step a small batch comes several
times, each in a fresh `tidemark run --once`. How long each flow and job took of it is told beside the whole process, whose start is most
of the time.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from tests.bench.factory import CLEAN, DEVICES, METRICS, write_conf
from tests.bench.script import all_layers, narrow_table, of, parser_for, progress, script, write_report

EVENTS_A_SECOND = DEVICES * len(METRICS)
EVENTS_A_FILE = 250_000
START = datetime(2026, 1, 5, tzinfo=UTC)


def main() -> int:
    options = _options()
    folder = options.work / "growth"
    shutil.rmtree(folder, ignore_errors=True)
    conf = write_conf(folder, options.driver_memory, options.cores)
    _with_chains(conf / "metrics.yml")
    rows = [row for history in options.history for row in _at(folder, conf, history, options)]
    show(rows)
    write_report(options, {"batch_events": options.batch, "rows": rows})
    return 0


def _options() -> argparse.Namespace:
    parser = parser_for(__doc__, "bench-growth")
    parser.add_argument("--history", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000, 30_000_000], help="events, rising")
    parser.add_argument("--batch", type=int, default=20_000, help="events of a measured batch")
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


def _with_chains(metrics: Path) -> None:
    """Make one metric a counter and one a value that holds, with windows of a second: a batch looks for the newest ones of many."""
    declared = yaml.safe_load(metrics.read_text(encoding="utf-8"))
    declared["metrics"]["power"] |= {"aggregation": "counter_increase", "step_seconds": 1}
    declared["metrics"]["humidity"] |= {"aggregation": "time_weighted_average", "step_seconds": 1, "max_hold_seconds": 60}
    metrics.write_text(yaml.safe_dump(declared), encoding="utf-8")


def _at(folder: Path, conf: Path, history: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Grain: one measured batch, on top of so many events."""
    filled = _landed(folder, conf, history)
    loaded = all_layers(conf, folder / "run.log")
    progress.log(f"{history:,} events; the last {filled:,} came in {loaded.seconds:.1f} s ({filled / loaded.seconds:,.0f} a second)")
    rows = []
    for repeat in range(options.repeats):
        _landed(folder, conf, history + (repeat + 1) * options.batch)
        run = all_layers(conf, folder / "run.log")
        rows.append({"history": history, "seconds": run.seconds, "cpu_seconds": run.cpu_seconds} | by_flow(folder / "run.log"))
    return rows


def _landed(folder: Path, conf: Path, total: int) -> int:
    """Land what is missing of so many events, in the order of time; tells how many."""
    known = folder / "landed"
    before = int(known.read_text(encoding="utf-8")) if known.exists() else 0
    start, making = START + timedelta(seconds=before // EVENTS_A_SECOND), folder / "making"
    simulate = [*of(conf), "simulate", "--to", str(making), "--events", str(total - before), "--interval", "1"]
    files = max(1, (total - before) // EVENTS_A_FILE)
    more = ["--start", start.isoformat(), "--files", str(files), "--seed", "7", "--duplicate", "0", *CLEAN]
    subprocess.run([*simulate, *more], check=True, capture_output=True)
    (folder / "landing").mkdir(exist_ok=True)
    for file in making.iterdir():
        file.rename(folder / "landing" / f"{before:012d}-{file.name}")
    shutil.rmtree(making)
    shutil.rmtree(making.with_name("making.truth"))
    known.write_text(str(total), encoding="utf-8")
    return total - before


def by_flow(log: Path) -> dict[str, float]:
    """Seconds by what the run told; gold's streams work side by side, so of those the longest."""
    by_name: Counter[str] = Counter()
    for line in log.read_text(encoding="utf-8").splitlines():
        row = json.loads(line) if line.startswith("{") else {}
        if "seconds" in row:
            by_name[row.get("flow") or row["job"]] += row["seconds"]
    gold = [seconds for name, seconds in by_name.items() if name.startswith("gold.") and name != "gold.amendments"]
    others = ("bronze.events", "silver.readings", "silver.ledger", "gold.amendments")
    return {name: by_name[name] for name in others} | {"gold": max(gold, default=0.0)}


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    names = [name for name in rows[0] if name != "history"]
    table = narrow_table("events before", *(re.sub("[._]", "\n", name) for name in names))
    for history in dict.fromkeys(row["history"] for row in rows):
        medians = (statistics.median(row[name] for row in rows if row["history"] == history) for name in names)
        table.add_row(f"{history:,}", *(f"{median:.2f}" for median in medians))
    Console().print(table)


if __name__ == "__main__":
    script(main)
