"""The ledger: a job that follows silver.readings and accounts for every measurement of the bronze batches that silver has passed.

What is not among the readings goes to silver.quarantine, silver.late or silver.duplicates; one row a batch and source in ops.ledger
says how many went where. Each append carries the last batch of its range, so that a run after a crash finds the range that was begun in
the tables, and repeats exactly that: Delta refuses what is there already.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.jobs.account.measurements import (
    Counts,
    append_once,
    count_rows,
    find_kept,
    judged_events,
    of_events,
    rows_of,
    scratch_file,
)
from orchestration.jobs.ranges import Range, pieces, range_after
from orchestration.storage.commit import append_rows
from orchestration.storage.delta import written_by
from orchestration.storage.ops_tables import COUNTED, LEDGER, LEDGER_FLOW, LEDGER_SCHEMA
from orchestration.storage.positions import accounted_for, passed_by_silver
from orchestration.storage.row_pieces import merged
from orchestration.storage.silver_inputs import former_configs
from silver import account

TABLES = ("silver.quarantine", "silver.late", "silver.duplicates")


def account_for_all(lake: Lake) -> Iterator[int]:
    """Account for what silver has passed by now, range by range; yields the events of each once it is done."""
    passed = passed_by_silver(lake)
    while (batches := (pending := _pending(lake)) or _begin(lake, passed)) is not None:
        yield _account_for(lake, batches, is_pending=pending is not None)


def as_rows(counts: Counts) -> pa.Table:
    batches = sorted({(batch, source) for _, batch, source in counts})
    rows = [
        {"bronze_batch": batch, "source": source} | {kind: counts[kind, batch, source] for kind in COUNTED} for batch, source in batches
    ]
    return pa.Table.from_pylist(rows, LEDGER_SCHEMA)


def _pending(lake: Lake) -> Range | None:
    """The range of which a run before this one wrote a part."""
    after = accounted_for(lake)
    up_to = max(written_by(lake.table_path(name), lake.app_id(LEDGER_FLOW, name)) for name in TABLES)
    return Range(after, up_to) if up_to > after else None


def _begin(lake: Lake, passed: int | None) -> Range | None:
    after = accounted_for(lake)
    if passed is None or passed <= after:
        return None
    crash.point(crash.Point.LEDGER_BEGUN)
    return range_after(lake, after, passed)


def _account_for(lake: Lake, batches: Range, *, is_pending: bool = False) -> int:
    counts: Counts = Counter()

    def counted(kind: str, table: str, *columns: str) -> Iterator[pa.Table]:
        for piece in pieces(lake, table, f"select {', '.join((*account.OF_EVENT, 'source', *columns))} from rows where {batches.sql()}"):
            counts.update(count_rows(kind, piece))
            yield piece.drop_columns("source")

    events = pa.concat_tables(counted("events", "bronze.events"))
    incomplete = account.incomplete(events, counted("readings", "silver.readings", "parts"))
    del events
    if len(incomplete):
        with TemporaryDirectory(prefix="tidemark-") as scratch:
            counts += _Account(lake, batches, incomplete, Path(scratch), is_pending).write()
    append_rows(lake.table_path(LEDGER), as_rows(counts), lake.app_id(LEDGER_FLOW, LEDGER), batches.up_to)
    return sum(count for (kind, _, _), count in counts.items() if kind == "events")


@dataclass
class _Account:
    """The account of the events `incomplete` (OF_EVENT) of a range, of which not every measurement is a reading."""

    lake: Lake
    batches: Range
    incomplete: pa.Table
    scratch: Path
    is_pending: bool

    def write(self) -> Counts:
        """To each measurement what becomes of it; nothing to a table that gets nothing. Quarantine first: see account.split_as_decided."""
        good, with_kept = self.scratch / "good", self.scratch / "with_kept"
        with scratch_file(good) as add:
            counts = self._append("silver.quarantine", self._quarantine(add))
        # Of late rows not what an account that did not end wrote.
        stored = {"silver.readings": f"bronze_batch <= {self.batches.up_to}", "silver.late": f"bronze_batch <= {self.batches.after}"}
        find_kept(self.lake, good, with_kept, stored)
        counts += self._append("silver.late", map(account.late, rows_of(with_kept)))
        return counts + self._append("silver.duplicates", map(account.duplicates, rows_of(with_kept)))

    def _append(self, name: str, rows: Iterable[pa.Table]) -> Counts:
        counts = append_once(self.lake, name, rows, self.lake.app_id(LEDGER_FLOW, name), self.batches.up_to)
        if counts:
            crash.point(crash.Point.LEDGER_TABLE_WRITTEN)
        return counts

    def _quarantine(self, add_good: Callable[[pa.Table], None]) -> Iterator[pa.Table]:
        """Rows for silver.quarantine; good measurements go to `add_good`."""
        split, former = account.split, former_configs(self.lake, self.batches.after)
        if self.is_pending:
            recorded = pa.concat_tables(self._of_events("silver.quarantine", account.IDENTITY))
            split = partial(account.split_as_decided, quarantined=recorded)
        readings = pa.concat_tables(self._of_events("silver.readings", account.IDENTITY, "parts is null or parts <> 1"))
        for events in filter(len, merged(self._of_events("bronze.events", "*"))):
            for measurements in judged_events(self.lake, events, former):
                broken, good = split(account.without_readings(measurements, readings))
                add_good(good)
                if len(broken):  # it reads all payloads of these events
                    yield from account.quarantine(broken, events)

    def _of_events(self, name: str, columns: Iterable[str], where: str = "true") -> Iterator[pa.Table]:
        return of_events(self.lake, name, columns, f"{self.batches.sql()} and ({where})", self.incomplete)
