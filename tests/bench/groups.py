"""Do many groups cost more than few? The same events of 20,000 devices in groups that share a stream: `make bench NAME=groups`."""

import argparse
import shutil
import statistics
from functools import partial

from rich.console import Console

from tests.bench.factory import write_conf, write_events
from tests.bench.processes import Run
from tests.bench.script import all_layers, by_turns, narrow_table, parser_for, script, write_report

DEVICES, INTERVAL_SECONDS = 20_000, 30


def main() -> int:
    parser = parser_for(__doc__, "bench-groups", events=2_000_000, rounds=1)
    parser.add_argument("--groups", type=int, nargs="+", default=[3, 300, 10_000])
    options = parser.parse_args()
    runs = by_turns({count: partial(_run, options, count) for count in options.groups}, options.rounds)
    table = narrow_table("groups", "seconds", "times the speed", "CPU seconds")
    medians = {count: statistics.median(run.seconds for run in of_count) for count, of_count in runs.items()}
    for count, seconds in medians.items():
        cpu = statistics.median(run.cpu_seconds for run in runs[count])
        table.add_row(str(count), f"{seconds:.1f}", f"{medians[options.groups[0]] / seconds:.2f}", f"{cpu:.1f}")
    Console().print(table)
    write_report(options, {"events": options.events, "runs": {count: [vars(run) for run in of_count] for count, of_count in runs.items()}})
    return 0


def _run(options: argparse.Namespace, count: int) -> Run:
    folder = options.work / f"{options.events}-in-{count}-groups"
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"group_{number:05d}" for number in range(count)]
    conf = write_conf(folder, options.driver_memory, options.cores, names=names, devices=DEVICES, stream="plant")
    write_events(folder, conf, options.events, INTERVAL_SECONDS)
    shutil.rmtree(folder / "lake", ignore_errors=True)
    return all_layers(conf, folder / "run.log")


if __name__ == "__main__":
    script(main)
