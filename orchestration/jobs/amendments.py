"""Amendments: a job that follows gold and the ledger, and folds in the rows that came when their window was closed.

Two kinds of rows did: those of silver.late, and readings that were late for their group only; this job finds the latter and keeps them
in gold.late. Windows of either are computed anew from silver and appended under the next revision, and so are the vectors that
change. How far a round reaches is written down before it begins, so that a run after a crash repeats exactly the same round.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gold.amendments import OF_WINDOW, behind, recomputed
from gold.spec import Group, Late
from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.engine.pieces import Windows, measured
from orchestration.engine.writing import append, is_half_done
from orchestration.errors import TidemarkError
from orchestration.jobs.amended_windows import Amendment, append_all
from orchestration.storage.bindings import REPAIR
from orchestration.storage.checkpoints import newest_batch
from orchestration.storage.delta import in_log, max_in_log, open_table, written_by
from orchestration.storage.positions import GoldPosition, closed_until_ms, gold_position, read_by
from orchestration.storage.state_file import StateFile
from orchestration.storage.tables import Table
from orchestration.storage.views import of_groups

NAME = "gold.amendments"
FILE = "amendments.json"
NOWHERE = GoldPosition(-1, 0, -1, -1)


@dataclass(frozen=True)
class Round:
    """From where the one before ended to where it reaches, None once it has ended there; `number` counts rounds of the stream."""

    number: int = 0
    after: GoldPosition = NOWHERE
    up_to: GoldPosition | None = None

    @property
    def reach(self) -> GoldPosition:
        """The end of a round that has not ended."""
        assert self.up_to is not None
        return self.up_to


def amend_all(lake: Lake, streams: Mapping[str, Sequence[Group]]) -> Iterator[int]:
    """Rounds for each stream until it is where gold and the ledger are; yields the windows amended.

    None for a stream that has to repeat a micro-batch: a round would take its windows for closed, and write the vectors that it will write.
    """
    here: Lake | None = None
    for stream, groups in streams.items():
        if is_half_done(lake, stream):
            continue
        while (this := _begun(lake, stream)) is not None:
            here = here or lake.interpreted()
            yield _amend(here, stream, groups, this)
            _file(lake, stream).write(Round(this.number, this.reach))


def begin_at(lake: Lake, stream: str, reached: GoldPosition) -> None:
    """Begin as if a round had ended at this position."""
    _file(lake, stream).write(Round(0, reached))


def refuse_older(lake: Lake, stream: str) -> None:
    """Rounds that are counted again from a number that tables know already, would vanish: Delta takes them for repeats."""
    number = (_file(lake, stream).read() or Round()).number
    started = newest_batch(lake.checkpoint(f"gold.{stream}") / "offsets")
    *tables, late = lake.gold(stream)
    for table, written, newest, word in (
        *((table, written_by(table.location, lake.app_id(_flow(stream), table.name)), number, "round") for table in tables),
        (late, lake.newest_gold_batch(stream, "late"), started, "batch"),
    ):
        if written > newest:
            raise TidemarkError(
                f"the checkpoint of gold.{stream} at {lake.checkpoint(f'gold.{stream}')} is older than {table.name}, which holds"
                f" {word} {written} of amendments: the checkpoint knows {newest}.\n  {REPAIR}"
            )


def is_amended(lake: Lake, stream: str, reached: GoldPosition) -> bool:
    """Whether a round has ended there."""
    this = _file(lake, stream).read() or Round()
    return this.up_to is None and this.after == reached


def _begun(lake: Lake, stream: str) -> Round | None:
    """A round that a killed run began, which reaches as far as things were then, or the next one; None where nothing has moved."""
    this = _file(lake, stream).read() or Round()
    if this.up_to is None:
        up_to = gold_position(lake, stream)
        if up_to is None or up_to == this.after:
            return None
        this = Round(this.number + 1, this.after, up_to)
        _file(lake, stream).write(this)
    return this


def _amend(lake: Lake, stream: str, groups: Sequence[Group], this: Round) -> int:
    for gold_batch in range(this.after.gold_batch + 1, this.reach.gold_batch + 1):
        _keep_late_for_groups(lake, stream, groups, gold_batch)
    amended = [group for group in groups if group.late is Late.AMEND]
    if not amended or not _may_be_late(lake, stream, this):
        return 0
    affected = _affected(lake, stream, amended, this).persist()
    try:
        if (windows := measured(affected)) is None:
            return 0
        _append_windows(lake, stream, amended, this, windows)
        crash.point(crash.Point.AMENDMENT_WRITTEN)
        return windows.count
    finally:
        affected.unpersist()


def _keep_late_for_groups(lake: Lake, stream: str, groups: Sequence[Group], gold_batch: int) -> None:
    """Readings that were behind the watermark of the micro-batch that read them."""
    closed_until, readings = closed_until_ms(lake, stream, gold_batch), lake.tables["silver.readings"]
    after, up_to = (read_by(lake, stream, batch) for batch in (gold_batch - 1, gold_batch))
    # A compaction is a batch too, without rows.
    if up_to <= after or not _may_hold_late(readings, after, up_to, closed_until):
        return
    of_batch = lake.read(readings.name).where((F.col("bronze_batch") > after) & (F.col("bronze_batch") <= up_to))
    late = behind(of_batch, groups, lake.conf.metrics, _instant(closed_until)).persist()
    try:
        if measured(late) is not None:
            table = lake.gold(stream)[2]
            rows = late.withColumn("gold_batch", F.lit(gold_batch).cast("bigint"))
            append(rows, table, lake.app_id(f"gold.{stream}", table.name), gold_batch)
            crash.point(crash.Point.LATE_FOR_GROUP_WRITTEN)
    finally:
        late.unpersist()


def _may_hold_late(readings: Table, after: int, up_to: int, closed_until: int) -> bool:
    """Say, from the log alone, whether a reading of bronze batches `after` < batch <= `up_to` is before `closed_until`, in ms since
    1970."""
    log = in_log(open_table(readings.location), "num_records", "min.bronze_batch", "max.bronze_batch", "min.event_time")
    files = log.filter((pc.field("num_records") > 0) & (pc.field("max.bronze_batch") > after) & (pc.field("min.bronze_batch") <= up_to))
    first = pc.min(files["min.event_time"].cast(pa.int64())).as_py()  # a number, as Python has no instant before the year 1
    return first is not None and first < closed_until * 1000


def _may_be_late(lake: Lake, stream: str, this: Round) -> bool:
    """Say, from the logs alone, whether there may be late rows: most rounds have none."""
    is_new = lake.newest_gold_batch(stream, "late") > this.after.gold_batch
    return is_new or max_in_log(lake.tables["silver.late"].location, "bronze_batch") is not None


def _affected(lake: Lake, stream: str, groups: Sequence[Group], this: Round) -> DataFrame:
    """Closed windows (OF_WINDOW) of late rows that no round before this one saw, or saw while the window was open."""
    late, metrics = _late(lake, this.reach), lake.conf.metrics
    closed_until = _instant(this.reach.closed_until_ms)
    is_new = (F.col("bronze_batch") > this.after.accounted_for) | (F.col("window_end") > _instant(this.after.closed_until_ms))
    affected = [behind(late, groups, metrics, closed_until).where(is_new)]
    if this.reach.retried > this.after.retried:
        # Their batches are old: the mark of the retry says that they are new.
        readmitted = late.where(F.col("retry") > this.after.retried)
        affected.append(behind(readmitted, groups, metrics, closed_until))
    of_stream = F.expr(of_groups([group.name for group in groups]))
    affected.append(lake.read(lake.gold(stream)[2].name).where(of_stream & (F.col("gold_batch") > this.after.gold_batch)))
    return reduce(DataFrame.unionByName, (rows.select(*OF_WINDOW) for rows in affected)).distinct()


def _late(lake: Lake, reached: GoldPosition) -> DataFrame:
    is_known = F.col("retry").isNull() | (F.col("retry") <= reached.retried)
    return lake.read("silver.late").where((F.col("bronze_batch") <= reached.accounted_for) & is_known)


def _append_windows(lake: Lake, stream: str, groups: Sequence[Group], this: Round, affected: Windows) -> None:
    longest = max(lake.conf.metrics[name].step_seconds for group in groups for name in group.metrics)
    readings = lake.read("silver.readings").where(F.col("bronze_batch") <= this.reach.bronze_batch)
    late = _late(lake, this.reach).drop("cause", "retry")
    first, last = (F.timestamp_seconds(F.lit(seconds)) for seconds in (affected.first_end - longest, affected.last_end))
    in_reach = readings.unionByName(late).where(F.col("event_time").between(first, last))
    windows = recomputed(in_reach, affected.rows, groups, lake.conf.metrics).persist()
    try:
        append_all(Amendment(lake, stream, _flow(stream), this.number, this.reach.gold_batch), groups, replace(affected, rows=windows))
    finally:
        windows.unpersist()


def _flow(stream: str) -> str:
    """Rounds are counted by stream."""
    return f"{NAME}/{stream}"


def _instant(milliseconds: int) -> Column:
    return F.timestamp_millis(F.lit(milliseconds))


def _file(lake: Lake, stream: str) -> StateFile[Round]:
    return StateFile(lake.checkpoint(f"gold.{stream}") / FILE, Round, REPAIR)
