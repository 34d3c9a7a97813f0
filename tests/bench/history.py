"""Does a batch, or a second `verify`, take longer as history grows? `make bench NAME=history`.

A small lake is made by a run. Rows from before it are then added to bronze, silver, gold and the ledger by DuckDB, as the flows would have
left them: 1,000 events a second of 200 devices, in pieces, each of one bronze batch. Streams pass them over, as their commit says that it
only moves rows. Then batches come, each in a fresh `tidemark run --once`, and `tidemark verify` after it.
"""

import argparse
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.storage.commit import append_rows, commit, file_shape
from orchestration.storage.data_files import DataFile, write_file
from orchestration.storage.delta import table_of
from orchestration.storage.ops_tables import LEDGER
from orchestration.storage.row_pieces import PIECE_ROWS, in_pieces
from orchestration.storage.tables import LakeStore
from orchestration.utc import to_micros
from tests.bench.factory import DEVICES, METRICS, STEP_SECONDS, write_conf
from tests.bench.growth import by_flow, show
from tests.bench.processes import timed
from tests.bench.script import REPOSITORY, all_layers, of, parser_for, progress, script, write_report

A_SECOND = DEVICES * len(METRICS)
ALIGNED = A_SECOND * STEP_SECONDS
"""Events of one window of all devices and metrics."""
START = datetime(2026, 6, 1, tzinfo=UTC)
PIECES = 20
OF_A_BATCH = 12_000
"""Events of a file that is a bronze batch of its own: of more than 1 MiB."""
OF_A_FILE = 84 * ALIGNED
FIRST_ROW = 1_000_000_000
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


def land(folder: Path, first: int, count: int) -> None:
    """Land events from START on, of these numbers."""
    with duckdb.connect() as store:
        values = {"begin": to_micros(START), "first": first, "last": first + count}
        lines = store.execute(f"select {LINE} from ({EVENTS})", values).fetchall()
    landing = folder / "landing"
    landing.mkdir(exist_ok=True)
    draft = landing / f".{first:012d}"
    draft.write_text("".join(f"{line}\n" for (line,) in lines), encoding="utf-8")
    draft.rename(landing / f"{first:012d}.json")


def main() -> int:
    options = _options()
    folder = options.work / "history"
    shutil.rmtree(folder, ignore_errors=True)
    conf = write_conf(folder, options.driver_memory, options.cores, max_batch_bytes=1 << 20)
    for number in range(PIECES):
        land(folder, number * OF_A_BATCH, OF_A_BATCH)
    all_layers(conf, folder / "run.log")
    history, landed = History(load(conf)), PIECES * OF_A_BATCH
    rows = list[dict[str, Any]]()
    for events in options.history:
        _extend(history, conf, folder, events)
        for _ in range(options.repeats):
            land(folder, landed, options.batch)
            landed += options.batch
            rows.append({"history": history.count} | _measured(conf, folder))
    show(rows)
    write_report(options, {"batch_events": options.batch, "rows": rows})
    return 0


def _options() -> argparse.Namespace:
    parser = parser_for(__doc__, "bench-history")
    parser.add_argument("--history", type=int, nargs="+", default=[1_000_000, 100_000_000], help="events, rising")
    parser.add_argument("--batch", type=int, default=20_000, help="events of a measured batch")
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def _extend(history: History, conf: Path, folder: Path, events: int) -> None:
    """Add pieces until there are so many events, and prove each: all at once would be long in memory."""
    piece = max(1, (events - history.count) // PIECES // ALIGNED) * ALIGNED
    for batch in range(PIECES):
        if history.count >= events:
            return
        began = time.monotonic()
        history.add(piece, batch)
        made = time.monotonic() - began
        proof = timed([*of(conf), "verify"], REPOSITORY, folder / "verify.log")
        progress.log(f"{history.count:,} events: {piece:,} made in {made:.1f} s, proved in {proof.seconds:.1f} s")


def _measured(conf: Path, folder: Path) -> dict[str, float]:
    run = all_layers(conf, folder / "run.log")
    second = timed([*of(conf), "verify"], REPOSITORY, folder / "verify.log")
    return {"seconds": run.seconds, "cpu": run.cpu_seconds} | by_flow(folder / "run.log") | {"verify": second.seconds}


if __name__ == "__main__":
    script(main)
