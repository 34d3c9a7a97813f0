"""The account of silver: every measurement of a bronze batch that is not among the readings is in quarantine, late or a duplicate.

Pure, of Arrow tables. By identity (bronze_batch, bronze_row, part), never by Spark's count of dropped rows, which says 1 for 10.
"Measurements" are rows of silver.judging.judged. Whoever calls brings them in pieces that fit in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from silver.schema import KEYS, READING_COLUMNS, SOMETHING_IS_MEASURED

IDENTITY = ["bronze_batch", "bronze_row", "part"]
KEPT = ["kept_batch", "kept_row", "kept_part"]
KEPT_AND_VALUE = [*KEPT, "kept_value"]
OF_EVENT = ["bronze_batch", "bronze_row"]
KEY_AND_IDENTITY = [*KEYS, *IDENTITY, "value"]
BROKEN_COLUMNS = ["broken_rules", *KEYS, "value", "source", "ingested_at", *IDENTITY, "parts"]
DUPLICATE_COLUMNS = [*KEYS, "value", "source", "ingested_at", *IDENTITY, "parts", *KEPT, "is_conflict"]
OF_QUARANTINED_EVENT = ["payload", "header", "position", "received_at"]
MAX_QUARANTINE_BYTES = 32 * 1024 * 1024


def among(rows: pa.Table, columns: Sequence[str], others: pa.Table, how: str = "left semi") -> pa.Table:
    """Rows, in their order, that agree in `columns` with one of `others`; with none of them where `how` is "left anti"."""
    return rows.take(joined(rows, columns, others.select(columns), how)["place"])


def incomplete(events: pa.Table, readings: Iterable[pa.Table]) -> pa.Table:
    """OF_EVENT of events of which not every measurement is among `readings`, those of the same batches. Rules need look at no others."""
    complete, counts = [events.select(OF_EVENT).slice(0, 0)], []
    for piece in readings:
        complete.append(piece.filter(pc.field("parts") == 1).select(OF_EVENT))
        counts.append(piece.filter(pc.field("parts") > 1).group_by([*OF_EVENT, "parts"]).aggregate([([], "count_all")]))
    if counts:
        of_many = pa.concat_tables(counts).group_by([*OF_EVENT, "parts"]).aggregate([("count_all", "sum")])
        complete.append(of_many.filter(pc.field("count_all_sum") == pc.field("parts")).select(OF_EVENT))
    return events.select(OF_EVENT).join(pa.concat_tables(complete), keys=OF_EVENT, join_type="left anti")


def without_readings(measurements: pa.Table, readings: pa.Table) -> pa.Table:
    """Measurements that are not among `readings` of the same events: a reading stays one, also under other rules than when it came. An
    event of one part that is incomplete has none."""
    return among(measurements, IDENTITY, readings, "left anti")


def split(measurements: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Measurements that break a rule (BROKEN_COLUMNS), and good ones (READING_COLUMNS): if they are no readings, late or duplicates."""
    is_good = pc.equal(pc.list_value_length(measurements["broken_rules"]), 0)
    return measurements.filter(pc.invert(is_good)).select(BROKEN_COLUMNS), measurements.filter(is_good).select(READING_COLUMNS)


def split_as_decided(measurements: pa.Table, quarantined: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The same for an account that was begun and not ended: broken is what `quarantined`, rows of silver.quarantine, has. Quarantine is
    written first, and rules may have changed since."""
    broken, good = (among(measurements, IDENTITY, quarantined, how) for how in ("left semi", "left anti"))
    return broken.select(BROKEN_COLUMNS), good.select(READING_COLUMNS)


def measures_nothing(quarantined: pa.Table) -> pa.ChunkedArray:
    """Whether a row of quarantine is no defect, but an event of a healthy device without measurements."""
    rules = quarantined["broken_rules"].cast(pa.list_(pa.string()))  # from Spark it comes as one of no nulls
    return pc.equal(pc.binary_join(rules, ","), SOMETHING_IS_MEASURED)


def quarantine(broken: pa.Table, events: pa.Table) -> Iterator[pa.Table]:
    """Rows of silver.quarantine, in pieces: one for each measurement, with the payload of its event. `events`: all that are asked for."""
    numbered = events.select(OF_EVENT).append_column("event", pa.array(np.arange(len(events))))
    places = joined(broken, OF_EVENT, numbered)["event"].combine_chunks()
    of_event = events.select(OF_QUARANTINED_EVENT).combine_chunks()
    lengths = pc.add(pc.binary_length(of_event["payload"]), pc.fill_null(pc.binary_length(of_event["header"]), 0))
    rows = broken.append_column("event", places)
    for piece in _slices(rows, lengths.take(places), MAX_QUARANTINE_BYTES):
        yield _beside(piece.drop_columns("event"), of_event.take(piece["event"]))


def spans(times: pa.ChunkedArray, most: int) -> list[tuple[int, int]]:
    """The first and last event time, in microseconds since 1970, of pieces with `most` of these; more where they are of one instant."""
    ordered = np.sort(times.cast(pa.int64()).to_numpy())
    starts = np.unique(ordered[::most]).tolist()
    return [(first, following - 1) for first, following in pairwise([*starts, int(ordered[-1]) + 1])] if starts else []


def kept_of_keys(rows: Iterable[pa.Table], stored: Iterable[pa.Table]) -> pa.Table:
    """For each key (KEYS) of `rows` the measurement that is kept (KEPT_AND_VALUE): that among `stored`, else the first of `rows`. `stored`:
    readings and late rows of these batches and those before, KEY_AND_IDENTITY."""
    firsts = _first_of_key(rows)
    before = _first_of_key(among(piece.select(KEY_AND_IDENTITY), KEYS, firsts) for piece in stored).rename_columns([*KEYS, *KEPT_AND_VALUE])
    pairs = firsts.join(before, keys=KEYS)
    of_kept = [pc.coalesce(pairs[alias], pairs[name]) for alias, name in zip(KEPT_AND_VALUE, (*IDENTITY, "value"), strict=True)]
    return _beside(pairs.select(KEYS), pa.table(of_kept, names=KEPT_AND_VALUE))


def with_kept(rows: pa.Table, kept: pa.Table) -> pa.Table:
    """Good rows that are no readings with KEPT_AND_VALUE, as `kept_of_keys` says."""
    return _beside(rows, joined(rows, KEYS, kept).select(KEPT_AND_VALUE))


def late(rows: pa.Table, retry: int | None = None) -> pa.Table:
    """Rows of silver.late: of rows with the kept one those that are it, as nobody else has their key. `retry`: of that number."""
    kept = rows.filter(_is_kept()).select(READING_COLUMNS)
    return _of_retry(kept.append_column("cause", pa.repeat("late" if retry is None else "retried", len(kept))), retry)


def duplicates(rows: pa.Table, retry: int | None = None) -> pa.Table:
    """Rows of silver.duplicates: of rows with the kept one all the others."""
    others = rows.filter(~_is_kept())
    others = others.append_column("is_conflict", pc.not_equal(others["value"], others["kept_value"]))
    return _of_retry(others.select(DUPLICATE_COLUMNS), retry)


def _first_of_key(pieces: Iterable[pa.Table]) -> pa.Table:
    """KEY_AND_IDENTITY, one of each key."""
    firsts = [_first(piece.select(KEY_AND_IDENTITY)) for piece in pieces]
    return firsts[0] if len(firsts) == 1 else _first(pa.concat_tables(firsts))


def _first(rows: pa.Table) -> pa.Table:
    ordered = rows.sort_by([(name, "ascending") for name in IDENTITY])
    firsts = ordered.group_by(KEYS, use_threads=False).aggregate([(name, "first") for name in (*IDENTITY, "value")])
    return firsts.rename_columns(KEY_AND_IDENTITY)


def _is_kept() -> pc.Expression:
    batch, row, part = (pc.field(name) == pc.field(alias) for name, alias in zip(IDENTITY, KEPT, strict=True))
    return batch & row & part


def _of_retry(rows: pa.Table, number: int | None) -> pa.Table:
    return rows.append_column("retry", pa.array([number] * len(rows), pa.int64()))


def _slices(rows: pa.Table, sizes: pa.ChunkedArray, most: int) -> Iterator[pa.Table]:
    """Rows one after the other, in pieces of about `most`; one row that is larger is a piece."""
    number = np.cumsum(sizes.to_numpy(zero_copy_only=False), dtype=np.int64) // most
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    for first, following in pairwise([*starts.tolist(), len(rows)]):
        yield rows.slice(first, following - first)


def joined(rows: pa.Table, columns: Sequence[str], others: pa.Table, how: str = "left outer") -> pa.Table:
    """`columns` of rows with what others have beside them, and their `place` in rows, by which it is sorted. Arrow's join takes no lists,
    and has no order."""
    numbered = rows.select(columns).append_column("place", pa.array(np.arange(len(rows))))
    return numbered.join(others, keys=list(columns), join_type=how).sort_by("place")


def _beside(rows: pa.Table, more: pa.Table) -> pa.Table:
    for name in more.column_names:
        rows = rows.append_column(name, more[name])
    return rows
