"""How soon a query is answered: `make bench NAME=ask`, on the lake of `make demo`.

Whole processes of `tidemark sql`, start included: DuckDB, Spark, the server; and what a question to the server takes over HTTP.
Rounds are paired: each round asks every engine once.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from orchestration.conf.load import load
from orchestration.location import Location
from orchestration.serving.sql.answer import Question
from orchestration.serving.sql.client import ServerEngine, address_of
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
    lake = load(options.conf).lake
    if address_of(lake) is not None:
        parser.error("a sql-server runs on this lake: stop it first")
    with tempfile.TemporaryDirectory() as folder:
        seconds = _measured(options, lake.local, Path(folder))
    report = {name: _spread(values) for name, values in seconds.items()}
    write_report(options, report)
    Console().print_json(data=report)
    return 0


def _measured(options: argparse.Namespace, lake: Path, folder: Path) -> dict[str, list[float]]:
    command, log = of(options.conf), folder / "log"
    seconds: dict[str, list[float]] = {
        name: [] for name in ("spark", "duckdb", "server", "http", "check") if name != "spark" or options.cold
    }
    for round_ in range(options.cold):
        progress.log(f"cold {round_ + 1} of {options.cold}")
        seconds["spark"].append(timed([*command, "sql", "--engine", "spark", QUERIES[round_ % len(QUERIES)]], REPOSITORY, log).seconds)
    server = subprocess.Popen([*command, "sql-server", "--port", "0"], cwd=REPOSITORY)
    try:
        while (address := address_of(Location(lake))) is None:
            time.sleep(0.2)
        engine = ServerEngine(address)
        for query in QUERIES * 2:
            engine.ask(Question(query))
        for round_ in range(options.rounds):
            query = QUERIES[round_ % len(QUERIES)]
            for name in ("server", "duckdb"):
                seconds[name].append(timed([*command, "sql", "--engine", name, query], REPOSITORY, log).seconds)
            seconds["http"].append(_asked(engine, query))
            seconds["check"].append(timed([*command, "check"], REPOSITORY, log).seconds)
    finally:
        server.terminate()
        server.wait()
    return seconds


def _asked(engine: ServerEngine, query: str) -> float:
    begin = time.perf_counter()
    engine.ask(Question(query))
    return time.perf_counter() - begin


def _spread(seconds: Sequence[float]) -> dict[str, Any]:
    parts = statistics.quantiles(seconds, n=20, method="inclusive") if len(seconds) > 1 else [0.0] * 19
    rounded = {"p50": parts[9], "p95": parts[18], "min": min(seconds), "max": max(seconds)}
    return {name: round(value, 3) for name, value in rounded.items()} | {"n": len(seconds)}


if __name__ == "__main__":
    script(main)
