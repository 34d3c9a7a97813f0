"""How soon a query is answered: `make bench NAME=ask`, on the lake of `make demo`.

Whole processes of `tidemark sql`, start included: DuckDB and Spark.
"""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.bench.processes import timed
from tests.bench.script import REPOSITORY, of, progress, script, write_report

QUERIES = (
    "select metric, count(*) as n, max(value) as highest from silver.readings group by metric order by metric",
    "select entity, window_start, vector from gold.kitchen_vectors order by window_start desc, entity limit 5",
    "select device_id, max(value) as highest from gold.kitchen_aggregates where metric = 'power' group by device_id order by device_id",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conf", type=Path, default=REPOSITORY / "conf", help="of a lake that holds something")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--cold", type=int, default=5, help="rounds in which Spark is started as well")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "artifacts" / "bench-ask.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds = _measured(options, Path(folder))
    report = {name: _spread(values) for name, values in seconds.items()}
    write_report(options, report)
    Console().print_json(data=report)
    return 0


def _measured(options: argparse.Namespace, folder: Path) -> dict[str, list[float]]:
    command, log = of(options.conf), folder / "log"
    seconds: dict[str, list[float]] = {name: [] for name in ("spark", "duckdb", "check") if name != "spark" or options.cold}
    for round_ in range(options.cold):
        progress.log(f"cold {round_ + 1} of {options.cold}")
        seconds["spark"].append(timed([*command, "sql", "--engine", "spark", QUERIES[round_ % len(QUERIES)]], REPOSITORY, log).seconds)
    for round_ in range(options.rounds):
        seconds["duckdb"].append(timed([*command, "sql", QUERIES[round_ % len(QUERIES)]], REPOSITORY, log).seconds)
        seconds["check"].append(timed([*command, "check"], REPOSITORY, log).seconds)
    return seconds


def _spread(seconds: Sequence[float]) -> dict[str, Any]:
    parts = statistics.quantiles(seconds, n=20, method="inclusive") if len(seconds) > 1 else [0.0] * 19
    rounded = {"p50": parts[9], "p95": parts[18], "min": min(seconds), "max": max(seconds)}
    return {name: round(value, 3) for name, value in rounded.items()} | {"n": len(seconds)}


if __name__ == "__main__":
    script(main)
