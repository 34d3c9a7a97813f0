"""Bring flows of flows.yml and alerts of alerts.yml up to a prefix, slice by slice, each with a position of its own.

A slice of a flow ends where nothing older can come any more: a lateness behind the newest reading of the prefix (gold/flows/slices.py).
A slice of an alert ends with a bronze batch, or a tick of the clock. A step writes its rows first, then what the next slice needs, then its
end; a run after a crash repeats exactly that slice, and Delta refuses rows that are there already. No query of Spark: measured beside its
own operators in tests/bench/RESULTS.md.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

import pyarrow as pa

from gold.flows.slices import THE_BEGINNING, Stepped
from gold.instants import SECOND
from orchestration import crash
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.jobs.gold import lane_slices
from orchestration.jobs.gold.prefix import Prefix
from orchestration.location import Location
from orchestration.storage.checkpoints import REPAIR
from orchestration.storage.commit import append_rows
from orchestration.storage.delta import ask, in_log, instant, literal, open_table, written_by
from orchestration.storage.lanes import lanes_of
from orchestration.storage.positions import FLOWS, FlowPosition, FlowStep, step_file, step_folder
from orchestration.storage.state_file import read_rows, write_rows
from orchestration.utc import to_micros

READINGS = "silver.readings"
SLICE_ROWS = 1_000_000
"""Readings of one slice: bounds the memory."""


class Incremental(Protocol):
    """A flow or an alert. `name`: of its folder; `table`: that it writes; `plan`: in words, what its state depends on."""

    @property
    def name(self) -> str: ...
    @property
    def table(self) -> str: ...
    @property
    def plan(self) -> str: ...

    def next_step(self, lake: Lake, this: FlowStep, prefix: Prefix) -> FlowStep | None:
        """Return the step after one that has ended, with its end; without one where what came is too new, None where nothing has come."""

    def step(self, lake: Lake, carried: pa.Table | None, start: FlowPosition, end: FlowPosition) -> Stepped:
        """Compute the rows of a slice, and what the next one needs. `carried` None: this is the first one."""

    def as_begun(self, plan: str) -> "Incremental":
        """Return the one that began a slice, of which a killed run may have written rows; it may have another plan."""


def follow(lake: Lake, incremental: Incremental, prefix: Prefix) -> Iterator[int]:
    """Up to the prefix; yields the rows of each slice once it is done."""
    while (this := _begun(lake, incremental, prefix)) is not None:
        assert this.up_to
        crash.point(crash.Point.FLOW_BEGUN)
        stepped = incremental.as_begun(this.plan).step(
            lake, carried(lake, incremental, replace(this, number=this.number - 1)), this.after, this.up_to
        )
        if len(stepped.rows):
            append_rows(lake.table_path(incremental.table), stepped.rows, _app_id(lake, incremental), this.number)
        crash.point(crash.Point.FLOW_WRITTEN)
        digest = write_rows(_carried_file(lake, incremental, this.number), stepped.carried)
        ended = replace(this, after=this.up_to, up_to=None, carried=digest, rings_at=stepped.rings_at)
        _note(lake, incremental, ended)
        _carried_file(lake, incremental, this.number - 1).delete()
        yield len(stepped.rows)


def carried(lake: Lake, incremental: Incremental, ended: FlowStep) -> pa.Table | None:
    """Return what a step has left; None before the first."""
    return read_rows(_carried_file(lake, incremental, ended.number), ended.carried, REPAIR) if ended.carried else None


def position(lake: Lake, incremental: Incremental) -> FlowStep:
    """Return the newest step."""
    return step_file(lake, incremental.name).read() or FlowStep()


def refuse_older(lake: Lake, incremental: Incremental) -> None:
    """TidemarkError where rows are ahead of the state: Delta would take the next ones for repeats."""
    number = position(lake, incremental).number
    if (written := written_by(lake.table_path(incremental.table), _app_id(lake, incremental))) > number:
        raise TidemarkError(
            f"the state of {incremental.name} at {_folder(lake, incremental)} has reached slice {number}, but {incremental.table} holds"
            f" slice {written} already. The state was restored from an older time.\n  {REPAIR}"
        )


def final_readings(lake: Lake, start: FlowPosition, prefix: Prefix) -> int:
    """Return the instant before which readings are final: silver accepts nothing older. Whole milliseconds, as Spark counts a watermark
    in them."""
    newest = prefix.newest_reading(lake, start.bronze_batch)
    lateness = max(lake.conf.policy.lateness_seconds, start.lateness_seconds)
    return THE_BEGINNING if newest is None else newest // 1000 * 1000 - lateness * SECOND


def within(start: int, end: int, time: str = "event_time") -> str:
    """SQL of DataFusion: instants of a slice. `time`: their column."""
    since = "" if start == THE_BEGINNING else f"{time} >= {instant(start)} and "
    return f"{since}{time} < {instant(end)}"


def ending(after: int, until: int) -> str:
    """SQL of DataFusion: windows that end behind an instant, and not behind another one."""
    return f"window_end <= {instant(until)}" + ("" if after == THE_BEGINNING else f" and window_end > {instant(after)}")


def of_groups_ending(since: Mapping[str, int], until: int) -> str:
    """SQL of DataFusion: windows of groups that end behind an instant of the group, and not behind another one."""
    names = defaultdict[int, list[str]](list)
    for name, after in since.items():
        names[after].append(name)
    return "(" + " or ".join(f"(device_group in {literal(some)} and {ending(after, until)})" for after, some in names.items()) + ")"


def readings_taken(metrics: Collection[str], group: str | None) -> str:
    """SQL of DataFusion: readings of these metrics, or of all, and of devices of a group, or of all."""
    conditions = [f"metric in {literal([*metrics])}"] if metrics else []
    conditions += [f"array_has(groups, {literal(group)})"] if group else []
    return " and ".join(conditions) or "true"


def _begun(lake: Lake, incremental: Incremental, prefix: Prefix) -> FlowStep | None:
    """A slice that a killed run began, or the next one; None where nothing has come."""
    this = position(lake, incremental)
    if this.up_to is None:
        following = incremental.next_step(lake, this, prefix)
        if following is not None:
            _note(lake, incremental, following)
        return following if following is not None and following.up_to is not None else None
    return this


def _note(lake: Lake, incremental: Incremental, this: FlowStep) -> None:
    step_file(lake, incremental.name).write(replace(this, noted_at=to_micros(datetime.now(UTC))))


def by_event_time(lake: Lake, this: FlowStep, prefix: Prefix, plan: str, readings: str) -> FlowStep | None:
    """Return the next step of a flow: up to where readings are final. `readings`: which it takes, in SQL of DataFusion."""
    if prefix.bronze_batch <= this.after.bronze_batch:
        return None
    whole = _whole(lake, this.after, prefix, readings)
    if whole.until == this.after.until:  # what came is too new to be final
        return replace(this, after=whole, plan=plan)
    return replace(this, number=this.number + 1, up_to=_cut(lake, this.after, whole, readings), plan=plan)


def _whole(lake: Lake, start: FlowPosition, prefix: Prefix, readings: str) -> FlowPosition:
    """Return the position behind the prefix."""
    if (lanes := lanes_of(lake)).every:
        return lane_slices.final_position(lake, lanes, start, prefix.bronze_batch, readings)
    end = max(final_readings(lake, start, prefix), start.until)
    return FlowPosition(prefix.bronze_batch, end, lake.conf.policy.lateness_seconds)


def _cut(lake: Lake, start: FlowPosition, whole: FlowPosition, readings: str) -> FlowPosition:
    """Return the end of the whole way, or of so much of it as holds about SLICE_ROWS; its bronze batches count as read at its very end."""
    if most_rows(lake, READINGS, "event_time", start.until) <= SLICE_ROWS:
        return whole
    query = (
        f"select second, count(*) as count from (select cast(arrow_cast(event_time, 'Int64') / {SECOND} as bigint) as second from rows"
        f" where {within(start.until, whole.until)} and {readings}) group by second order by second"
    )
    batches = ask(query, {"rows": open_table(lake.table_path(READINGS))})
    total = 0
    for second, count in (row for batch in batches for row in zip(batch["second"].to_pylist(), batch["count"].to_pylist(), strict=True)):
        if total and total + count > SLICE_ROWS and second * SECOND > start.until:
            return replace(start, until=second * SECOND)
        total += count
    return whole


def most_rows(lake: Lake, name: str, time: str, start: int) -> int:
    """Return, from the log of a table, the most rows that it can have from an instant on. `time`: the column of instants."""
    log = in_log(open_table(lake.table_path(name)), "num_records", f"max.{time}")
    if f"max.{time}" not in log.column_names:
        return 0
    newest = log[f"max.{time}"].cast(pa.int64()).to_pylist()
    return sum(count for count, most in zip(log["num_records"].to_pylist(), newest, strict=True) if most is None or most >= start)


def _app_id(lake: Lake, incremental: Incremental) -> str:
    return lake.app_id(FLOWS, f"{incremental.table}/{incremental.name}")


def _carried_file(lake: Lake, incremental: Incremental, number: int) -> Location:
    return _folder(lake, incremental) / f"{number}.arrow"


def _folder(lake: Lake, incremental: Incremental) -> Location:
    return step_folder(lake, incremental.name)
