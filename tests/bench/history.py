"""Does a batch, or a second `verify`, take longer as history grows? `make bench NAME=history`.

For each length of history a small lake is made by a run. Rows from before it are added to bronze, silver, gold and the ledger by DuckDB,
as the flows would have left them: 1,000 events a second of 200 devices, in pieces, each of one bronze batch. Streams pass them over, as
their commit says that it only moves rows. Then batches come, lake by lake in turn, each in a fresh `tidemark run --once`, and `tidemark
verify` after it. Of a batch one event in fifty was there before, and 200 are late by a quarter of an hour. The first round is not measured:
it seals what was added.

At last three things are made wrong in the longest history, one after the other. `verify` must find each, and nothing once all are undone.
"""

import argparse
import json
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.location import Location
from orchestration.storage.commit import append_rows, commit, file_shape
from orchestration.storage.data_files import DataFile, write_file
from orchestration.storage.delta import added, files_of, open_table, table_of
from orchestration.storage.ops_tables import LEDGER
from orchestration.storage.row_digest import INFO, row_digest
from orchestration.storage.row_pieces import PIECE_ROWS, in_pieces
from orchestration.storage.tables import LakeStore
from orchestration.utc import to_micros
from tests.bench.factory import DEVICES, METRICS, STEP_SECONDS, write_conf
from tests.bench.growth import by_flow, show
from tests.bench.processes import FailedError, timed
from tests.bench.script import REPOSITORY, all_layers, by_turns, of, parser_for, progress, script, write_report

A_SECOND = DEVICES * len(METRICS)
ALIGNED = A_SECOND * STEP_SECONDS
"""Events of one window of all devices and metrics."""
START = datetime(2026, 6, 1, tzinfo=UTC)
PIECES = 20
OF_A_BATCH = 12_000
"""Events of a file that is a bronze batch of its own: of more than 1 MiB."""
OF_A_FILE = 84 * ALIGNED
FIRST_ROW = 1_000_000_000
LATE_SECONDS, REPEATED = 900, 50
KINDS = {"humidity": "latest", "vibration": "max", "pressure": "min"}
EVENTS = f"""
  select i, make_timestamp($begin + i // {A_SECOND} * 1000000) as event_time, {[*METRICS]}[i % {len(METRICS)} + 1] as metric,
    'sim-' || lpad((i % {A_SECOND} // {len(METRICS)} + 1)::varchar, 4, '0') as device_id,
    round(20 + (i * 7919 + i // 1000 * 31) % 1000 / 100, 2) as value
  from (select unnest(range($first, $last)) as i)
"""
"""For each second since the instant `begin` one event of each device and metric, by number."""
LINE = """
  '{"device":"' || device_id || '","metric":"' || metric || '","value":' || value
    || ',"ts":"' || strftime(event_time, '%Y-%m-%dT%H:%M:%SZ') || '"}'
"""
BRONZE = f"select b.*, encode({LINE}) as payload, i + $row as bronze_row from ({EVENTS}) cross join of_batch b"
SILVER = f"select d.*, event_time, value, i + $row as bronze_row from ({EVENTS}) e join declared d using (device_id, metric)"
AGGREGATES = f"""
  select unnest(any_value(groups)) as device_group, device_id, metric, date_trunc('minute', event_time) as window_start,
    window_start + interval 1 minute as window_end, count(*) as count, min(value) as min, max(value) as max, sum(value) as sum,
    arg_max(value, event_time) as latest, 0 as revision, 0 as gold_batch, null as carry,
    case metric {" ".join(f"when '{metric}' then {kind}" for metric, kind in KINDS.items())} else sum / count end as value
  from ({SILVER}) group by device_id, metric, window_start
"""
FEATURES = ", ".join(f"any_value(value) filter (metric = '{metric}')" for metric in METRICS)
VECTORS = f"""
  select device_group, device_id as entity, window_start, window_end, [{FEATURES}] as vector, []::varchar[] as missing,
    []::varchar[] as filled, 0 as revision, 0 as gold_batch
  from ({AGGREGATES}) group by device_group, device_id, window_start, window_end
"""
TABLES = {"bronze.events": BRONZE, "silver.readings": SILVER, "gold.aggregates": AGGREGATES, "gold.vectors": VECTORS}


class History:
    """Rows from before the first ones of a lake that a run has made. `count`: of events."""

    def __init__(self, made: Conf) -> None:
        self._lake, self.count = LakeStore(made), 0
        self._store = duckdb.connect(config={"memory_limit": "2GB"})
        for name in ("bronze.events", "silver.readings"):
            self._store.register(name.partition(".")[2], table_of(self._lake.table_path(name)))

    def add(self, events: int, batch: int) -> None:
        """Put so many more events, a multiple of ALIGNED, before those that are there, as rows of a bronze batch that is there."""
        of_batch = f"select * exclude (payload, bronze_row) from events where bronze_batch = {batch} limit 1"
        self._store.execute(f"create or replace temp table of_batch as {of_batch}")
        lineage = f"{batch}::bigint as bronze_batch, (select ingested_at from of_batch) as ingested_at"
        declared = f"select distinct on (device_id, metric) * exclude (value, event_time, bronze_row) replace ({lineage}) from readings"
        self._store.execute(f"create or replace temp table declared as {declared}")
        self.count += events
        for name, sql in TABLES.items():
            files = [self._file(name, sql, first, min(first + OF_A_FILE, events)) for first in range(0, events, OF_A_FILE)]
            commit(self._lake.table_path(name), files, is_rearranged=True)
        ledger = self._lake.table_path(LEDGER)
        schema = table_of(ledger).schema
        counts = {"bronze_batch": batch, "source": "plant", "events": events, "readings": events}
        append_rows(ledger, pa.Table.from_pylist([dict.fromkeys(schema.names, 0) | counts], schema))

    def _file(self, name: str, sql: str, first: int, last: int) -> DataFile:
        shape = file_shape(self._lake.table_path(name))
        begin = to_micros(START) - self.count // A_SECOND * 1_000_000
        values = {"begin": begin, "first": first, "last": last, "row": FIRST_ROW + self.count}
        rows = self._store.sql(f"select {', '.join(shape.columns.names)} from ({sql})", params=values).to_arrow_reader(PIECE_ROWS)
        file = write_file(shape, in_pieces(rows, shape.columns))
        assert file is not None
        return file


@dataclass(frozen=True)
class Verified:
    """A `tidemark verify`. `again`: events that were computed again; None for all. `wrong`: tables with differences."""

    seconds: float
    cpu: float
    again: int | None
    wrong: set[str]


def verified(conf: Path) -> Verified:
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*of(conf), "verify", "--format", "json"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise FailedError(done.stderr)
    told = re.search(r"computed again: ([\d,]+) events", done.stderr)
    again = int(told[1].replace(",", "")) if told else None
    wrong = {row["table"] for row in json.loads(done.stdout) if row["differences"]}
    return Verified(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, again, wrong)


def land(folder: Path, name: str, lines: Iterable[str]) -> None:
    landing = folder / "landing"
    landing.mkdir(exist_ok=True)
    draft = landing / f".{name}"
    draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    draft.rename(landing / f"{name}.json")


def lines_of(first: int, last: int) -> list[str]:
    """Events from START on, of these numbers."""
    with duckdb.connect() as store:
        values = {"begin": to_micros(START), "first": first, "last": last}
        return [line for (line,) in store.execute(f"select {LINE} from ({EVENTS})", values).fetchall()]


def late_line(device: int, at: datetime) -> str:
    """An event between two whole seconds, at which no other one is."""
    return json.dumps({"device": f"sim-{device:04d}", "metric": "temperature", "value": 99.5, "ts": f"{at:%Y-%m-%dT%H:%M:%S}.5Z"})


def batch(folder: Path, first: int, count: int) -> int:
    """Land a batch: new events, some that were there before, and late ones; tells how many."""
    late_at = START + timedelta(seconds=first // A_SECOND - LATE_SECONDS)
    lines = [*lines_of(first - count // REPEATED, first + count), *(late_line(device, late_at) for device in range(1, DEVICES + 1))]
    land(folder, f"{first:012d}", lines)
    return len(lines)


def main() -> int:
    options = _options()
    lakes = {events: _lake(options, events) for events in options.history}
    measured = by_turns({events: lakes[events].measured for events in lakes}, 1 + options.repeats)
    rows = [{"history": lakes[events].history.count} | row for events in lakes for row in measured[events][1:]]
    show(rows)
    for events, lake in lakes.items():
        run = timed([*of(lake.conf), "ledger"], REPOSITORY, lake.folder / "ledger.log")
        progress.log(f"ledger of {events:,}: {run.seconds:.1f} s, {run.cpu_seconds:.1f} s of CPU")
    faults = _faults(lakes[max(lakes)])
    report = {name: vars(one) | {"wrong": sorted(one.wrong)} for name, one in faults.items()}
    write_report(options, {"batch_events": options.batch, "rows": rows, "faults": report})
    return 0


def _options() -> argparse.Namespace:
    parser = parser_for(__doc__, "bench-history")
    parser.add_argument("--history", type=int, nargs="+", default=[1_000_000, 100_000_000], help="events, rising")
    parser.add_argument("--batch", type=int, default=20_000, help="events of a measured batch")
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


@dataclass
class Lake:
    """A lake with a history. `landed`: events from START on. `batch`: events of a measured batch."""

    folder: Path
    conf: Path
    history: History
    landed: int
    batch: int

    def extend(self, events: int) -> None:
        """Add pieces until there are so many events, and prove each: all at once would be long in memory."""
        piece = max(1, (events - self.history.count) // PIECES // ALIGNED) * ALIGNED
        for number in range(PIECES):
            if self.history.count >= events:
                return
            began = time.monotonic()
            self.history.add(piece, number)
            made, proof = time.monotonic() - began, verified(self.conf)
            assert not proof.wrong, proof
            progress.log(f"{self.history.count:,} events: {piece:,} made in {made:.1f} s, proved in {proof.seconds:.1f} s")

    def measured(self) -> dict[str, float]:
        landed = batch(self.folder, self.landed, self.batch)
        self.landed += self.batch
        run, proof = all_layers(self.conf, self.folder / "run.log"), verified(self.conf)
        assert not proof.wrong and proof.again == landed, proof
        seconds = {"seconds": run.seconds, "cpu": run.cpu_seconds} | by_flow(self.folder / "run.log")
        return seconds | {"verify": proof.seconds, "verify cpu": proof.cpu}


def _lake(options: argparse.Namespace, events: int) -> Lake:
    folder = options.work / f"history-{events}"
    shutil.rmtree(folder, ignore_errors=True)
    conf = write_conf(folder, options.driver_memory, options.cores, max_batch_bytes=1 << 20)
    for number in range(PIECES):
        first = number * OF_A_BATCH
        land(folder, f"{first:012d}", lines_of(first, first + OF_A_BATCH))
    all_layers(conf, folder / "run.log")
    lake = Lake(folder, conf, History(load(conf)), PIECES * OF_A_BATCH, options.batch)
    lake.extend(events)
    return lake


def _faults(lake: Lake) -> dict[str, Verified]:
    """Plant late rows that change no window, a changed byte of an old file, and a compaction that changes a row."""
    store, half = LakeStore(load(lake.conf)), timedelta(seconds=lake.history.count // A_SECOND // 2)
    land(lake.folder, "late", [late_line(1, START - half), late_line(1, START)])
    all_layers(lake.conf, lake.folder / "run.log")
    progress.log(f"late by half of the history, and by minutes: {by_flow(lake.folder / 'run.log')}")
    planted = {"late row": ("gold.aggregates", _without_amendment), "old file": ("silver.readings", _changed_byte)}
    found = {}
    for name, (table, plant) in (planted | {"compaction": ("silver.readings", _wrong_compaction)}).items():
        undo = plant(store.table_path(table))
        found[name] = verified(lake.conf)
        undo()
        progress.log(f"{name}: {found[name]}")
        assert any(wrong.startswith(table.partition(".")[0]) for wrong in found[name].wrong), name
    assert not verified(lake.conf).wrong
    return found


def _without_amendment(path: Location) -> Callable[[], object]:
    """Take the newest file of gold away, which has the windows of late rows."""
    table = DeltaTable(path.local)
    commit(path, [], removed=[_file_of(path, added(path, table.version())[0]["path"])])
    return partial(DeltaTable(path.local).restore, table.version())


def _changed_byte(path: Location) -> Callable[[], object]:
    """Change a byte in the middle of the largest file."""
    file = _largest(path)
    before = file.read_bytes()
    middle = len(before) // 2
    file.write_bytes(before[:middle] + bytes([before[middle] ^ 1]) + before[middle + 1 :])
    return partial(file.write_bytes, before)


def _wrong_compaction(path: Location) -> Callable[[], object]:
    """Write the largest file anew with another value in its first row, and the digest that it should have."""
    table, shape, file = DeltaTable(path.local), file_shape(path), _largest(path)
    digest = row_digest({path / file.name: file.stat().st_size}, shape.columns)
    changed = write_file(shape, (_changed(rows) if not n else rows for n, rows in enumerate(_pieces(file, shape.columns))))
    assert changed is not None
    commit(path, [changed], removed=[_file_of(path, file.name)], info={INFO: digest}, is_rearranged=True)
    return partial(DeltaTable(path.local).restore, table.version())


def _pieces(file: Path, columns: pa.Schema) -> Iterator[pa.Table]:
    return (pa.Table.from_batches([batch]).cast(columns) for batch in pq.ParquetFile(file).iter_batches(PIECE_ROWS))


def _changed(rows: pa.Table) -> pa.Table:
    values = pa.array([rows["value"][0].as_py() + 1, *rows["value"][1:].to_pylist()])
    return rows.set_column(rows.schema.get_field_index("value"), rows.schema.field("value"), values)


def _largest(path: Location) -> Path:
    return max((path.local / name for name in files_of(open_table(path))), key=lambda file: file.stat().st_size)


def _file_of(path: Location, name: str) -> DataFile:
    return DataFile(name, (path.local / name).stat().st_size, 0, "", 0)


if __name__ == "__main__":
    script(main)
