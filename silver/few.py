"""The account of a few measurements, as silver/ledger.py has it of any number, in Arrow: Spark would plan for nearly all of the time.

Pure. The rows are the same; a test compares them.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from silver.ledger import DUPLICATE_COLUMNS, IDENTITY, JUDGED, KEPT, OF_EVENT
from silver.readings import KEYS, READING_COLUMNS

KEY_AND_IDENTITY = [*KEYS, *IDENTITY]
OF_QUARANTINED_EVENT = ["payload", "header", "position", "received_at"]
CONTENT = ["source", "payload", "header", "position"]
"""All that an event is judged by, beside when it was ingested."""


def among(rows: pa.Table, columns: Sequence[str], others: pa.Table, how: str = "left semi") -> pa.Table:
    """Rows, in their order, that agree in `columns` with one of `others`; with none of them where `how` is "left anti"."""
    return rows.take(_joined(rows, columns, others.select(columns), how)["place"])


def not_among(measurements: pa.Table, accepted: pa.Table) -> pa.Table:
    """See silver.ledger.not_among."""
    # An event of one part that was judged at all is not among the readings.
    of_many_parts = accepted.filter(pc.field("parts").is_null() | (pc.field("parts") != 1))
    return among(measurements, IDENTITY, of_many_parts, "left anti")


def broken_and_turned_away(measurements: pa.Table) -> tuple[pa.Table, pa.Table]:
    """See silver.ledger.broken and turned_away: measurements that break a rule, and good ones, which are late or duplicates."""
    is_good = pc.equal(pc.list_value_length(measurements["broken_rules"]), 0)
    return measurements.filter(pc.invert(is_good)).select(JUDGED), measurements.filter(is_good).select(READING_COLUMNS)


def copies(events: pa.Table, originals: pa.Table, by_name: Sequence[str]) -> pa.Table:
    """Events that hold what one of `originals`, of the same bronze batch, does, byte for byte; `kept_row`: the first of these.

    What is true of the one is then true of the other. `by_name`: sources whose events are read by the name of their file as well.
    """
    alike = ["bronze_batch", *CONTENT]
    first = _comparable(originals, by_name).group_by(alike, use_threads=False).aggregate([("bronze_row", "min")])
    found = _comparable(events, by_name).join(first, keys=alike, join_type="inner")
    return found.select([*OF_EVENT, "bronze_row_min"]).rename_columns([*OF_EVENT, "kept_row"])


def duplicates_of(copies: pa.Table, readings: pa.Table) -> pa.Table:
    """Rows of silver.duplicates: the measurements of `copies`. `readings`: those of the events that they are copies of, all of them."""
    of_kept = readings.rename_columns(["kept_row" if name == "bronze_row" else name for name in readings.column_names])
    rows = copies.join(of_kept, keys=["bronze_batch", "kept_row"], join_type="inner")
    rows = rows.append_column("kept_batch", rows["bronze_batch"]).append_column("kept_part", rows["part"])
    return _of_no_retry(rows.select(DUPLICATE_COLUMNS))


def _comparable(events: pa.Table, by_name: Sequence[str]) -> pa.Table:
    """In Arrow, null is not equal to null."""
    position = pc.if_else(pc.is_in(events["source"], pa.array(by_name, pa.string())), events["position"], "")
    columns = {"header": pc.fill_null(events["header"], ""), "position": position}
    return pa.table({name: columns.get(name, events[name]) for name in [*OF_EVENT, *CONTENT]})


def quarantine(broken: pa.Table, events: pa.Table) -> pa.Table:
    """See silver.ledger.quarantine."""
    of_event = _joined(broken, OF_EVENT, events.select([*OF_EVENT, *OF_QUARANTINED_EVENT]))
    return _beside(broken, of_event.select(OF_QUARANTINED_EVENT))


def quarantine_bytes(broken: pa.Table, events: pa.Table) -> int:
    """How long the payloads and headers in it are: an event comes once for each measurement that is broken."""
    length = pc.add(pc.binary_length(events["payload"]), pc.fill_null(pc.binary_length(events["header"]), 0))
    of_events = events.select(OF_EVENT).append_column("length", length)
    return pc.sum(broken.select(OF_EVENT).join(of_events, keys=OF_EVENT)["length"]).as_py() or 0


def of_these_keys(kept: Iterable[pa.Table], rows: pa.Table) -> pa.Table:
    """Of `kept`, rows of KEY_AND_IDENTITY in any number of pieces, those that have the key of one of `rows`."""
    return pa.concat_tables([among(piece.select(KEY_AND_IDENTITY), KEYS, rows) for piece in kept])


def with_kept(rows: pa.Table, kept: pa.Table) -> pa.Table:
    """See silver.ledger.with_kept. `kept`: rows of KEY_AND_IDENTITY, one of a key."""
    rows = rows.sort_by([(name, "ascending") for name in IDENTITY])
    first = rows.group_by(KEYS, use_threads=False).aggregate([(name, "first") for name in IDENTITY])
    before = kept.select(KEY_AND_IDENTITY).rename_columns([*KEYS, *KEPT])
    found = _joined(rows, KEYS, first.join(before, keys=KEYS))
    firsts = [f"{name}_first" for name in IDENTITY]
    identities = [pc.coalesce(found[alias], found[name]) for alias, name in zip(KEPT, firsts, strict=True)]
    return _beside(rows, pa.table(identities, names=KEPT))


def late_and_duplicates(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """See silver.ledger.late and duplicates."""
    batch, row, part = (pc.field(name) == pc.field(alias) for name, alias in zip(IDENTITY, KEPT, strict=True))
    is_kept = batch & row & part
    late, duplicates = rows.filter(is_kept).select(READING_COLUMNS), rows.filter(~is_kept).select(DUPLICATE_COLUMNS)
    return _of_no_retry(late.append_column("cause", pa.repeat("late", len(late)))), _of_no_retry(duplicates)


def _joined(rows: pa.Table, columns: Sequence[str], others: pa.Table, how: str = "left outer") -> pa.Table:
    """`columns` of rows with what others have beside them, and their `place` in rows, by which it is sorted.

    Arrow's join takes no lists, and has no order.
    """
    numbered = rows.select(columns).append_column("place", pa.array(range(len(rows)), pa.int64()))
    return numbered.join(others, keys=list(columns), join_type=how).sort_by("place")


def _beside(rows: pa.Table, more: pa.Table) -> pa.Table:
    for name in more.column_names:
        rows = rows.append_column(name, more[name])
    return rows


def _of_no_retry(rows: pa.Table) -> pa.Table:
    return rows.append_column("retry", pa.nulls(len(rows), pa.int64()))
