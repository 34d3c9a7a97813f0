"""Windows and vectors as alerts judge them, once more: in their first revision, each with the step in which it was known."""

from collections.abc import Sequence

import duckdb

from gold.windows.spec import Group, Late
from orchestration.audit.verify.alert_steps import SECOND, Step
from orchestration.audit.verify.compare import NEAR
from orchestration.audit.verify.gold_windows import EVER, IN_ORDER, vectors, windows
from orchestration.audit.verify.lake_snapshot import LakeSnapshot
from orchestration.audit.verify.store import AGGREGATES, IDENTITY, LATE_FOR_GROUP, NUMBERS, VECTORS, fill, listed, record
from orchestration.conf.model import Conf
from orchestration.storage.delta import literal

OF_WINDOWS = ("device_id", "metric", "window_start", "window_end", *NUMBERS, "count")
OF_VECTORS = ("entity", "window_start", "window_end", "vector", "missing", "filled")
IN_STEPS = f"""
  create or replace temp table {{table}}_in_steps as
  with of_clock as (select until, min(step) as step from closings group by until),
  first as (from all_{{kind}} qualify row_number() over (partition by {{key}}, window_end order by revision) = 1),
  came as (
    select f.*, (
      select min(c.bronze_batch) from counted c anti join retried using ({listed(IDENTITY)})
      where c.event_time >= f.window_start and c.event_time < f.window_end and {{same}}
    ) as bronze_batch
    from first f where revision > 0
  )
  select {{names}}, coalesce(k.step, {{last}}) as came_in from {{table}} w asof left join of_clock k on epoch_us(w.window_end) <= k.until
  union all by name select {{names}}, s.step as came_in from came join alert_steps s using (bronze_batch)
"""
"""Windows in time with the first step in which the stream was past their end; and those that late readings alone made, as recorded."""


def make_closings(store: duckdb.DuckDBPyConnection, conf: Conf, group: Group, steps: Sequence[Step]) -> None:
    """Make `windows_in_steps` and, where there are any, `vectors_in_steps`: those that are closed in the first step in which readings of
    the stream are past their end by its lateness, or that a tick closed; and those of late readings when they came."""
    groups = conf.streams[group.stream]
    lateness = max(member.lateness_seconds for member in groups) * SECOND
    members = " or ".join(f"(list_contains(groups, {literal(one.name)}) and metric in {literal(one.metrics)})" for one in groups)
    ahead = conf.ahead_of(group.stream)
    clock = "epoch_us(event_time)" if ahead is None else f"least(epoch_us(event_time), wall + {ahead * SECOND})"
    query = "select step, max({}) from counted join alert_steps using (bronze_batch) where not is_late and ({}) group by step"
    newest = dict(store.execute(query.format(clock, members)).fetchall())
    rows, closed = list[tuple[int, int]](), -(2**60)
    for number, step in enumerate(steps):
        at = step.closes if step.batch is None else newest.get(number)
        closed = closed if at is None else max(closed, at // 1000 * 1000 - lateness)
        rows.append((number, closed))
    fill(store, "closings", "step INTEGER, until BIGINT", rows)
    same = "c.device_id = f.device_id and c.metric = f.metric"
    of_both = {"last": len(steps) - 1}
    sql = IN_STEPS.format(kind="aggregates", table="windows", key="device_id, metric", names=listed(OF_WINDOWS), same=same, **of_both)
    store.execute(sql)
    if group.vector is not None:
        metrics = sorted({name.rpartition(".")[2] for name in group.vector.features})
        same = f"list_contains(c.groups, {literal(group.name)}) and c.metric in {literal(metrics)}"
        same += " and c.device_id = f.entity" if group.vector.entity == "device" else ""
        store.execute(IN_STEPS.format(kind="vectors", table="vectors", key="entity", names=listed(OF_VECTORS), same=same, **of_both))


def make_first_emitted(store: duckdb.DuckDBPyConnection, snapshot: LakeSnapshot, conf: Conf, group: Group) -> None:
    """Makes `windows` and `vectors` of a group as they were before any amendment.

    A stream fills a vector from the newest revision of a window; whether it was amended by then depends on what came when. So vectors that
    are filled are taken as recorded, where the group has amendments.
    """
    of_group = f"device_group = {literal(group.name)}"
    for kind, columns in (("late", LATE_FOR_GROUP), ("aggregates", AGGREGATES), ("vectors", VECTORS)):
        record(store, snapshot, snapshot.generation.gold(group.stream, kind), f"all_{kind}", columns, where=of_group)
    for kind in ("aggregates", "vectors"):
        store.execute(f"create or replace temp view first_{kind} as from all_{kind} where revision = 0")
    windows(store, group, conf.metrics, snapshot.closed_until.get(group.stream, EVER), set_aside="all_late")
    store.execute(NEAR)
    size = {"value": "value_size"}
    same = ", ".join(f"case when near(w.{n}, f.{n}, w.{size.get(n, 'size')}) then f.{n} else w.{n} end as {n}" for n in NUMBERS)
    on = "f.device_id = w.device_id and f.metric = w.metric and f.window_end = w.window_end"
    first = f"select w.* replace ({same}) from windows w left join first_aggregates f on {on}"
    store.execute(f"create or replace temp table windows as {first}")
    _take_recorded_chains(store, conf, group)
    if group.vector is not None:
        vectors(store, group, group.vector, conf.metrics)
        taken = "coalesce(len(f.filled) > 0, false)" if group.late is Late.AMEND else "false"
        columns = ", ".join(f"case when {taken} then f.{name} else v.{name} end as {name}" for name in ("vector", "missing", "filled"))
        on = "f.entity = v.entity and f.window_end = v.window_end"
        filled = f"select v.* replace ({columns}) from vectors v left join first_vectors f on {on}"
        store.execute(f"create or replace temp table vectors as {filled}")


def _take_recorded_chains(store: duckdb.DuckDBPyConnection, conf: Conf, group: Group) -> None:
    """Take windows that go on from those before as recorded, where some are amended: which were by then depends on what came when."""
    of_chains = f"metric in {literal([name for name in group.metrics if conf.metrics[name].aggregation in IN_ORDER])}"
    if of_chains != "metric in ()" and store.execute(f"from all_aggregates where revision > 0 and {of_chains} limit 1").fetchall():
        others = f"select * from windows where not {of_chains}"
        store.execute(
            f"create or replace temp table windows as {others} union all by name select * from first_aggregates where {of_chains}"
        )
