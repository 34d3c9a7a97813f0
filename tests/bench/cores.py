"""Does a second core halve the time of a long backlog, and what does an event cost in each layer? `make bench NAME=cores`.

All layers of a few and of many events, in fresh processes that get so many of this machine's processors. What the many cost more, divided
by their number, is the cost of an event: the start and what the compilers of a JVM do at first are in both. On one processor the seconds of
a step are those of its CPU.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from orchestration.location import Location
from orchestration.storage.delta import in_log, open_table
from tests.bench.factory import write_conf, write_events
from tests.bench.growth import by_flow
from tests.bench.processes import Run
from tests.bench.script import all_layers, by_turns, narrow_table, parser_for, progress, script, write_report

TABLES = ("bronze/events", "silver/readings", "silver/duplicates", "gold/aggregates", "gold/vectors")
STEPS = ("bronze.events", "silver.readings", "silver.ledger", "gold")
Job = tuple[int, int]
"""Events, and cores."""


def main() -> int:
    parser = parser_for(__doc__, "bench-cores", events=10_000_000, few=1_000_000, rounds=1)
    options = parser.parse_args()
    jobs = [(events, cores) for cores in (1, options.cores) for events in (options.few, options.events)]
    runs = by_turns({job: partial(_run, options.work, options.driver_memory, *job) for job in jobs}, options.rounds)
    medians = {job: {name: median(run[name] for run in of_job) for name in of_job[0]} for job, of_job in runs.items()}
    tables = {name: _of_table(_folder(options.work, options.events) / "lake" / name) for name in TABLES}
    _show(medians, tables)
    report = {"runs": [{"events": events, "cores": cores} | medians[events, cores] for events, cores in jobs], "tables": tables}
    write_report(options, report)
    return 0


def _folder(work: Path, events: int) -> Path:
    return work / f"cores-{events}"


def _run(work: Path, driver_memory: str, events: int, cores: int) -> dict[str, float]:
    folder, all_cores = _folder(work, events), os.sched_getaffinity(0)
    folder.mkdir(parents=True, exist_ok=True)
    conf, log = write_conf(folder, driver_memory, cores), folder / f"run-{cores}.log"
    write_events(folder, conf, events)
    shutil.rmtree(folder / "lake", ignore_errors=True)
    os.sched_setaffinity(0, sorted(all_cores)[:cores])
    try:
        run: Run = all_layers(conf, log)
    finally:
        os.sched_setaffinity(0, all_cores)
    progress.log(f"{events:,} events, {cores} cores: {run.seconds:.1f} s, {run.cpu_seconds:.1f} s of CPU")
    of_run = {"seconds": run.seconds, "cpu": run.cpu_seconds, "peak_bytes": float(run.peak_bytes or 0)}
    return of_run | by_flow(log) | _most_state(folder / "lake")


def _most_state(lake: Path) -> dict[str, float]:
    """The most keys that silver's query has kept on the heap, and their bytes as Spark tells them."""
    facts = [fact for fact in _history(lake) if fact.get("flow") == "silver.readings" and fact.get("state_rows")]
    most = max(facts, key=lambda fact: fact["state_rows"], default={"state_rows": 0, "state_bytes": 0})
    return {name: float(most[name]) for name in ("state_rows", "state_bytes")}


def _history(lake: Path) -> Iterator[Mapping[str, Any]]:
    for file in (lake / "history").glob("*.jsonl"):
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def _of_table(path: Path) -> dict[str, int]:
    log = in_log(open_table(Location(path)), "num_records", "size_bytes")
    return {"files": len(log), "rows": sum(log["num_records"].to_pylist()), "bytes": sum(log["size_bytes"].to_pylist())}


def _show(medians: Mapping[Job, Mapping[str, float]], tables: Mapping[str, Mapping[str, int]]) -> None:
    console, (few, _), (events, cores) = Console(), min(medians), max(medians)
    table = narrow_table("events, cores", "seconds", "times as fast\nas one core", "CPU seconds", "peak memory")
    for (count, used), run in medians.items():
        faster, memory = medians[count, 1]["seconds"] / run["seconds"], run["peak_bytes"] / 2**30
        table.add_row(f"{count:,}, {used}", f"{run['seconds']:.1f}", f"{faster:.2f}", f"{run['cpu']:.1f}", f"{memory:.1f} GiB")
    console.print(table)
    by_step = narrow_table("microseconds an event", "one core", f"{cores} cores")
    for step in (*STEPS, "seconds", "cpu"):
        more = (1e6 * (medians[events, used][step] - medians[few, used][step]) / (events - few) for used in (1, cores))
        by_step.add_row({"seconds": "all layers", "cpu": "all layers, CPU"}.get(step, step), *(f"{cost:.1f}" for cost in more))
    console.print(by_step)
    by_table = narrow_table("table", "rows", "files", "bytes a row", "bytes an event")
    for name, size in tables.items():
        of_row, of_event = size["bytes"] / max(size["rows"], 1), size["bytes"] / events
        by_table.add_row(name.replace("/", "."), f"{size['rows']:,}", str(size["files"]), f"{of_row:.1f}", f"{of_event:.1f}")
    console.print(by_table)
    state = medians[events, cores]
    console.print(f"state of silver: {state['state_rows']:,.0f} keys, {state['state_bytes'] / max(state['state_rows'], 1):.0f} bytes each")


if __name__ == "__main__":
    script(main)
