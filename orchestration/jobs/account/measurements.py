"""Measurements of events by today's rules, and rows that wait in a file until they are needed: what account and retry share.

Nothing here is bounded by how much there is: events come in pieces, and whatever is made of them is in a folder of scratch files.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from bronze.schema import INSTANT
from orchestration.engine.lake import Lake
from orchestration.jobs.ranges import pieces
from orchestration.storage.commit import append_pieces
from orchestration.storage.delta import instant
from orchestration.storage.ops_tables import CONFLICTS
from orchestration.storage.row_pieces import in_pieces
from orchestration.storage.silver_inputs import reference_data, silver_config
from silver import account
from silver.judging import judged
from silver.policy import FormerConfig

KEYS_AT_ONCE = 250_000
"""Good measurements that are no readings, of which it is found out at once which ones are late."""
BATCH_ROWS = 8_192
Counts = Counter[tuple[str, int, str]]
"""Counts by kind, bronze batch and source."""


def judged_events(lake: Lake, events: pa.Table, former: Sequence[FormerConfig] = (), devices: pa.Table | None = None) -> Iterator[pa.Table]:
    """Every measurement of these events, with the rules that it breaks; in pieces. Without Spark.

    By today's rules; by those of `former` where bronze came while another conf ran. `devices`: rows of silver.devices instead of those
    that count.
    """
    if len(events):
        recorded = reference_data(lake)
        counting = recorded if devices is None else recorded._replace(devices=devices)
        yield from judged(events, counting, silver_config(lake.conf), former)


def of_events(lake: Lake, name: str, columns: Iterable[str], where: str, events: pa.Table) -> Iterator[pa.Table]:
    """Rows of a table, in pieces, that are of these events (OF_EVENT). `where`: SQL by which files are skipped."""
    for piece in pieces(lake, name, f"select {', '.join(columns)} from rows where {where}"):
        yield account.among(piece, account.OF_EVENT, events)


@contextmanager
def scratch_file(file: Path) -> Iterator[Callable[[pa.Table], None]]:
    """Inside, tables are added to the file, which is there if there is any row."""
    writers: list[pq.ParquetWriter] = []

    def add(rows: pa.Table) -> None:
        if len(rows):
            if not writers:
                file.parent.mkdir(parents=True, exist_ok=True)
                writers.append(pq.ParquetWriter(file, rows.schema))
            writers[0].write_table(rows)

    try:
        yield add
    finally:
        for writer in writers:
            writer.close()


def rows_of(file: Path, where: pc.Expression | None = None, columns: list[str] | None = None) -> Iterator[pa.Table]:
    """Rows of a scratch file, or of a folder of them, in pieces; none where it is not there."""
    if file.exists():
        rows = ds.dataset(file, format="parquet")
        # In small steps, as names may be long: by itself Arrow reads millions of rows ahead.
        scanner = rows.scanner(columns, filter=where, batch_size=BATCH_ROWS, batch_readahead=4, fragment_readahead=1)
        yield from filter(len, in_pieces(scanner.to_batches(), scanner.projected_schema))


def find_kept(lake: Lake, good: Path, with_kept: Path, stored: Mapping[str, str]) -> None:
    """The rows of the file `good`, which are no readings, with the identity of the measurement that is kept of their key: file `with_kept`.

    `stored`: of which rows (SQL) of which tables of silver one may be it. Each span of event times is read once.
    """
    times = [chunk for rows in rows_of(good, columns=["event_time"]) for chunk in rows["event_time"].chunks]
    with scratch_file(with_kept) as add:
        for first, last in account.spans(pa.chunked_array(times, INSTANT), KEYS_AT_ONCE):
            least, greatest = (pc.scalar(pa.scalar(micros, pa.int64()).cast(INSTANT)) for micros in (first, last))
            of_span = (pc.field("event_time") >= least) & (pc.field("event_time") <= greatest)
            kept = account.kept_of_keys(rows_of(good, of_span), _stored(lake, stored, first, last))
            for rows in rows_of(good, of_span):
                add(account.with_kept(rows, kept))


def _stored(lake: Lake, stored: Mapping[str, str], first: int, last: int) -> Iterator[pa.Table]:
    columns, in_span = ", ".join(account.KEY_AND_IDENTITY), f"event_time between {instant(first)} and {instant(last)}"
    for name, condition in stored.items():
        yield from pieces(lake, name, f"select {columns} from rows where {condition} and {in_span}")


def append_once(lake: Lake, name: str, rows: Iterable[pa.Table], app_id: str, version: int) -> Counts:
    """Append rows in one commit, without Spark; none for no rows. Counts them by kind also where they were appended before."""
    counts: Counts = Counter()

    def counted() -> Iterator[pa.Table]:
        for piece in filter(len, rows):
            counts.update(count_by_kind(name, piece))
            yield piece

    stream = counted()
    if (first := next(stream, None)) is not None:
        append_pieces(lake.table_path(name), chain([first], stream), app_id, version)
    for _ in stream:
        pass
    return counts


def count_by_kind(name: str, rows: pa.Table) -> Counts:
    """How many rows of a table of silver are of each kind of the ledger, by bronze batch and source."""
    if name == "silver.quarantine":
        is_nothing = account.measures_nothing(rows)
        defects = count_rows("quarantined", rows.filter(pc.invert(is_nothing)))
        return defects + count_rows("without_measurements", rows.filter(is_nothing))
    conflicts = count_rows(CONFLICTS, rows.filter(rows["is_conflict"])) if name == "silver.duplicates" else Counter()
    return count_rows(name.removeprefix("silver."), rows) + conflicts


def count_rows(kind: str, rows: pa.Table) -> Counts:
    """How many there are of each bronze batch and source."""
    counted = rows.select(["bronze_batch", "source"]).group_by(["bronze_batch", "source"]).aggregate([([], "count_all")])
    return Counter({(kind, row["bronze_batch"], row["source"]): row["count_all"] for row in counted.to_pylist()})
