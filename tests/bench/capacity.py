"""What so many events a day need: cores, lakes, state, files, requests, bytes, dollars. `make bench NAME=capacity`.

Arithmetic upon costs that were measured; orchestration/CAPACITY.md has the command of each. Prices are the reader's.
"""

import argparse
from dataclasses import dataclass
from math import ceil

from rich.console import Console

from tests.bench.script import narrow_table, script

DAY = 86_400
COLUMNS = (
    "events/s",
    "lakes",
    "cores of\ntasks",
    "cores of\ndrivers",
    "GB of\nstate",
    "new files",
    "PUT and\nLIST",
    "GET and\nHEAD",
    "GB a day",
)


@dataclass(frozen=True)
class Costs:
    """Costs of an event of 116 bytes with one measurement. Seconds are those of one core."""

    task_seconds: float = 8.5e-6
    driver_seconds: float = 3.2e-6
    cycle_seconds: float = 7.0
    """Of a cycle with a batch, however small: plans, logs, commits."""
    state_bytes: float = 280.0
    stored_bytes: float = 35.0
    files: int = 12
    """New ones of a cycle with a batch: rows, entries of logs, checkpoints."""
    writes: int = 199
    reads: int = 387
    """Requests of a cycle with a batch, to an object store: PUT, COPY, DELETE, LIST; and GET, HEAD."""


@dataclass(frozen=True)
class Needs:
    """The needs of a day. `lakes`: pipelines of equal parts of the devices, each with a driver of its own."""

    lakes: int
    task_cores: float
    driver_cores: float
    state_bytes: float
    files: float
    writes: float
    reads: float
    stored_bytes: float


def needs(events: float, cost: Costs, lateness: float, cycle: float, busy: float) -> Needs:
    """Return the needs of so many events a day, evenly spread over it and its devices.

    `lateness`, `cycle`: seconds. `busy`: the share of the time that a core may work, so that it catches up after a stop.
    """
    rate = events / DAY
    lakes = max(1, ceil(rate * cost.driver_seconds / (busy - cost.cycle_seconds / cycle)))
    driver_cores = (rate * cost.driver_seconds + lakes * cost.cycle_seconds / cycle) / busy
    cycles = lakes * DAY / cycle
    return Needs(
        lakes,
        rate * cost.task_seconds / busy,
        driver_cores,
        rate * (lateness + 2 * cycle) * cost.state_bytes,
        cycles * cost.files,
        cycles * cost.writes,
        cycles * cost.reads,
        events * cost.stored_bytes,
    )


def dollars(of: Needs, prices: argparse.Namespace) -> float:
    """Return the dollars of a day, on which so much is kept as came in `kept_days`."""
    kept = of.stored_bytes * prices.kept_days / 1e9 * prices.gb_month / 30
    requests = of.writes / 1000 * prices.thousand_writes + of.reads / 1000 * prices.thousand_reads
    return float(24 * prices.core_hour * (ceil(of.task_cores) + ceil(of.driver_cores)) + kept + requests)


def main() -> int:
    options = _options()
    table = narrow_table("events a day", *COLUMNS, "dollars\na day")
    for events in options.events:
        of = needs(events, Costs(), options.lateness_seconds, options.cycle_seconds, options.busy)
        cores = (f"{of.task_cores:,.2f}", f"{of.driver_cores:,.2f}")
        counts = (f"{count:,.0f}" for count in (of.files, of.writes, of.reads))
        sizes = f"{of.state_bytes / 1e9:,.2f}", f"{of.stored_bytes / 1e9:,.1f}"
        row = (f"{events / DAY:,.0f}", str(of.lakes), *cores, sizes[0], *counts, sizes[1], f"{dollars(of, options):,.2f}")
        table.add_row(f"{events:,}", *row)
    Console(width=160).print(table)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[10**6, 10**8, 10**10, 24 * 14 * 10**9], help="a day")
    parser.add_argument("--lateness-seconds", type=float, default=600)
    parser.add_argument("--cycle-seconds", type=float, default=60, help="from one batch to the next")
    parser.add_argument("--busy", type=float, default=0.6, help="the share of the time that a core may work")
    parser.add_argument("--kept-days", type=float, default=365)
    for name, unit in (("core-hour", "of a core"), ("gb-month", "of a GB"), ("thousand-writes", "PUT, LIST"), ("thousand-reads", "GET")):
        parser.add_argument(f"--{name}", type=float, default=0.0, metavar="DOLLARS", help=f"the price: {unit}")
    return parser.parse_args()


if __name__ == "__main__":
    script(main)
