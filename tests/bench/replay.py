"""Replay beside live ingestion, measured: `make bench-replay`.

The events are processed once, timed. Then a continuous run takes 500 events/s, first alone, then while a replay builds everything anew.
Told: both times, how long an event took to silver with and without the replay beside it, and the rows that differ between the generations.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable
from rich.console import Console

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))  # run as a script, from any folder

from orchestration.conf.load import load  # noqa: E402
from orchestration.generations import serving, swaps  # noqa: E402
from orchestration.snapshots import all_snapshots  # noqa: E402
from tests.bench.factory import GROUPS, TIDEMARK, write_conf, write_events  # noqa: E402
from tests.bench.feed import arrivals, fed_run, spread  # noqa: E402
from tests.bench.processes import timed  # noqa: E402

FED_A_SECOND, WARM_SECONDS = 500, 60
READING = "device_id, metric, event_time, value, bronze_batch, bronze_row, part"
WINDOW = "device_id, metric, window_start, round(value, 6) as value, count, min, max, latest"  # a sum depends on the order of its terms
told = Console(stderr=True)


def main() -> int:
    """Measure, check, tell; 0 when no row differs and the proofs are clean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--alone", type=int, default=60, help="seconds of live ingestion before the replay begins")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "tidemark-bench")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "artifacts" / "bench-replay.json")
    options = parser.parse_args()
    folder = _prepared(options.work, options.events)
    command = [*TIDEMARK, "--conf", str(folder / "conf")]
    told.log("all layers, once")
    live = timed([*command, "run", "--once"], REPOSITORY, folder / "once.log")
    told.log(f"{live.seconds:.1f} s; now continuously, alone for {options.alone} s")
    report: dict[str, Any] = {"events": options.events, "live_seconds": live.seconds} | _beside(folder, command, options.alone)
    timed([*command, "run", "--once"], REPOSITORY, folder / "settle.log")  # the run may have ended before its first snapshot after the swap
    report["times_live_speed"] = round(live.seconds / report["replay_seconds"], 2)
    report |= {name: _clean([*command, name]) for name in ("ledger", "verify")} | {"differing_rows": _differing(folder)}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    Console().print_json(data=report)
    return 0 if report["ledger"] and report["verify"] and not report["differing_rows"] else 1


def _prepared(work: Path, events: int) -> Path:
    """A lake of its own, beside a landing folder that will grow."""
    made = work / str(events)
    made.mkdir(parents=True, exist_ok=True)
    landing, folder = write_events(made, write_conf(made, "2g", 2), events), work / f"replay-{events}"
    shutil.rmtree(folder, ignore_errors=True)
    write_conf(folder, "2g", 2)
    shutil.copytree(landing, folder / "landing", copy_function=os.link)
    return folder


def _beside(folder: Path, command: Sequence[str], alone_seconds: int) -> dict[str, Any]:
    """A continuous run, fed all the time; after a while a replay."""
    with fed_run(folder, command, lambda _: FED_A_SECOND):
        time.sleep(WARM_SECONDS + alone_seconds)
        begin = time.time()
        replay = timed([*command, "replay"], REPOSITORY, folder / "replay.log")
    arrived, to_silver = [*arrivals(folder / "lake")], attrgetter("to_silver")
    return {
        "replay_seconds": replay.seconds,
        "latency_alone_s": spread((each for each in arrived if begin - alone_seconds < each.committed_at < begin), to_silver),
        "latency_beside_replay_s": spread((each for each in arrived if begin <= each.committed_at), to_silver),
    }


def _clean(command: Sequence[str]) -> bool:
    return subprocess.run(command, cwd=REPOSITORY, check=False).returncode == 0


def _differing(folder: Path) -> int:
    """Rows that the last snapshots of both generations do not share, of the bronze batches that both hold."""
    lake = load(folder / "conf").lake
    pinned = {each.generation: each for each in all_snapshots(lake)}
    first, second = pinned[1], pinned[serving(lake).generation]
    places = {each.generation: each for each in swaps(lake)}
    batch, closed = min(first.bronze_batch, second.bronze_batch), min(*first.closed_until.values(), *second.closed_until.values())
    asked = [("silver.readings", READING, f"bronze_batch <= {batch}")]
    asked += [(f"gold.{group}_aggregates", WINDOW, f"window_end <= timestamptz '{closed.isoformat()}'") for group in GROUPS]
    different = 0
    for name, columns, where in asked:
        both = [DeltaTable(places[cut.generation].table(lake, name), cut.versions[name]).to_pyarrow_dataset() for cut in (first, second)]
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
    sys.exit(main())
