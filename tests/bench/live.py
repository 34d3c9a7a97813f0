"""A continuous run, measured: `make bench NAME=live`.

A simulated plant lands a file a second. Told, for each minute: how long an event took to silver, and to a snapshot that a query can ask,
how much of the CPU the run used, and its memory. A burst may come in between; then also how long it took until silver had all of it.
"""

import argparse
import math
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.bench.factory import write_conf
from tests.bench.feed import Arrival, Deliver, arrivals, fed_run, spread
from tests.bench.processes import used
from tests.bench.script import narrow_table, of, parser_for, progress, says_yes, script, write_report

MINUTE = 60


def main() -> int:
    """Run, feed, measure, tell; 0 when the ledger and verify are clean."""
    parser = parser_for(__doc__, "bench-live")
    live_options(parser, minutes=10)
    options = parser.parse_args()
    folder = options.work / f"live-{options.rate}"
    shutil.rmtree(folder, ignore_errors=True)
    conf = write_conf(folder, options.driver_memory, options.cores, trigger_seconds=options.trigger_seconds)
    (folder / "landing").mkdir()
    report = measured(conf, options)
    write_report(options, report)
    return 0 if is_clean(report) else 1


def measured(conf: Path, options: argparse.Namespace, deliver: Deliver | None = None) -> dict[str, Any]:
    """Run, feed, measure, tell. `options`: of `live_options`. `deliver`: instead of into the landing folder."""
    folder = conf.parent
    begin, looks = _run(folder, of(conf), options, deliver)
    arrived = [*arrivals(folder / "lake")]
    minutes = [_minute(n, arrived, begin, looks) for n in range(options.minutes)]
    report: dict[str, Any] = {"events_a_second": options.rate, "cores": options.cores, "minutes": minutes}
    report |= {name: says_yes(conf, name) for name in ("ledger", "verify")}
    _show(minutes)
    return report


def is_clean(report: Mapping[str, Any]) -> bool:
    return bool(report["ledger"] and report["verify"])


def live_options(parser: argparse.ArgumentParser, minutes: int) -> None:
    """What a continuous run is measured by. `minutes`: by default."""
    parser.add_argument("--rate", type=int, default=5_000, help="events a second")
    parser.add_argument("--minutes", type=int, default=minutes)
    parser.add_argument("--burst-minute", type=int, default=None, help="the minute in which --burst-factor times as many come")
    parser.add_argument("--burst-factor", type=int, default=20)
    parser.add_argument("--trigger-seconds", type=int, default=1)


def _run(
    folder: Path, command: Sequence[str], options: argparse.Namespace, deliver: Deliver | None
) -> tuple[float, list[tuple[float, int]]]:
    """When the feed began, in seconds since 1970, and a look at what the run had used, at the end of each minute."""
    first, looks = MINUTE * (math.inf if options.burst_minute is None else options.burst_minute), []

    def events_in(second: int) -> int:
        in_burst = first <= second < first + MINUTE
        return int(options.rate) * (int(options.burst_factor) if in_burst else 1)

    with fed_run(folder, command, events_in, deliver) as process:
        begin = time.time()
        looks.append(used(process))
        for minute in range(options.minutes):
            time.sleep(max(0.0, begin + MINUTE * (minute + 1) - time.time()))
            looks.append(used(process))
            progress.log(f"minute {minute}: {looks[-1][0] - looks[-2][0]:.0f} s of CPU")
    return begin, looks


def _minute(number: int, arrived: Sequence[Arrival], begin: float, looks: Sequence[tuple[float, int]]) -> dict[str, Any]:
    landed = [each for each in arrived if number * MINUTE <= each.landed_at - begin < (number + 1) * MINUTE]
    return {
        "minute": number,
        "to_silver_s": spread(landed, attrgetter("to_silver")),
        "to_snapshot_s": spread(landed, attrgetter("to_snapshot")),
        "cpu": round((looks[number + 1][0] - looks[number][0]) / MINUTE / (os.cpu_count() or 1), 2),
        "resident_bytes": looks[number + 1][1],
    }


def _show(minutes: Sequence[dict[str, Any]]) -> None:
    table = narrow_table("minute", "events", "to silver,\np50", "p99", "to a snapshot,\np50", "p99", "CPU", "GB")
    for each in minutes:
        silver, snapshot = each["to_silver_s"] or {}, each["to_snapshot_s"] or {}
        seconds = [f"{part[name]:.1f} s" if part else "" for part in (silver, snapshot) for name in ("p50", "p99")]
        table.add_row(
            str(each["minute"]), f"{silver.get('events', 0):,}", *seconds, f"{each['cpu']:.0%}", f"{each['resident_bytes'] / 1e9:.1f}"
        )
    Console().print(table)


if __name__ == "__main__":
    script(main)
