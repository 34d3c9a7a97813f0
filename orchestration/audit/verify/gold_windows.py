"""Gold once more: all closed windows of a group, and its vectors, from what counts. Every metric has its own step; instants are UTC."""

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby
from operator import itemgetter

import duckdb

from gold.windows.spec import Group, Vector
from orchestration.audit.verify.calendar_windows import make_calendar_windows
from orchestration.audit.verify.compare import NEAR
from orchestration.audit.verify.confs import ConfHistory
from orchestration.audit.verify.counters import averages, increases
from orchestration.audit.verify.store import fill
from orchestration.storage.delta import literal
from orchestration.utc import from_micros
from silver.aggregation import Aggregation
from silver.metric import CounterRule, Metric

OF_TYPE = {
    Aggregation.AVERAGE: "sum(value) / count(*)",
    Aggregation.LATEST: "arg_max(value, event_time) {of}",
    Aggregation.MIN: "min(value) {of}",
    Aggregation.MAX: "max(value) {of}",
    Aggregation.SUM: "sum(value) {of}",
    Aggregation.COUNT: "count(*)::double",
    Aggregation.FIRST: "arg_min(value, event_time) {of}",
    Aggregation.STDDEV: "stddev_samp(value) {of}",
    Aggregation.MEDIAN: "median(value) {of}",
    Aggregation.QUANTILE: "(quantile_cont(value, {probabilities}) {of})[list_position({probabilities}, any_value(quantile))]",
    Aggregation.TIME_WEIGHTED_AVERAGE: "any_value(linked)",
    Aggregation.COUNTER_INCREASE: "any_value(linked)",
    Aggregation.CIRCULAR_MEAN: "case when {length} >= 1e-9 then round((degrees(atan2({east}, {north})) + 360) % 360, 9) % 360 end",
}
"""`linked`: of types that look at earlier windows too."""
ANGLE = {"east": "sum(sin(radians(value % 360))) {of}", "north": "sum(cos(radians(value % 360))) {of}"}
LENGTH = "(sqrt(({east}) ** 2 + ({north}) ** 2) / count(*))"
Linked = tuple[str, str, datetime | None, datetime, float]
IN_ORDER = (Aggregation.TIME_WEIGHTED_AVERAGE, Aggregation.COUNTER_INCREASE)
STEPS = "metric VARCHAR, step BIGINT, slide BIGINT, aggregation VARCHAR, quantile DOUBLE"
FEATURES = "place BIGINT, feature VARCHAR, device_id VARCHAR, metric VARCHAR"
# A remainder that is never negative, also of instants before 1970.
WHOLE_MULTIPLE = "create or replace macro whole_multiple(a, b) as a - ((a % b) + b) % b"
PLACED = """
  create or replace temp table placed as
  with member as (
    select c.*, s.step, s.slide, s.aggregation, s.quantile, whole_multiple(epoch_us(event_time), 1000000) // 1000000 as second
    from counted c join steps s using (metric)
    where list_contains(groups, $name) and not (is_late and $without_late)
  )
  select * exclude (name, begins, ends), begins as window_start, ends as window_end
  from member m asof join calendar_windows c on c.name = m.metric and m.event_time >= c.begins
  where step is null
  union all by name
  select *, window_end - to_seconds(step) as window_start from (
    select *, make_timestamp((whole_multiple(second, slide) + (1 + unnest(range(step // slide))) * slide) * 1000000) as window_end
    from member where step is not null
  )
"""
NEIGHBOURS = "(from {placed} left join linked using (device_id, metric, window_end))"
LINKED = "device_id VARCHAR, metric VARCHAR, began TIMESTAMP, window_end TIMESTAMP, linked DOUBLE"
OF_METERS = """
  select device_id, metric, epoch_us(window_end), epoch_us(event_time), value from {placed}
  where aggregation = 'counter_increase' order by device_id, metric, window_end, event_time
"""
OF_HELD = """
  select distinct device_id, metric, epoch_us(event_time) as micros, value from {placed}
  where aggregation = 'time_weighted_average' order by device_id, metric, micros
"""
HELD = """
  insert into windows by name
  select device_id, metric, began as window_start, window_end, linked as value, 0 as count, abs(linked) as size,
    abs(linked) as value_size
  from linked join steps using (metric) anti join windows using (device_id, metric, window_end)
  where aggregation = 'time_weighted_average' and window_end <= $closed_until
"""
WINDOWS = """
  create or replace temp table windows as
  select device_id, metric, any_value(window_start) as window_start, window_end,
    case any_value(aggregation) {of_type} end as value, count(*) as count, min(value) as min, max(value) as max, sum(value) as sum,
    arg_max(value, event_time) as latest, min(bronze_batch) as first_batch, greatest(abs(min(value)), abs(max(value))) as size,
    {value_size} as value_size
  from {placed} where window_end <= $closed_until group by device_id, metric, window_end
"""
CELLS = """
  create or replace temp table cells as
  select coalesce($entity, w.device_id) as entity, f.place, window_end, value, value_size as size
  from windows w join features f on f.metric = w.metric and (f.device_id is null or f.device_id = w.device_id)
"""
VECTORS = """
  create or replace temp table vectors as
  with due as (select distinct entity, window_end from cells),
  wanted as (select due.*, f.place, f.feature from due cross join features f),
  fresh as (
    select w.*, c.size, c.value, c.window_end as ended_at, w.window_end - c.window_end <= to_seconds($max_fill) as is_there
    from wanted w asof left join (from cells where value is not null) c
      on c.entity = w.entity and c.place = w.place and w.window_end >= c.window_end
  )
  select entity, {window_start} as window_start, window_end,
    list(case when is_there then value end order by place) as vector, list(case when is_there then size end order by place) as sizes,
    list_filter(list(case when not coalesce(is_there, false) then feature end order by place), lambda name: name is not null) as missing,
    list_filter(list(case when is_there and ended_at < window_end then feature end order by place), lambda name: name is not null) as filled
  from fresh group by entity, window_end
"""
EVER = datetime(1, 1, 1, tzinfo=UTC)


def windows(
    store: duckdb.DuckDBPyConnection, group: Group, metrics: Mapping[str, Metric], closed_until: datetime, set_aside: str | None = None
) -> None:
    """Makes the table `windows` of the group: those of `counted` that end at `closed_until` or before.

    `set_aside`: identity and window_end of readings that came when that window was closed, for a group that keeps such rows aside; rows of
    silver.late do not count then either. `size` is the largest reading of a window: what sums are compared by.
    """
    used = [metrics[name] for name in group.metrics]
    store.execute(WHOLE_MULTIPLE)
    steps = ((m.name, m.step_seconds, m.slide_seconds or m.step_seconds, m.aggregation.value, m.quantile) for m in used)
    fill(store, "steps", STEPS, steps)
    make_calendar_windows(store, [metric for metric in used if metric.step is not None])
    store.execute(PLACED, {"name": group.name, "without_late": set_aside is not None})
    placed = "placed" if set_aside is None else f"(from placed anti join {set_aside} using (bronze_batch, bronze_row, part, window_end))"
    if any(metric.aggregation in IN_ORDER for metric in used):
        meters, held = (store.execute(sql.format(placed=placed)).fetchall() for sql in (OF_METERS, OF_HELD))
        fill(store, "linked", LINKED, chain(_rises(meters, metrics), _averages(store, held, metrics)))
        placed = NEIGHBOURS.format(placed=placed)
    store.execute(WINDOWS.format(**_by_type(used), placed=placed), {"closed_until": _utc(closed_until)})
    if any(metric.aggregation is Aggregation.TIME_WEIGHTED_AVERAGE for metric in used):
        store.execute(HELD, {"closed_until": _utc(closed_until)})


def _rises(rows: list[tuple[str, str, int, int, float]], metrics: Mapping[str, Metric]) -> Iterator[Linked]:
    for (device_id, name), of_meter in groupby(rows, itemgetter(0, 1)):
        metric = metrics[name]
        step = (metric.step_seconds or 0) * 1_000_000
        slide = step if metric.slide_seconds is None else metric.slide_seconds * 1_000_000
        for end, rise in increases(metric.counter or CounterRule(), slide, step, (row[2:] for row in of_meter)):
            yield device_id, name, None, _utc(from_micros(end)), rise


def _averages(store: duckdb.DuckDBPyConnection, rows: list[tuple[str, str, int, float]], metrics: Mapping[str, Metric]) -> Iterator[Linked]:
    of_calendar = store.execute("select name, epoch_us(begins), epoch_us(ends) from calendar_windows order by all").fetchall()
    for (device_id, name), of_device in groupby(rows, itemgetter(0, 1)):
        metric = metrics[name]
        days = [(begin, end) for metric_name, begin, end in of_calendar if metric_name == name]

        def overlapping(at: int, until: int, metric: Metric = metric, days: list[tuple[int, int]] = days) -> Iterable[tuple[int, int]]:
            if metric.step_seconds is None:
                return days[max(bisect(days, (at, 0)) - 1, 0) : bisect(days, (until, 0))]
            step, slide = (seconds * 1_000_000 for seconds in (metric.step_seconds, metric.slide_seconds or metric.step_seconds))
            return ((end - step, end) for end in range((at // slide + 1) * slide, until + step, slide))

        hold = (metric.max_hold_seconds or 86_400) * 1_000_000
        for begin, end, average in averages(hold, overlapping, [(at, value) for *_, at, value in of_device]):
            yield device_id, name, _utc(from_micros(begin)), _utc(from_micros(end)), average


OTHERWISE = """
  create or replace temp table windows as
  select n.* replace (
    case when near(o.value, r.value, o.value_size) and not near(n.value, r.value, n.value_size) then o.value else n.value end as value)
  from windows_now n left join windows o using (device_id, metric, window_end)
  left join {recorded} r using (device_id, metric, window_end)
"""
REACHING_BACK = """
  create or replace temp table reaching_back as
  select device_id, w.metric, window_end from windows w join joined j on j.metric = w.metric and first_batch < since_batch
"""


def windows_by_conf(  # noqa: PLR0917
    store: duckdb.DuckDBPyConnection,
    group: Group,
    history: ConfHistory,
    closed_until: datetime,
    set_aside: str | None = None,
    recorded: str = "revisions",
) -> None:
    """Makes `windows` of the group, each by the conf that gold may have closed it with.

    Gold makes the value of a window when it closes, so of a metric that was aggregated otherwise a window has either value: the recorded
    one counts where a conf gives it. Windows with readings from before the group had the metric are left out of `windows` and `recorded`.
    """
    metrics = history.running.metrics
    windows(store, group, metrics, closed_until, set_aside)
    store.execute(NEAR)
    for era in reversed(history.eras[:-1]):
        before = {name: era.conf.metrics.get(name, metrics[name]) for name in group.metrics}
        if any(_counts(before[name]) != _counts(metrics[name]) for name in group.metrics):
            store.execute("create or replace temp table windows_now as from windows")
            windows(store, group, metrics | before, closed_until, set_aside)
            store.execute(OTHERWISE.format(recorded=recorded))
    joined = [(name, history.since_batch(group.name, name)) for name in group.metrics]
    fill(store, "joined", "metric VARCHAR, since_batch BIGINT", joined)
    store.execute(REACHING_BACK)
    for name in ("windows", recorded):
        store.execute(f"create or replace temp table {name} as from {name} anti join reaching_back using (device_id, metric, window_end)")


def _counts(metric: Metric) -> tuple[object, ...]:
    return metric.aggregation, metric.quantile, metric.counter, metric.max_hold_seconds


def _by_type(used: list[Metric]) -> dict[str, str]:
    """SQL for the value of a window, and for the size that it is compared by: where angles all but cancel out, their mean is less sure."""
    probabilities = sorted({metric.quantile for metric in used if metric.quantile is not None})
    values, sizes = "", "greatest(abs(min(value)), abs(max(value)))"
    for kind in sorted({metric.aggregation for metric in used}):
        condition = f"filter (aggregation = '{kind}')"
        angle = {name: sql.format(of=condition) for name, sql in ANGLE.items()}
        length = LENGTH.format(**angle)
        values += f" when '{kind}' then {OF_TYPE[kind].format(of=condition, probabilities=probabilities, length=length, **angle)}"
        if kind is Aggregation.CIRCULAR_MEAN:
            sizes = f"case any_value(aggregation) when '{kind}' then 360 + 1e-3 / nullif({length}, 0) else {sizes} end"
    return {"of_type": values, "value_size": sizes}


def vectors(store: duckdb.DuckDBPyConnection, group: Group, vector: Vector, metrics: Mapping[str, Metric]) -> None:
    """Makes the table `vectors` of the group from its `windows`; `sizes` belong to the values of `vector`. A vector is due where a window
    of some feature ends. A feature is the newest value that ended by then, if it is not too old."""
    features = list(_features(group, vector))
    fill(store, "features", FEATURES, features)
    store.execute(CELLS, {"entity": None if vector.entity == "device" else group.name})
    base = metrics[_base(features, metrics)]
    start = f"window_end - to_seconds({_nominal_step(base)})"
    if base.step is not None:
        start = f"(select max(c.begins) from calendar_windows c where c.name = {literal(base.name)} and c.begins < window_end)"
    store.execute(VECTORS.format(window_start=start), {"max_fill": vector.max_fill_seconds})


def step_seconds(group: Group, vector: Vector, metrics: Mapping[str, Metric]) -> int:
    """Return the seconds from one vector to the next."""
    return _nominal_step(metrics[_base([*_features(group, vector)], metrics)])


def _base(features: Sequence[tuple[int, str, str | None, str]], metrics: Mapping[str, Metric]) -> str:
    """Return the metric with the least step, of equal ones the first."""
    return min((name for *_, name in features), key=lambda name: _nominal_step(metrics[name]))


def _nominal_step(metric: Metric) -> int:
    """Seconds from one window to the next, by which the base of a vector is chosen: days count 24 hours, and months 31 days."""
    days = {"day": 1, "week": 7, "month": 31}
    return metric.slide_seconds or metric.step_seconds or days[str(metric.step)] * 86_400


def _features(group: Group, vector: Vector) -> Iterator[tuple[int, str, str | None, str]]:
    """Yield FEATURES. Names of devices and of metrics may hold dots: the longest metric that ends the feature is its metric."""
    for index, feature in enumerate(vector.features):
        if vector.entity == "device":
            yield index, feature, None, feature
        else:
            metric = max((name for name in group.metrics if feature.endswith(f".{name}")), key=len)
            yield index, feature, feature.removesuffix(f".{metric}"), metric


def _utc(instant: datetime) -> datetime:
    """Convert an instant as the store holds it: in UTC, without a zone."""
    return instant.astimezone(UTC).replace(tzinfo=None)
