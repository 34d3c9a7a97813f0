"""What the measuring scripts share: where things go, one run of everything, the report."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench.factory import TIDEMARK
from tests.bench.processes import FailedError, Run, timed

Name = TypeVar("Name")
Result = TypeVar("Result")
REPOSITORY = Path(__file__).parents[2]
progress = Console(stderr=True, log_path=False)
"""Says what is being measured; the tables go to stdout."""


def script(main: Callable[[], int]) -> None:
    """Leave with the code of `main`; with what a measured process said last where it failed."""
    try:
        sys.exit(main())
    except FailedError as error:
        sys.exit(str(error))


def parser_for(doc: str | None, name: str, **numbers: int) -> argparse.ArgumentParser:
    """`doc` is the module's; the report goes to `artifacts/<name>.json`. `numbers`: options of a whole number, and their defaults."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver-memory", default="2g")
    parser.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "tidemark-bench", help="where events and lakes go")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "artifacts" / f"{name}.json")
    for number, default in numbers.items():
        parser.add_argument(f"--{number}", type=int, default=default)
    return parser


def of(conf: Path) -> Sequence[str]:
    """The command line of a lake."""
    return [*TIDEMARK, "--conf", str(conf)]


def all_layers(conf: Path, log: Path) -> Run:
    """Everything that has landed, in one fresh process."""
    return timed([*of(conf), "run", "--once"], REPOSITORY, log)


def says_yes(conf: Path, command: str) -> bool:
    """Whether a command, such as `ledger` or `verify`, ends with exit code 0."""
    return subprocess.run([*of(conf), command], cwd=REPOSITORY, check=False).returncode == 0


def by_turns(jobs: Mapping[Name, Callable[[], Result]], rounds: int) -> dict[Name, list[Result]]:
    """Results of each job, which runs once a round: what slows the machine for a while slows all of them."""
    results: dict[Name, list[Result]] = {name: [] for name in jobs}
    for number in range(rounds):
        progress.log(f"round {number + 1} of {rounds}")
        for name, job in jobs.items():
            results[name].append(job())
    return results


def narrow_table(first: str, *numbers: str) -> Table:
    """Without a frame, for 80 columns: names on the left, then numbers; a heading may hold a line break, a cell is never broken."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def write_report(options: argparse.Namespace, report: Mapping[str, Any]) -> None:
    """As JSON, where the options say; a line for each is kept in `bench-history.jsonl` beside it."""
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    line = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "bench": options.output.stem, **report}
    with (options.output.parent / "bench-history.jsonl").open("a", encoding="utf-8") as history:
        history.write(json.dumps(line) + "\n")
