"""Transactions over bronze, silver and gold beside a writer that appends, pins, compacts and removes: none sees parts of two snapshots."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from deltalake import DeltaTable

from orchestration.conf.load import load
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from orchestration.storage.tables import LakeStore
from tests.lakes import write
from tests.orchestration.serving.postgres.served import Served, serving
from tests.rows import at

TABLES = ("bronze.events", "silver.readings", "silver.quarantine", "gold.aggregates")
READINGS, BROKEN = 3, 2
"""Of a bronze batch, which has an event for each."""
CLIENTS, PAUSE_SECONDS, COMPACTED_EVERY, KEPT = 4, 2.0, 5, 20
SNAPSHOTS_BESIDE = 3
"""The writer pins as many at least while clients read, however fast they are."""
COUNTS = (
    "select count(*), max(bronze_batch) from bronze.events",
    "select (select count(*) from silver.readings) as readings, (select count(*) from silver.quarantine) as broken",
    "select sum(count)::bigint, count(*) from gold.kitchen_aggregates",
)


class Writer:
    """Appends a bronze batch to one layer after the other, pins all, and rewrites and removes files now and then."""

    def __init__(self, folder: Path) -> None:
        self._lake, self._pinned, self._stop = LakeStore(load(folder / "conf")), list[Snapshot](), threading.Event()
        self._append(0)

    def __enter__(self) -> "Writer":
        self._thread = threading.Thread(target=self._write)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def count(self) -> int:
        """Snapshots that were pinned."""
        return len(self._pinned)

    def _write(self) -> None:
        for batch in count(1):
            if self._stop.wait(PAUSE_SECONDS):
                return
            self._append(batch)
            if batch % COMPACTED_EVERY == 0:
                self._compact()

    def _append(self, batch: int) -> None:
        names = [{"bronze_batch": batch, "bronze_row": row} for row in range(READINGS + BROKEN)]
        start = at("2026-01-05T00:00:00") + timedelta(minutes=10 * batch)
        window = {"device_id": "oven", "metric": "power", "window_start": start, "window_end": start + timedelta(minutes=10)}
        write(self._lake, "bronze.events", *names)
        write(self._lake, "silver.readings", *names[:READINGS])
        write(self._lake, "silver.quarantine", *({**name, "broken_rules": ["x"]} for name in names[READINGS:]))
        write(self._lake, "gold.kitchen_aggregates", {**window, "count": READINGS, "revision": 0, "gold_batch": batch})
        versions = {name: DeltaTable(self._path(name)).version() for name in TABLES}
        self._pinned.append(Snapshot(batch, datetime.now(UTC), 1, batch, versions, {"kitchen": start}))
        SNAPSHOTS.append(self._lake.conf.lake, self._pinned[-1:])

    def _compact(self) -> None:
        for name in TABLES:
            table = DeltaTable(self._path(name))
            table.optimize.compact()
            kept = [snapshot.versions[name] for snapshot in self._pinned[-KEPT:]]
            table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, keep_versions=kept)
            table.create_checkpoint()

    def _path(self, name: str) -> str:
        return str(self._lake.table_path(name))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Writer]]:
    writers = list[Writer]()
    with serving(tmp_path_factory.mktemp("torn"), build=lambda folder: writers.append(Writer(folder))) as server, writers[0] as writer:
        yield server, writer


def transactions(server: Served, count: int, is_enough: Callable[[], bool]) -> list[tuple[int, ...]]:
    """Counts of three layers, in a transaction each: `count` of them, and more until it is enough."""
    with server.connect() as connection:
        answers = list[tuple[int, ...]]()
        while len(answers) < count or not is_enough():
            with connection.transaction():
                layers = [connection.execute(query).fetchone() for query in COUNTS]
            answers.append(tuple(number for layer in layers for number in layer or ()))
        return answers


@pytest.mark.processes
@pytest.mark.parametrize("total", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_transaction_sees_two_snapshots(server: tuple[Served, Writer], total: int) -> None:
    (served, writer), start = server, time.monotonic()
    before = writer.count

    def is_enough() -> bool:
        return writer.count > before + SNAPSHOTS_BESIDE

    with ThreadPoolExecutor(CLIENTS) as threads:
        parts = list(threads.map(lambda _: transactions(served, total // CLIENTS, is_enough), range(CLIENTS)))
    answers = [answer for part in parts for answer in part]
    print(f"{len(answers) / (time.monotonic() - start):.0f} transactions/s beside {writer.count - before} snapshots")
    batches = [newest + 1 for _, newest, *_ in answers]
    events = READINGS + BROKEN
    assert [
        answer
        for answer, n in zip(answers, batches, strict=True)
        if answer != (events * n, n - 1, READINGS * n, BROKEN * n, READINGS * n, n)
    ] == []
    assert len({*batches}) >= SNAPSHOTS_BESIDE
