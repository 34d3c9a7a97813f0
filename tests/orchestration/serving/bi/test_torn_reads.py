"""Reads over two tables while both are written, compacted and cleaned: none sees half of one snapshot and half of the next.

`make bi` runs it: 100 reads for each of two clients by JDBC and by Spark Connect, of the rest of `--reads` a fifth by the sql-server,
the others by DuckDB.
"""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import count

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from orchestration.conf.load import load
from orchestration.location import Location
from orchestration.serving.sql.answer import Engine, Limits, Question
from orchestration.serving.sql.client import ServerEngine, address_of
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from tests.orchestration.serving.bi.clients import Notebook, Pyhive, Rows
from tests.orchestration.serving.bi.served import TIDEMARK, Plant, Server
from tests.waiting import PATIENCE_SECONDS, until

pytestmark = [pytest.mark.bi, pytest.mark.bubblewrap, pytest.mark.slow, pytest.mark.spark]
OF_BI = 200
A_SESSION = 10
"""Reads of a session; then comes another, on the newest snapshot."""
KEPT = 200
"""Snapshots whose files are kept: far more than there are while a session lives."""
TABLES = ("bronze.events", "silver.readings")
COUNTED = """
  select e.n as events, r.n as readings from
    (select count(*) as n, max(bronze_batch) as newest from bronze.events) e,
    (select count(*) as n, max(bronze_batch) as newest from silver.readings) r where e.newest = r.newest
"""
"""One row, of two equal counts; between two snapshots there is none, or they differ."""
TWO_TABLES = f"select snapshot_id, events, readings from ops.this_snapshot, ({COUNTED})"


class Writer:
    """Appends to one table and then to the other, pins both, and makes large files of small ones now and then."""

    def __init__(self, plant: Plant) -> None:
        """With a first snapshot."""
        self._plant, self._stop, self._pinned = plant, threading.Event(), list[Snapshot]()
        self._thread = threading.Thread(target=self._write)
        self._append(0)

    def __enter__(self) -> "Writer":
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
            if self._stop.wait(2.0):
                return
            self._append(batch)
            if batch % 10 == 0:
                self._compact()

    def _append(self, batch: int) -> None:
        rows = pa.table({"bronze_batch": pa.array([batch] * 3, pa.int64())})
        for name in TABLES:
            write_deltalake(self._path(name), rows, mode="append")
        versions = {name: DeltaTable(self._path(name)).version() for name in TABLES}
        self._pinned.append(Snapshot(batch, datetime.now(UTC), 1, batch, versions, {}))
        SNAPSHOTS.append(Location(self._plant.lake), self._pinned[-1:])

    def _compact(self) -> None:
        for name in TABLES:
            table = DeltaTable(self._path(name))
            table.optimize.compact()
            kept = [snapshot.versions[name] for snapshot in self._pinned[-KEPT:]]
            table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, keep_versions=kept)
            DeltaTable(self._path(name)).create_checkpoint()
        DeltaTable(self._path(SNAPSHOTS.table)).optimize.compact()

    def _path(self, name: str) -> str:
        return str(self._plant.lake.joinpath(*name.split(".")))


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Writer, Plant]]:
    plant = Plant(tmp_path_factory.mktemp("torn"))
    with Writer(plant) as made:
        yield made, plant


def by_jdbc(plant: Plant, _: int) -> Iterator[Rows]:
    with Server(plant, "thrift-server") as server:
        yield from in_two_threads(lambda: sessions_of_jdbc(server, OF_BI // 2))


def sessions_of_jdbc(server: Server, reads: int) -> Iterator[Rows]:
    for _ in range(0, reads, A_SESSION):
        with Pyhive(server) as client:
            yield from (client.rows(TWO_TABLES) for _ in range(A_SESSION))


def by_notebook(plant: Plant, _: int) -> Iterator[Rows]:
    with Server(plant, "connect-server") as server:
        yield from in_two_threads(lambda: sessions_of_a_notebook(server, OF_BI // 2))


def sessions_of_a_notebook(server: Server, reads: int) -> Iterator[Rows]:
    with Notebook(server) as client:
        for _ in range(0, reads, A_SESSION):
            yield from (client.rows(TWO_TABLES) for _ in range(A_SESSION))
            client.asked(session="new")


def by_http(plant: Plant, reads: int) -> Iterator[Rows]:
    process = subprocess.Popen([*TIDEMARK, str(plant.folder / "conf"), "sql-server", "--port", "0"], stderr=subprocess.DEVNULL)
    try:
        until(lambda: address_of(Location(plant.lake)) is not None)
        address = address_of(Location(plant.lake))
        assert address is not None
        yield from in_two_threads(lambda: answers_of(ServerEngine(address), of_http(reads) // 2))
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def of_http(reads: int) -> int:
    return max(OF_BI, (reads - 2 * OF_BI) // 5)


def by_duckdb(plant: Plant, reads: int) -> Iterator[Rows]:
    conf, limits = load(plant.folder / "conf"), Limits()
    yield from in_two_threads(lambda: answers_of(DuckDbEngine(conf, limits), (reads - 2 * OF_BI - of_http(reads)) // 2))


def answers_of(engine: Engine, reads: int) -> Iterator[Rows]:
    for _ in range(reads):
        answer = engine.ask(Question(COUNTED))
        assert answer.snapshot is not None
        yield [[answer.snapshot.snapshot_id, *row.values()] for row in answer.rows.to_pylist()]


def in_two_threads(reads: Callable[[], Iterator[Rows]]) -> Iterator[Rows]:
    with ThreadPoolExecutor(2) as threads:
        for answers in threads.map(lambda _: list(reads()), range(2)):
            yield from answers


@pytest.mark.parametrize("read", [by_jdbc, by_notebook, by_http, by_duckdb])
def test_no_read_of_two_tables_is_torn(
    read: Callable[[Plant, int], Iterator[Rows]], writer: tuple[Writer, Plant], pytestconfig: pytest.Config
) -> None:
    at_first, began = writer[0].count, time.monotonic()
    answers = list(read(writer[1], pytestconfig.getoption("reads")))
    print(f"{len(answers)} reads in {time.monotonic() - began:.0f} s beside {writer[0].count - at_first} snapshots")
    assert len(answers) >= OF_BI
    assert [rows for rows in answers if len(rows) != 1 or rows[0][1] != rows[0][2] or rows[0][1] != 3 * (rows[0][0] + 1)] == []
    assert len({rows[0][0] for rows in answers}) >= 3
