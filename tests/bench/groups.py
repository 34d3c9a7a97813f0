"""Do many groups cost more than few? The same events of 600 devices in 3 groups and in 300, which share a stream: `make bench-groups`."""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))  # run as a script, from any folder

from tests.bench.factory import TIDEMARK, write_conf, write_events  # noqa: E402
from tests.bench.processes import FailedError, Run, timed  # noqa: E402

DEVICES = 600
told = Console(stderr=True)


def main() -> int:
    """Measure in turn, tell."""
    options = _options()
    runs: dict[int, list[Run]] = {count: [] for count in options.groups}
    for number in range(options.rounds):
        told.log(f"round {number + 1} of {options.rounds}")
        for count, of_count in runs.items():
            of_count.append(_run(options, count))
    table = Table("groups", "seconds", "times the speed", "CPU seconds")
    medians = {count: statistics.median(run.seconds for run in of_count) for count, of_count in runs.items()}
    for count, seconds in medians.items():
        cpu = statistics.median(run.cpu_seconds for run in runs[count])
        table.add_row(str(count), f"{seconds:.1f}", f"{medians[options.groups[0]] / seconds:.2f}", f"{cpu:.1f}")
    Console().print(table)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    report = {"events": options.events, "runs": {count: [vars(run) for run in of_count] for count, of_count in runs.items()}}
    options.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, nargs="+", default=[3, 300])
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--driver-memory", default="2g")
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "tidemark-bench", help="where events and lake go")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "artifacts" / "bench-groups.json")
    return parser.parse_args()


def _run(options: argparse.Namespace, count: int) -> Run:
    folder = options.work / f"{options.events}-in-{count}-groups"
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"group_{number:03d}" for number in range(count)]
    conf = write_conf(folder, options.driver_memory, options.cores, names, DEVICES, "plant")
    write_events(folder, conf, options.events)
    shutil.rmtree(folder / "lake", ignore_errors=True)
    return timed([*TIDEMARK, "--conf", str(conf), "run", "--once"], REPOSITORY, folder / "run.log")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FailedError as error:
        sys.exit(str(error))
