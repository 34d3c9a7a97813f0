"""Live events for measurements: some each second, in a file or to Kafka, and how long they took to get where they are asked for."""

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from orchestration.location import Location
from orchestration.storage.delta import added, log_of
from orchestration.storage.snapshots import all_snapshots
from tests.bench.factory import DEVICES, METRICS

REPOSITORY = Path(__file__).parents[2]
Deliver = Callable[[int, Sequence[str]], None]
"""Sends events of a second, which is numbered from 0; a device is at the same place of each."""


@dataclass(frozen=True)
class Arrival:
    """So many readings with one commit of silver. Instants in seconds since 1970; `pinned_at`: infinite where no snapshot has them."""

    landed_at: float
    committed_at: float
    pinned_at: float
    events: int

    @property
    def to_silver(self) -> float:
        """Seconds."""
        return self.committed_at - self.landed_at

    @property
    def to_snapshot(self) -> float:
        """Seconds; infinite where no snapshot has them."""
        return self.pinned_at - self.landed_at


def by_file(landing: Path) -> Deliver:
    """A file a second."""

    def deliver(number: int, events: Sequence[str]) -> None:
        draft = landing / f".{number}"
        draft.write_text("".join(event + "\n" for event in events))
        draft.rename(landing / f"live-{number:06d}.json")

    return deliver


def _feed(deliver: Deliver, events_in: Callable[[int], int], over: threading.Event) -> None:
    """Events at each full second until it is over, `events_in` tells how many in which; their time is that second."""
    metrics, number = [*METRICS], 0
    while not over.wait(1 - time.time() % 1):
        now = datetime.now(UTC)
        rows = [
            {
                "device": f"sim-{1 + n % DEVICES:04d}",
                "metric": metrics[n // DEVICES % len(metrics)],
                "value": 20 + n % 7,
                "ts": now.replace(microsecond=n).isoformat(),
            }
            for n in range(events_in(number))
        ]
        deliver(number, [json.dumps(row) for row in rows])
        number += 1


@contextmanager
def fed_run(folder: Path, command: Sequence[str], events_in: Callable[[int], int], deliver: Deliver | None = None) -> Iterator[int]:
    """`tidemark run`, fed all the while; yields the process, which is the session of what it starts. Then SIGTERM.

    `deliver`: instead of into its landing folder.
    """
    over = threading.Event()
    feeder = threading.Thread(target=_feed, args=(deliver or by_file(folder / "landing"), events_in, over))
    with (folder / "run.log").open("wb") as log:
        running = subprocess.Popen([*command, "run"], cwd=REPOSITORY, stdout=log, stderr=log, start_new_session=True)
        try:
            feeder.start()
            yield running.pid
        finally:
            over.set()
            feeder.join()
            running.send_signal(signal.SIGTERM)
            running.wait()


def arrivals(lake: Path) -> Iterator[Arrival]:
    """Of fed events, by file. Older ones, such as a backlog, are left out."""
    table = lake / "silver" / "readings"
    pinned = sorted(
        (each.versions["silver.readings"], each.at.timestamp()) for each in all_snapshots(Location(lake)) if each.generation == 1
    )
    for version in range(DeltaTable(table).version() + 1):
        committed_at = log_of(Location(table), version).local.stat().st_mtime
        pinned_at = min((at for holds, at in pinned if holds >= version), default=float("inf"))
        for add in added(Location(table), version):
            at = pc.floor_temporal(pq.read_table(table / add["path"], columns=["event_time"])["event_time"], unit="second")
            for second in pa.table({"at": at}).group_by("at").aggregate([([], "count_all")]).to_pylist():
                if 0 <= committed_at - second["at"].timestamp() < 3600:
                    yield Arrival(second["at"].timestamp(), committed_at, pinned_at, second["count_all"])


def spread(arrived: Iterable[Arrival], seconds: Callable[[Arrival], float]) -> dict[str, float] | None:
    """Median and 99th percentile of what is finite, each value as often as there were events."""
    finite = [(seconds(each), each.events) for each in arrived if seconds(each) < float("inf")]
    if not finite:
        return None
    values, events = zip(*finite, strict=True)
    p50, p99 = np.quantile(np.repeat(values, events), [0.5, 0.99], method="higher")
    return {"p50": round(float(p50), 2), "p99": round(float(p99), 2), "events": sum(events)}
