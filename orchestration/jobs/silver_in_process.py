"""Silver of a few events, in process: judged and accounted for by the functions that streams use, without Spark; nothing is written."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from orchestration.conf.model import Conf
from silver import account
from silver.policy import Bounds
from silver.schema import DUPLICATES, KEYS, LATE, QUARANTINE, READINGS

BEGIN = 1_000
"""The instant at which a watermark of Spark begins, in microseconds since 1970; what is older counts as of this instant."""


class Silver(NamedTuple):
    """Tables of silver, with their columns. `accepted`: readings, late rows and duplicates, in the order in which they came.
    `without_measurements` are no rows of `quarantine` here, as they are no defects."""

    accepted: pa.Table
    readings: pa.Table
    late: pa.Table
    duplicates: pa.Table
    quarantine: pa.Table
    without_measurements: pa.Table


def silver_of(conf: Conf, events: pa.Table, judged: Iterable[pa.Table]) -> Silver:
    """Silver of events with their identity, batch by batch. What is behind the watermark of the batches before is late. `judged`: their
    measurements, see silver/judging.py."""
    measured = [account.split(piece) for piece in judged]
    if not measured:
        nothing = READINGS.empty_table()
        return Silver(nothing, nothing, *(schema.empty_table() for schema in (LATE, DUPLICATES, QUARANTINE, QUARANTINE)))
    broken, good = (pa.concat_tables(pieces) for pieces in zip(*measured, strict=True))
    good = good.sort_by([(name, "ascending") for name in account.IDENTITY])
    is_reading = pa.array(_are_readings(conf, good), pa.bool_())
    readings, rest = good.filter(is_reading), good.filter(pc.invert(is_reading))
    rest = account.with_kept(rest, account.kept_of_keys([rest], [readings]))
    quarantined = pa.concat_tables([*account.quarantine(broken, events)]) if len(broken) else broken
    is_empty = account.measures_nothing(quarantined)
    of_quarantine = quarantined.filter(pc.invert(is_empty)), quarantined.filter(is_empty)
    return Silver(good, readings, account.late(rest), account.duplicates(rest), *of_quarantine)


def _are_readings(conf: Conf, good: pa.Table) -> Iterator[bool]:
    """Say of each row, in order, whether it is in time, and the first of its key."""
    rows = good.select([*KEYS, "source", "bronze_batch"]).set_column(2, "micros", good["event_time"].cast(pa.int64())).to_pylist()
    newest, closed, seen, batch = dict[Bounds, int](), dict[Bounds, int](), set[tuple[str, str, int]](), None
    for row in rows:
        if row["bronze_batch"] != batch:
            batch = row["bronze_batch"]
            closed = {bounds: (at // 1_000 - bounds.lateness_seconds * 1_000) * 1_000 for bounds, at in newest.items()}
        bounds, micros, key = conf.bounds[row["source"]], max(row["micros"], BEGIN), (row["device_id"], row["metric"], row["micros"])
        newest[bounds] = max(newest.get(bounds, 0), micros)
        is_in_time = micros > max(closed.get(bounds, 0), 0)
        yield is_in_time and key not in seen
        if is_in_time:
            seen.add(key)
