"""The ledger: a job that follows silver.readings and accounts for every measurement of the bronze batches that silver has passed.

What is not among the readings goes to silver.quarantine, silver.late or silver.duplicates; one row a batch and source in ops.ledger
says how many went where. Each append carries the last batch of its range, so that a run after a crash finds the range that was begun in
the tables, and repeats exactly that: Delta refuses what is there already.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.engine.session import from_arrow
from orchestration.jobs import turned_away_few
from orchestration.jobs.ranges import Counts, Knowledge, Range, pieces, range_after
from orchestration.storage.ops_tables import LEDGER, LEDGER_FLOW, LEDGER_SCHEMA, MEASUREMENTS
from orchestration.storage.positions import accounted_for, passed_by_silver
from orchestration.storage.tables import FEW, append, append_rows
from silver import ledger as layer
from silver.readings import KEYS


def account_for_all(lake: Lake, knowledge: Callable[[Lake], Knowledge]) -> Iterator[int]:
    """Account for what silver has passed by now, range by range; yields the events of each once it is done."""
    passed = passed_by_silver(lake)
    while (batches := (begun := _begun(lake)) or _begin(lake, passed)) is not None:
        yield _account_for(lake, knowledge, batches, is_begun=begun is not None)


def counted(kinds: Mapping[str, DataFrame]) -> Counts:
    """How many rows of each kind, in one job."""
    rows = [rows.select(F.lit(kind).alias("kind"), "bronze_batch", "source") for kind, rows in kinds.items()]
    found = reduce(DataFrame.unionByName, rows).groupBy("kind", "bronze_batch", "source").count().collect()
    return Counter({(row.kind, row.bronze_batch, row.source): row["count"] for row in found})


def count_rows(counts: Counts) -> pa.Table:
    """As rows of ops.ledger."""
    batches = sorted({(batch, source) for _, batch, source in counts})
    kinds = ("events", *MEASUREMENTS)
    rows = [{"bronze_batch": batch, "source": source} | {kind: counts[kind, batch, source] for kind in kinds} for batch, source in batches]
    return pa.Table.from_pylist(rows, LEDGER_SCHEMA)


def _begun(lake: Lake) -> Range | None:
    """The range of which a run before this one wrote a part."""
    after, known = accounted_for(lake), (_appended(lake, f"silver.{name}") for name in ("quarantine", "late", "duplicates"))
    up_to = max(known)
    return Range(after, up_to) if up_to > after else None


def _begin(lake: Lake, passed: int | None) -> Range | None:
    after = accounted_for(lake)
    if passed is None or passed <= after:
        return None
    crash.point(crash.Point.LEDGER_BEGUN)
    return range_after(lake, after, passed)


def _account_for(lake: Lake, knowledge: Callable[[Lake], Knowledge], batches: Range, *, is_begun: bool) -> int:
    """Without Spark where all is readings, and with little of it where nearly all is: most of its time is planning."""
    events, counts = _looked_at(lake, "bronze.events", "events", batches)
    accepted, of_accepted = _looked_at(lake, "silver.readings", "readings", batches, "part", "parts")
    counts += of_accepted
    keys = layer.keys_not_yet_readings(events, accepted)
    if keys.num_rows:
        # What an account that did not end has written is compared by Spark.
        placed, few = None, None if is_begun else turned_away_few.read(lake, batches, keys)
        if few is not None:
            append_one = partial(_append_few, lake, batches)
            placed = turned_away_few.placed(lake, knowledge, batches, few, accepted=accepted, append=append_one)
        if placed is None:
            here = lake.interpreted() if events.num_rows <= FEW else lake
            placed = _placed(here, knowledge(here), batches, keys, is_begun=is_begun)
        counts += placed
    append_rows(lake.table_path(LEDGER), count_rows(counts), lake.app_id(LEDGER_FLOW, LEDGER), batches.up_to)
    return _total(counts, "events")


def _looked_at(lake: Lake, name: str, kind: str, batches: Range, *more: str) -> tuple[pa.Table, Counts]:
    """What identifies the event of each row of these batches, and `more`; and how many rows there are."""
    found = pa.concat_tables(pieces(lake, name, f"select {', '.join((*layer.OF_EVENT, *more))} from rows where {batches.sql()}"))
    sql = f"select bronze_batch, source, count(*) as n from rows where {batches.sql()} group by bronze_batch, source"
    rows = [row for piece in pieces(lake, name, sql) for row in piece.to_pylist()]
    return found, Counter({(kind, row["bronze_batch"], row["source"]): row["n"] for row in rows})


def _placed(lake: Lake, knowledge: Knowledge, batches: Range, keys: pa.Table, *, is_begun: bool) -> Counts:
    """To each of these events, of which not all is readings, what becomes of it. Few jobs, and none for a table that gets nothing."""
    events = layer.of_keys(batches.of(lake.read("bronze.events")), from_arrow(lake.spark, keys))
    measurements = layer.not_among(layer.judged(events, *knowledge), batches.of(lake.read("silver.readings")))
    if is_begun:
        measurements = layer.as_decided(measurements, batches.of(lake.read("silver.quarantine")))
    measurements = measurements.persist()
    try:
        turned_away = layer.turned_away(measurements)
        counts = counted({"quarantined": layer.broken(measurements), "turned away": turned_away})
        if _total(counts, "quarantined"):
            _append(lake, batches, "silver.quarantine", layer.quarantine(measurements, events))
        if _total(counts, "turned away"):
            counts += _sort_out(lake, batches, turned_away)
        return counts
    finally:
        measurements.unpersist()


def _sort_out(lake: Lake, batches: Range, turned_away: DataFrame) -> Counts:
    """Late rows and duplicates."""
    first, last = turned_away.agg(F.unix_micros(F.min("event_time")), F.unix_micros(F.max("event_time"))).collect()[0]
    readings = lake.read("silver.readings").where(F.col("bronze_batch") <= batches.up_to)
    late = lake.read("silver.late").where(F.col("bronze_batch") <= batches.after)  # not what an account that did not end wrote
    kept = reduce(DataFrame.unionByName, (rows.select(*KEYS, *layer.IDENTITY) for rows in (readings, late)))
    of_these_times = F.col("event_time").between(F.timestamp_micros(F.lit(first)), F.timestamp_micros(F.lit(last)))
    beside = layer.with_kept(turned_away, kept.where(of_these_times)).persist()
    try:
        kinds = {"late": layer.late(beside), "duplicates": layer.duplicates(beside)}
        counts = counted(kinds)
        for kind, rows in kinds.items():
            if _total(counts, kind):
                _append(lake, batches, f"silver.{kind}", rows)
    finally:
        beside.unpersist()
    return counts


def _total(counts: Counts, kind: str) -> int:
    return sum(count for (counted, _, _), count in counts.items() if counted == kind)


def _append(lake: Lake, batches: Range, name: str, rows: DataFrame) -> None:
    """By Spark, however few: payloads and names may be long."""
    append(rows.coalesce(1), lake.tables[name], lake.app_id(LEDGER_FLOW, name), batches.up_to)
    crash.point(crash.Point.LEDGER_TABLE_WRITTEN)


def _append_few(lake: Lake, batches: Range, name: str, rows: pa.Table) -> None:
    append_rows(lake.table_path(name), rows, lake.app_id(LEDGER_FLOW, name), batches.up_to)
    crash.point(crash.Point.LEDGER_TABLE_WRITTEN)


def _appended(lake: Lake, name: str) -> int:
    """The last batch of the newest range that reached a table; -1 for none."""
    batch = DeltaTable(lake.table_path(name)).transaction_version(lake.app_id(LEDGER_FLOW, name))
    return -1 if batch is None else batch
