"""No order of arrival may lose a row: the events of `make bench` as eight shuffled files, one a micro-batch: `make bench NAME=shuffled`.

Plain Spark with the same watermark loses 75 % of these rows in silence. Here the account has to balance, and `tidemark verify`, which
computes silver and gold from all events of bronze at once, to find no difference.
"""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.bench.factory import write_conf, write_events
from tests.bench.processes import FailedError
from tests.bench.script import all_layers, narrow_table, of, parser_for, progress, script, write_report

ONE_FILE = 1 << 20
"""The least that conf takes; a file is never cut, and each has more."""
MUST_BE_NOTHING = ("quarantined", "missing", "duplicated", "orphaned", "count_mismatch", "waiting")


def main() -> int:
    """Run, account, compare, tell; 0 when nothing is lost and gold is the same."""
    options = parser_for(__doc__, "bench-shuffled", events=2_000_000, seed=7).parse_args()
    folder = options.work / f"{options.events}-shuffled"
    conf = write_conf(folder, options.driver_memory, options.cores, max_batch_bytes=ONE_FILE)
    order = _landed(write_events(options.work / str(options.events), conf, options.events), folder / "landing", options.seed)
    progress.log(f"seed {options.seed}: {', '.join(order)}")
    shutil.rmtree(folder / "lake", ignore_errors=True)
    run = all_layers(conf, folder / "run.log")
    progress.log(f"{options.events / run.seconds:,.0f} events/s: {run.seconds:.1f} s")
    account, verified = _answer(conf, "ledger"), _answer(conf, "verify")
    _show(account, ("ingested_on", "events", "readings", "late", "duplicates"))
    Console().print(", ".join(f"{name} {sum(day[name] for day in account)}" for name in MUST_BE_NOTHING))
    _show(verified, ("table", "rows", "differences", "seconds"))
    wrong = [f"{name} is {day[name]}" for day in account for name in MUST_BE_NOTHING if day[name]]
    wrong += [f"{row['table']} has {row['differences']} differences" for row in verified if row["differences"]]
    wrong += [f"{row['table']} holds no rows" for row in verified if row["table"].startswith("gold.") and not row["rows"]]
    write_report(options, {"order": order, "seconds": run.seconds, "ledger": account, "verify": verified})
    for line in wrong:
        progress.print(line, style="red")
    return 1 if wrong or sum(day["events"] for day in account) != options.events else 0


def _landed(recorded: Path, landing: Path, seed: int) -> Sequence[str]:
    """The files in a shuffled order, which is that of their times: Spark reads the oldest first."""
    shutil.rmtree(landing, ignore_errors=True)
    shutil.copytree(recorded, landing)
    order = sorted(file.name for file in landing.iterdir())
    random.Random(seed).shuffle(order)
    for n, name in enumerate(order):
        os.utime(landing / name, (1_700_000_000 + n, 1_700_000_000 + n))
    return order


def _answer(conf: Path, command: str) -> list[dict[str, Any]]:
    answer = subprocess.run([*of(conf), command, "--format", "json"], stdout=subprocess.PIPE, check=False)
    if answer.returncode > 1:
        raise FailedError(f"tidemark {command} ended with {answer.returncode}")
    rows: list[dict[str, Any]] = json.loads(answer.stdout)
    return rows


def _show(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    table = narrow_table(*columns)
    for row in rows:
        table.add_row(*(f"{row[name]:,}" if isinstance(row[name], int) else str(row[name]) for name in columns))
    Console().print(table)


if __name__ == "__main__":
    script(main)
