"""Amendments: a job that follows gold and the ledger, and folds in the rows that came when their window was closed.

Two kinds of rows did: those of silver.late, and readings that were late for their group only; this job finds the latter and keeps them
in gold.late. Windows of either are computed anew from silver and appended under the next revision, and so are the vectors that
change. How far a step reaches is written down before it begins, so that a run after a crash repeats exactly the same step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from gold.schema import VECTOR_KEY, WINDOW_KEY
from gold.windows.amendments import OF_WINDOW, behind, recomputed
from gold.windows.revisions import changed, latest, next_revision
from gold.windows.spec import Group, Late
from gold.windows.vectors import in_blocks
from orchestration import crash
from orchestration.engine.chains import linked_metrics
from orchestration.engine.lake import Lake
from orchestration.engine.windows import Limits, Piece, Windows, by_entity, in_pieces, measured, read, with_values
from orchestration.engine.writing import append, is_half_done
from orchestration.errors import TidemarkError
from orchestration.jobs.gold.linked_windows import amended
from orchestration.storage.checkpoints import REPAIR, newest_batch
from orchestration.storage.commit import append_pieces
from orchestration.storage.delta import in_log, max_in_log, open_table, written_by
from orchestration.storage.positions import GoldPosition, closed_until_ms, gold_position, read_by
from orchestration.storage.state_file import StateFile
from orchestration.storage.tables import Table
from orchestration.storage.views import of_groups

NAME = "gold.amendments"
FILE = "amendments.json"
NOWHERE = GoldPosition(-1, 0, -1, -1)
CONTENT = ("vector", "missing", "filled")
LONG_SPAN, MOST_SPANS = 3_600, 64
"""Windows that end within so many seconds are computed from all readings between them; others span by span."""
Pair = tuple[pa.Table, pa.Table]


@dataclass(frozen=True)
class Step:
    """A step from `after`, where the one before ended, to `up_to`; None: it has ended at `after`. `number` counts steps of the stream."""

    number: int = 0
    after: GoldPosition = NOWHERE
    up_to: GoldPosition | None = None

    @property
    def end(self) -> GoldPosition:
        """The end of a step that has not ended."""
        assert self.up_to is not None
        return self.up_to


def amend_all(lake: Lake, streams: Mapping[str, Sequence[Group]]) -> Iterator[int]:
    """Bring each stream to where gold and the ledger are; yields the windows amended by each step.

    No step for a stream that has to repeat a micro-batch: it would take its windows for closed, and write the vectors that it will write.
    """
    here: Lake | None = None
    for stream, groups in streams.items():
        if is_half_done(lake, stream):
            continue
        while (step := _begun(lake, stream)) is not None:
            here = here or lake.interpreted()
            here.spark.sparkContext.setJobDescription(NAME)
            yield _amend(here, stream, groups, step)
            _file(lake, stream).write(Step(step.number, step.end))


def begin_at(lake: Lake, stream: str, reached: GoldPosition) -> None:
    """Begin as if a step had ended at this position."""
    _file(lake, stream).write(Step(0, reached))


def refuse_older(lake: Lake, stream: str) -> None:
    """TidemarkError where tables know a later step, or batch, than the checkpoint: Delta would take the next ones for repeats."""
    number = (_file(lake, stream).read() or Step()).number
    started = newest_batch(lake.checkpoint(f"gold.{stream}") / "offsets")
    *tables, late = lake.gold(stream)
    for table, written, newest, word in (
        *((table, written_by(table.location, lake.app_id(_flow(stream), table.name)), number, "amendment round") for table in tables),
        (late, lake.newest_gold_batch(stream, "late"), started, "batch"),
    ):
        if written > newest:
            raise TidemarkError(
                f"the checkpoint of gold.{stream} at {lake.checkpoint(f'gold.{stream}')} has reached {word} {newest}, but"
                f" {table.name} holds {word} {written} already. The checkpoint was restored from an older time.\n  {REPAIR}"
            )


def is_amended(lake: Lake, stream: str, reached: GoldPosition) -> bool:
    """Whether a step has ended there."""
    step = _file(lake, stream).read() or Step()
    return step.up_to is None and step.after == reached


def _begun(lake: Lake, stream: str) -> Step | None:
    """Return the step that a killed run began, which reaches as far as things were then, or the next one; None where nothing has moved."""
    step = _file(lake, stream).read() or Step()
    if step.up_to is None:
        reached = gold_position(lake, stream)
        if reached is None or (up_to := reached.as_far_as(step.after)) == step.after:
            return None
        step = Step(step.number + 1, step.after, up_to)
        _file(lake, stream).write(step)
    return step


def _amend(lake: Lake, stream: str, groups: Sequence[Group], step: Step) -> int:
    for gold_batch in range(step.after.gold_batch + 1, step.end.gold_batch + 1):
        _keep_late_for_groups(lake, stream, groups, gold_batch)
    amended = [group for group in groups if group.late is Late.AMEND]
    if not amended or not _may_be_late(lake, stream, step):
        return 0
    affected = _affected(lake, stream, amended, step).persist()
    try:
        if (windows := measured(affected)) is None:
            return 0
        _append_windows(lake, stream, amended, step, windows)
        crash.point(crash.Point.AMENDMENT_WRITTEN)
        return windows.count
    finally:
        affected.unpersist()


def _keep_late_for_groups(lake: Lake, stream: str, groups: Sequence[Group], gold_batch: int) -> None:
    """Keep the readings that were behind the watermark of the micro-batch that read them."""
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
    """Whether, by the log, a reading of bronze batches `after` < batch <= `up_to` may be before `closed_until`, in ms since 1970."""
    log = in_log(open_table(readings.location), "num_records", "min.bronze_batch", "max.bronze_batch", "min.event_time")
    files = log.filter((pc.field("num_records") > 0) & (pc.field("max.bronze_batch") > after) & (pc.field("min.bronze_batch") <= up_to))
    first = pc.min(files["min.event_time"].cast(pa.int64())).as_py()  # a number, as Python has no instant before the year 1
    return first is not None and first < closed_until * 1000


def _may_be_late(lake: Lake, stream: str, step: Step) -> bool:
    """Whether, by the logs, there may be late rows: most steps have none."""
    is_new = lake.newest_gold_batch(stream, "late") > step.after.gold_batch
    return is_new or max_in_log(lake.tables["silver.late"].location, "bronze_batch") is not None


def _affected(lake: Lake, stream: str, groups: Sequence[Group], step: Step) -> DataFrame:
    """Closed windows (OF_WINDOW) of late rows that no step before this one saw, or saw while the window was open."""
    late, metrics = _late(lake, step.end), lake.conf.metrics
    closed_until = _instant(step.end.closed_until_ms)
    is_new = (F.col("bronze_batch") > step.after.accounted_for) | (F.col("window_end") > _instant(step.after.closed_until_ms))
    affected = [behind(late, groups, metrics, closed_until).where(is_new)]
    if step.end.retried > step.after.retried:
        # Their batches are old: the mark of the retry says that they are new.
        readmitted = late.where(F.col("retry") > step.after.retried)
        affected.append(behind(readmitted, groups, metrics, closed_until))
    of_stream = F.expr(of_groups([group.name for group in groups]))
    affected.append(lake.read(lake.gold(stream)[2].name).where(of_stream & (F.col("gold_batch") > step.after.gold_batch)))
    return reduce(DataFrame.unionByName, (rows.select(*OF_WINDOW) for rows in affected)).distinct()


def _late(lake: Lake, reached: GoldPosition) -> DataFrame:
    is_known = F.col("retry").isNull() | (F.col("retry") <= reached.retried)
    return lake.read("silver.late").where((F.col("bronze_batch") <= reached.accounted_for) & is_known)


def _append_windows(lake: Lake, stream: str, groups: Sequence[Group], step: Step, affected: Windows) -> None:
    longest = max(lake.conf.metrics[name].longest_seconds for group in groups for name in group.metrics)
    readings = lake.read("silver.readings").where(F.col("bronze_batch") <= step.end.bronze_batch)
    rows = readings.unionByName(_late(lake, step.end).drop("cause", "retry"))

    def recompute(windows: DataFrame, first_end: int, last_end: int) -> DataFrame:
        return recomputed(rows.where(_in_reach(windows, first_end, last_end, longest)), windows, groups, lake.conf.metrics)

    linked = amended(lake, stream, groups, affected.rows, recompute, step.end.closed_until_ms * 1000)
    windows = recompute(affected.rows, affected.first_end, affected.last_end)
    if linked is not None:
        is_other = ~F.col("metric").isin(linked_metrics(lake, groups))
        windows = windows.where(is_other).drop("series").unionByName(linked)
    windows = windows.persist()
    try:
        if (made := measured(windows)) is not None:
            Amendment(lake, stream, step.number, step.end.gold_batch).append(groups, made)
    finally:
        windows.unpersist()


def _in_reach(windows: DataFrame, first_end: int, last_end: int, longest: int) -> Column:
    """Whether a reading is near one of the windows: between old and new ones lies nearly all of the history. All in seconds."""
    spans = [(first_end, last_end)]
    if last_end - first_end > LONG_SPAN:
        step = max(LONG_SPAN, (last_end - first_end) // MOST_SPANS)
        numbers = windows.select(F.floor(F.unix_seconds("window_end") / step)).distinct().collect()
        spans = [(number * step, (number + 1) * step) for (number,) in sorted(numbers)]
    between = (map(F.timestamp_seconds, (F.lit(first - longest), F.lit(last))) for first, last in spans)
    return reduce(or_, (F.col("event_time").between(*ends) for ends in between))


def _flow(stream: str) -> str:
    return f"{NAME}/{stream}"


def _instant(milliseconds: int) -> Column:
    return F.timestamp_millis(F.lit(milliseconds))


def _file(lake: Lake, stream: str) -> StateFile[Step]:
    return StateFile(lake.checkpoint(f"gold.{stream}") / FILE, Step, REPAIR)


@dataclass(frozen=True)
class Amendment:
    """Append amended windows of a stream, and the vectors that change with them, as its step `number`.

    By Arrow, piece by piece. Measured, 11 windows of two groups: 11 s with four appends by Spark, each planned with what the table held
    before.
    """

    lake: Lake
    stream: str
    number: int
    gold_batch: int

    def append(self, groups: Sequence[Group], amended: Windows) -> None:
        aggregates, vectors, _ = self.lake.gold(self.stream)
        windows = amended.handed_over()
        self._append_rows(aggregates, self._revised(windows))
        crash.point(crash.Point.AMENDMENT_HALF_WRITTEN)
        self._append_rows(vectors, self._revised_vectors(groups, windows))

    def _append_rows(self, table: Table, pieces: Iterator[pa.Table]) -> None:
        """Append rows that have their revision; nothing is committed where there are none."""
        filled = filter(len, pieces)
        first = next(filled, None)
        if first is not None:
            rows = chain([first], filled)
            stamped = (piece.append_column("gold_batch", pa.repeat(pa.scalar(self.gold_batch, pa.int64()), len(piece))) for piece in rows)
            append_pieces(table.location, stamped, self.lake.app_id(_flow(self.stream), table.name), self.number)

    def _revised(self, windows: Windows) -> Iterator[pa.Table]:
        for _, (rows, history) in in_pieces(windows.whole(), partial(self._with_history, windows)):
            yield next_revision(rows, history, WINDOW_KEY)

    def _with_history(self, windows: Windows, piece: Piece, limits: Limits | None) -> Pair | None:
        rows = windows.read(piece, limits)
        if rows is None:
            return None
        history = read(self.lake.gold(self.stream)[0], piece.predicate(), limits, _names(rows, "device_group", "device_id"))
        return None if history is None else (rows, history)

    def _revised_vectors(self, groups: Sequence[Group], windows: Windows) -> Iterator[pa.Table]:
        """Yield the vectors that differ from those in the table, at ends of the windows and as long after as these may fill."""
        whole = windows.whole()
        for entity, fill_seconds, alike in by_entity(groups):
            may_change = replace(whole, last=whole.last + fill_seconds, entity=entity, fill_seconds=fill_seconds)
            for piece, (aggregates, before) in in_pieces(may_change, partial(self._with_vectors, alike, windows)):
                for block in in_blocks(aggregates, alike, self.lake.conf.metrics):
                    rows = changed(piece.ending_in(block), before, VECTOR_KEY, CONTENT)
                    yield next_revision(rows, before, VECTOR_KEY)

    def _with_vectors(self, groups: Sequence[Group], windows: Windows, piece: Piece, limits: Limits | None) -> Pair | None:
        """Return all windows, the amended ones included, and vectors in a piece, of entities with amended windows; newest revisions."""
        in_reach = piece.back()
        amended = windows.read(in_reach, limits)
        if amended is None:
            return None
        amended = with_values(amended, {"device_group": [group.name for group in groups]})
        names = _names(amended, "device_group", piece.entity)
        table, vectors, _ = self.lake.gold(self.stream)
        aggregates = read(table, in_reach.predicate(), limits, names)
        entity = "entity" if piece.entity == "device_id" else piece.entity
        of_entities = {"device_group": names["device_group"], entity: names[piece.entity]}
        before = None if aggregates is None else read(vectors, piece.predicate(entity), limits, of_entities)
        return None if aggregates is None or before is None else (latest(aggregates, WINDOW_KEY), latest(before, VECTOR_KEY))


def _names(rows: pa.Table, *columns: str) -> dict[str, list[str]]:
    return {column: rows[column].unique().to_pylist() for column in columns}
