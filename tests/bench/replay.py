"""Replay beside live ingestion, measured: `make bench NAME=replay`.

The events are processed once, timed. Then a continuous run takes 500 events/s, first alone, then while a replay builds everything anew.
Told: both times, how long an event took to silver with and without the replay beside it, and the rows that differ between the generations.
"""

import argparse
import os
import shutil
import time
from operator import attrgetter
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable
from rich.console import Console

from orchestration.conf.load import load
from orchestration.storage.generations import active_generation, switches
from orchestration.storage.snapshots import all_snapshots
from tests.bench.factory import GROUPS, write_conf, write_events
from tests.bench.feed import arrivals, fed_run, spread
from tests.bench.processes import timed
from tests.bench.script import REPOSITORY, all_layers, of, parser_for, progress, says_yes, script, write_report

FED_A_SECOND, WARM_SECONDS = 500, 60
READING = "device_id, metric, event_time, value, bronze_batch, bronze_row, part"
WINDOW = "device_id, metric, window_start, round(value, 6) as value, count, min, max, latest"  # a sum depends on the order of its terms


def main() -> int:
    """Measure, check, tell; 0 when no row differs and the proofs are clean."""
    parser = parser_for(__doc__, "bench-replay", events=2_000_000)
    parser.add_argument("--alone", type=int, default=60, help="seconds of live ingestion before the replay begins")
    options = parser.parse_args()
    folder = _prepared(options)
    progress.log("all layers, once")
    live = all_layers(folder / "conf", folder / "once.log")
    progress.log(f"{live.seconds:.1f} s; now continuously, alone for {options.alone} s")
    report: dict[str, Any] = {"events": options.events, "live_seconds": live.seconds} | _beside(folder, options.alone)
    all_layers(folder / "conf", folder / "settle.log")  # the run may have ended before its first snapshot after the swap
    report["times_live_speed"] = round(live.seconds / report["replay_seconds"], 2)
    report |= {name: says_yes(folder / "conf", name) for name in ("ledger", "verify")} | {"differing_rows": _differing(folder)}
    write_report(options, report)
    Console().print_json(data=report)
    return 0 if report["ledger"] and report["verify"] and not report["differing_rows"] else 1


def _prepared(options: argparse.Namespace) -> Path:
    """A lake of its own, beside a landing folder that will grow."""
    work: Path = options.work
    made, folder = work / str(options.events), work / f"replay-{options.events}"
    made.mkdir(parents=True, exist_ok=True)
    landing = write_events(made, write_conf(made, options.driver_memory, options.cores), options.events)
    shutil.rmtree(folder, ignore_errors=True)
    write_conf(folder, options.driver_memory, options.cores)
    shutil.copytree(landing, folder / "landing", copy_function=os.link)
    return folder


def _beside(folder: Path, alone_seconds: int) -> dict[str, Any]:
    """A continuous run, fed all the time; after a while a replay."""
    command = of(folder / "conf")
    with fed_run(folder, command, lambda _: FED_A_SECOND):
        time.sleep(WARM_SECONDS + alone_seconds)
        begin = time.time()
        replay = timed([*command, "replay", "--yes"], REPOSITORY, folder / "replay.log")
    arrived, to_silver = [*arrivals(folder / "lake")], attrgetter("to_silver")
    return {
        "replay_seconds": replay.seconds,
        "latency_alone_s": spread((each for each in arrived if begin - alone_seconds < each.committed_at < begin), to_silver),
        "latency_beside_replay_s": spread((each for each in arrived if begin <= each.committed_at), to_silver),
    }


def _differing(folder: Path) -> int:
    """Rows that the last snapshots of both generations do not share, of the bronze batches that both hold."""
    lake = load(folder / "conf").lake
    pinned = {each.generation: each for each in all_snapshots(lake)}
    first, second = pinned[1], pinned[active_generation(lake).generation]
    places = {each.generation: each for each in switches(lake)}
    batch, closed = min(first.bronze_batch, second.bronze_batch), min(*first.closed_until.values(), *second.closed_until.values())
    asked = [("silver.readings", READING, f"bronze_batch <= {batch}")]
    asked += [("gold.aggregates", WINDOW, f"window_end <= timestamptz '{closed.isoformat()}'")]
    different = 0
    for name, columns, where in asked:
        both = [
            DeltaTable(place.table(lake, of).local, cut.versions[of]).to_pyarrow_dataset()
            for cut, place in ((cut, places[cut.generation]) for cut in (first, second))
            for of in (place.gold(GROUPS[0], "aggregates") if name == "gold.aggregates" else name,)
        ]
        store = duckdb.connect()
        store.register("a", both[0])
        store.register("b", both[1])
        for one, other in (("a", "b"), ("b", "a")):
            query = (
                f"select count(*) from (select {columns} from {one} where {where} except all select {columns} from {other} where {where})"
            )
            found = store.execute(query).fetchone()
            different += found[0] if found else 0
    return different


if __name__ == "__main__":
    script(main)
