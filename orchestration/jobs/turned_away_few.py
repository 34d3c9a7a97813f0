"""The part of the ledger's job where a few events of a range are no readings, as nearly always: Spark only judges them.

Measured, 25,000 of 1,250,000 events: 5 s by Spark, which plans and joins for most of it.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from orchestration.engine.lake import Lake
from orchestration.engine.session import from_arrow
from orchestration.jobs.ranges import Counts, Knowledge, Range, pieces
from orchestration.storage.retired_sources import payload_formats
from orchestration.storage.tables import FEW
from orchestration.streaming.amount import MOST_READINGS, SMALL_BATCH_BYTES, most_readings
from silver import few
from silver import ledger as layer
from silver.readings import KEYS

TABLES = {"quarantined": "silver.quarantine", "late": "silver.late", "duplicates": "silver.duplicates"}
MOST_BYTES = 256 * 1024 * 1024
"""Of originals of copies, and of what comes to quarantine, which has the whole payload beside each measurement that is broken: one of 1 MB
with 10,000 of these is 10 GB.
"""
Append = Callable[[str, pa.Table], None]
"""Of a table of silver by its SQL name, and the rows that come to it."""


def read(lake: Lake, batches: Range, keys: pa.Table) -> pa.Table | None:
    """Events of these keys, rows of OF_EVENT.

    None where they are more than a few, or their payloads and headers are long, or may hold many measurements.
    """
    if len(keys) > FEW:
        return None
    most = left = SMALL_BATCH_BYTES
    found = []
    for piece in pieces(lake, "bronze.events", f"select * from rows where {batches.sql()}"):
        found.append(few.among(piece, layer.OF_EVENT, keys))
        left -= sum(pc.sum(pc.binary_length(found[-1][name])).as_py() or 0 for name in ("payload", "header"))
        if left < 0:
            return None
    return pa.concat_tables(found) if most_readings(lake, len(keys), most - left) <= MOST_READINGS else None


def placed(
    lake: Lake, knowledge: Callable[[Lake], Knowledge], batches: Range, events: pa.Table, *, accepted: pa.Table, append: Append
) -> Counts | None:
    """To each measurement of these events what becomes of it; nothing for a table that gets nothing. `accepted`: readings of the range.

    None, and nothing is appended, where that is too long.
    """
    copies = _copies(lake, batches, events, layer.complete(accepted))
    others = few.among(events, layer.OF_EVENT, copies, "left anti")
    kinds = _judged(lake.interpreted(), knowledge, batches, others, accepted) if len(others) else {}
    if kinds is None:
        return None
    duplicates = [kinds["duplicates"]] if "duplicates" in kinds else []
    if len(copies):
        kinds["duplicates"] = pa.concat_tables([*duplicates, _duplicates_of(lake, batches, copies)], promote_options="permissive")
    counts: Counts = Counter()
    for kind, rows in kinds.items():
        if len(rows):
            append(TABLES[kind], rows)
            counts += _counted(kind, rows)
    return counts


def _copies(lake: Lake, batches: Range, events: pa.Table, complete: pa.Table) -> pa.Table:
    """Those that came a second time, to the byte, as they do where a sender has heard no answer: nobody need judge them again.

    `complete`: events whose every measurement is a reading. Copies of those that have no place in memory are judged.
    """
    by_name = [name for name, shape in payload_formats(lake.conf).items() if shape.is_read_by_name]
    known, columns = events["payload"].combine_chunks(), ", ".join((*layer.OF_EVENT, *few.CONTENT))
    found = pieces(lake, "bronze.events", f"select {columns} from rows where {batches.sql()}")
    originals, left = [], MOST_BYTES
    for piece in found:
        originals.append(few.among(piece.filter(pc.is_in(piece["payload"], known)), layer.OF_EVENT, complete))
        left -= originals[-1].nbytes
        if left < 0:
            break
    return few.copies(events, pa.concat_tables(originals), by_name)


def _duplicates_of(lake: Lake, batches: Range, copies: pa.Table) -> pa.Table:
    originals = copies.select(["bronze_batch", "kept_row"]).rename_columns(layer.OF_EVENT)
    columns = ", ".join((*KEYS, "value", "source", "ingested_at", *layer.IDENTITY, "parts"))
    found = pieces(lake, "silver.readings", f"select {columns} from rows where {batches.sql()}")
    return few.duplicates_of(copies, pa.concat_tables(few.among(piece, layer.OF_EVENT, originals) for piece in found))


def _judged(
    lake: Lake, knowledge: Callable[[Lake], Knowledge], batches: Range, events: pa.Table, accepted: pa.Table
) -> dict[str, pa.Table] | None:
    judged = layer.judged(from_arrow(lake.spark, events), *knowledge(lake)).toArrow()
    broken, turned_away = few.broken_and_turned_away(few.not_among(judged, accepted))
    if few.quarantine_bytes(broken, events) > MOST_BYTES:
        return None
    kinds = {"quarantined": few.quarantine(broken, events)}
    if len(turned_away):
        kept = few.of_these_keys(_kept(lake, batches, turned_away), turned_away)
        kinds["late"], kinds["duplicates"] = few.late_and_duplicates(few.with_kept(turned_away, kept))
    return kinds


def _kept(lake: Lake, batches: Range, rows: pa.Table) -> Iterator[pa.Table]:
    """Readings and late rows that may have the key of one of `rows`."""
    times = pc.min_max(rows["event_time"].cast(pa.int64())).as_py()
    first, last = (f"arrow_cast({times[end]}, 'Timestamp(Microsecond, Some(\"UTC\"))')" for end in ("min", "max"))
    # Of late rows not what an account that did not end wrote.
    for name, up_to in (("silver.readings", batches.up_to), ("silver.late", batches.after)):
        of_these_times = f"bronze_batch <= {up_to} and event_time between {first} and {last}"
        yield from pieces(lake, name, f"select {', '.join(few.KEY_AND_IDENTITY)} from rows where {of_these_times}")


def _counted(kind: str, rows: pa.Table) -> Counts:
    found = rows.group_by(["bronze_batch", "source"]).aggregate([([], "count_all")]).to_pylist()
    return Counter({(kind, row["bronze_batch"], row["source"]): row["count_all"] for row in found})
