"""Windows that a snapshot has not closed, with what has come of them: gold.<group>_live, and gold.live of all groups.

Grain and columns are those of gold.<group>_aggregates without revision and gold_batch, so that both together are every window, as a batch
job over the prefix of the snapshot gives it. SQL for DuckDB alone; the pages' charts read it too.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from gold.windows.calendar import SPAN, windows_of_spans
from orchestration.conf.place import GroupWindows
from orchestration.storage.delta import FIRST_INSTANT, in_log, literal, open_table
from orchestration.storage.generations import numbered
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import Part, Plant, View, views
from orchestration.utc import to_micros
from silver.aggregation import Aggregation
from silver.metric import Metric

TYPES = {
    **dict.fromkeys(("device_group", "device_id", "metric"), "varchar"),
    **dict.fromkeys(("window_start", "window_end"), "timestamptz"),
    "value": "double",
    "count": "bigint",
    **dict.fromkeys(("min", "max", "sum", "latest"), "double"),
}
"""DuckDB's, by column."""
COLUMNS = tuple(TYPES)
EVER = -1e18
"""An instant before all windows, in seconds since 1970."""
IS_LIVE = re.compile(r"gold\.(?:\w+_)?live", re.IGNORECASE)
"""The name of a view of open windows."""
ALL_GROUPS = re.compile(r"(?<!\w)live(?!\w)")
"""Pattern in a query that can mean the view of all groups, whose name those of groups end with."""
MEASURES: dict[str, tuple[str, *tuple[Aggregation, ...]]] = {
    "first": ("arg_min(value, event_time)", Aggregation.FIRST),
    "stddev": ("stddev_samp(value)", Aggregation.STDDEV),
    "median": ("median(value)", Aggregation.MEDIAN),
    "quantiles": ("quantile_cont(value, {probabilities})", Aggregation.QUANTILE),
    "east": ("sum(sin(radians(value % 360)))", Aggregation.CIRCULAR_MEAN),
    "north": ("sum(cos(radians(value % 360)))", Aggregation.CIRCULAR_MEAN),
    "readings": (
        "list({{since: epoch_us(event_time), value: value}} order by event_time)",
        *(Aggregation.TIME_WEIGHTED_AVERAGE, Aggregation.COUNTER_INCREASE),
    ),
}
"""Measures beside those that every window has, and the aggregation types that ask for them."""
VALUES = {
    Aggregation.AVERAGE: "sum / count",
    Aggregation.COUNT: "count::double",
    Aggregation.QUANTILE: "quantiles[list_position({probabilities}, quantile)]",
    Aggregation.CIRCULAR_MEAN: "case when sqrt(east ** 2 + north ** 2) >= 1e-9 * count"
    " then round((degrees(atan2(east, north)) + 360) % 360, 9) % 360 end",
    Aggregation.TIME_WEIGHTED_AVERAGE: "list_sum(list_transform(readings, lambda r, n: r.value *"
    " (coalesce(readings[n + 1].since, ended * 1000000) - r.since))) / (ended * 1000000 - readings[1].since)",
    Aggregation.COUNTER_INCREASE: "list_sum(list_transform(kept, lambda r, n: case when n = 1 then 0"
    " when r.value >= kept[n - 1].value then r.value - kept[n - 1].value"
    " when kept[n - 1].value between width / 2 and width and r.value >= 0 and r.value < width / 2 then width - kept[n - 1].value + r.value"
    " else greatest(r.value, 0) end))",
}
"""Measures of a window; other aggregation types are a measure by themselves."""
SELECT = """
  select * from (with settings as (
    select * exclude (names), unnest(string_split(names, ' ')) as device_group
    from (values {settings}) as s(names, metric, step, slide, aggregation, quantile, width, closed, keeps_aside)
  ),
  arrived as ({arrived}),
  placed as (
    select *, {ended} as ended, {began} as began
    from (select * exclude (groups), unnest(list_distinct(groups)) as device_group from arrived) join settings using (device_group, metric)
      {calendar} cross join unnest(range(step // slide)) as slides(nth)
    where not (is_late and keeps_aside)
  ),
  measured as (
    select device_group, device_id, metric, began, ended, aggregation, quantile, width, count(*) as count, min(value) as min,
      max(value) as max, sum(value) as sum, arg_max(value, event_time) as latest{measures}
    from placed where ended > closed group by device_group, device_id, metric, began, ended, aggregation, quantile, width
  ){kept}
  select {of_group}device_id, metric, to_timestamp(began) as window_start, to_timestamp(ended) as window_end,
    case aggregation {values} end::double as value, count, min, max, sum, latest
  from {measured})
"""
KEPT = """, kept as (
    select *, list_filter(readings, lambda r, n:
      not coalesce(r.value = 0 and readings[n - 1].value <= readings[n + 1].value, false)) as kept from measured
  )"""
"""A single 0 of a counter that goes on as before is no reading."""
STEPS = {"ended": "(floor(floor(epoch(event_time)) / slide) + 1 + nth) * slide", "began": "ended - step", "calendar": ""}
CALENDAR = {
    "ended": f"coalesce(if(epoch(event_time) < changes, changes, later), {STEPS['ended']})",
    "began": f"coalesce(if(epoch(event_time) < changes, begins, changes), {STEPS['began']})",
    "calendar": f"""left join (from (values {{spans}}) as c(of_metric, span, begins, changes, later)) as spans
      on of_metric = metric and span = floor(epoch(event_time) / {SPAN})""",
}
"""The windows of a reading where metrics have windows by the calendar: those of the span of time that it is in."""


@dataclass(frozen=True)
class LiveView(View):
    """`parts`: readings, and late rows if there are any. `closed_until`: of each group that it shows, None for one without windows yet."""

    plant: Plant | None = field(default=None, compare=False)
    closed_until: Mapping[str, datetime | None] = field(default_factory=dict, compare=False)

    def select(self, rows: Sequence[str]) -> str:
        """A query that DuckDB understands. ConfError where the conf has mistakes."""
        assert self.plant is not None
        windows = {name: self.plant.group_windows[name] for name in self.closed_until}
        metrics = {metric.name: metric for group in windows.values() for metric in group.metrics}
        kinds = sorted({metric.aggregation for metric in metrics.values()})
        probabilities = sorted({metric.quantile for metric in metrics.values() if metric.quantile is not None})
        values = (f"when '{kind}' then {VALUES.get(kind, kind).format(probabilities=probabilities)}" for kind in kinds)
        spans = ", ".join(self._spans(metrics.values()))
        has_counters = Aggregation.COUNTER_INCREASE in kinds
        return SELECT.format(
            settings=", ".join(self._settings(windows)),
            arrived=self._arrived(rows, max(metric.longest_seconds for metric in metrics.values())),
            **({name: sql.format(spans=spans) for name, sql in CALENDAR.items()} if spans else STEPS),
            measures="".join(_measures(kinds)).format(probabilities=probabilities),
            kept=KEPT if has_counters else "",
            measured="kept" if has_counters else "measured",
            of_group="device_group, " if self.columns == COLUMNS else "",
            values=" ".join(values),
        )

    def _settings(self, windows: Mapping[str, GroupWindows]) -> Iterator[str]:
        """A row for each metric of groups that are alike: ten thousand groups share few."""
        alike: dict[Any, list[str]] = {}
        for name, group in windows.items():
            metrics = tuple(metric.name for metric in group.metrics)
            alike.setdefault((self.closed_until[name], group.keeps_late_aside, metrics), []).append(name)
        for (closed, keeps_late_aside, _), names in alike.items():
            for metric in windows[names[0]].metrics:
                cells = (
                    " ".join(names),
                    metric.name,
                    metric.window_seconds,
                    metric.every_seconds,
                    metric.aggregation.value,
                )
                numbers = (metric.quantile, metric.wraps_at, EVER if closed is None else closed.timestamp())
                written = (*map(literal, cells), *(f"{'null' if number is None else number}::double" for number in numbers))
                yield f"({', '.join(written)}, {keeps_late_aside})"

    def _spans(self, metrics: Collection[Metric]) -> Iterator[str]:
        """Yield a row for each calendar metric and span of time that readings may be in, by the logs."""
        calendars = [(metric, calendar) for metric in metrics if (calendar := metric.calendar)]
        logs = [in_log(open_table(part.location, part.version), "min.event_time", "max.event_time") for part in self.parts if calendars]
        micros = [at for log in logs for column in log.columns for at in column.cast(pa.int64()).drop_null().to_pylist()]
        for metric, calendar in calendars if micros else ():
            earliest = self._bound(metric.longest_seconds) or FIRST_INSTANT + timedelta(days=366)
            first = max(min(micros), to_micros(earliest)) // (SPAN * 1_000_000)
            for windows in windows_of_spans(calendar, range(first, max(micros) // (SPAN * 1_000_000) + 2)):
                yield f"({literal(metric.name)}, {', '.join(map(str, windows))})"

    def _bound(self, longest: int) -> datetime | None:
        """The earliest instant that an open window can hold; None for any."""
        instants = [closed for closed in self.closed_until.values() if closed is not None]
        return min(instants) - timedelta(seconds=longest) if len(instants) == len(self.closed_until) else None

    def _arrived(self, rows: Sequence[str], longest: int) -> str:
        """Select only the readings that an open window can hold, so that files of earlier ones are not read."""
        earliest = self._bound(longest)
        bound = f" and event_time >= timestamptz '{earliest}'" if earliest else ""
        return " union all ".join(
            f"select device_id, metric, event_time, value, groups, {is_late} as is_late from {table} where {part.where}{bound}"
            for table, part, is_late in zip(rows, self.parts, ("false", "true"), strict=False)
        )


def _measures(kinds: Collection[Aggregation]) -> Iterator[str]:
    for name, (sql, *asking) in MEASURES.items():
        if wanted := [str(kind) for kind in asking if kind in kinds]:
            yield f", {sql} filter (aggregation in {literal(wanted)}) as {name}"


def duckdb_views(plant: Plant, snapshot: Snapshot | None, query: str | None = None) -> dict[str, View]:
    """All that DuckDB can show: those of `views`, and of a snapshot the windows that are open. For `query` see there."""
    text = None if query is None else query.lower()
    live = _of_snapshot(plant, snapshot, text) if snapshot and (text is None or "live" in text) else ()
    return views(plant, snapshot, query) | {view.name: view for view in live}


def _of_snapshot(plant: Plant, snapshot: Snapshot, text: str | None) -> Iterator[LiveView]:
    """Each group, and all groups together; those that `text` can mean."""
    generation, of_prefix = numbered(plant.lake, snapshot.generation), f"bronze_batch <= {snapshot.bronze_batch}"
    parts = tuple(
        Part(generation.table(plant.lake, name), snapshot.versions[name], of_prefix)
        for name in ("silver.readings", "silver.late")
        if snapshot.versions.get(name, -1) >= 0
    )
    closed = {group: snapshot.closed_until.get(stream) for group, stream in plant.stream_of.items()}
    if closed and snapshot.versions.get("silver.readings", -1) >= 0:
        for group in (group for group in closed if text is None or f"{group}_live" in text):
            yield LiveView(f"gold.{group}_live", parts, COLUMNS[1:], (), plant, {group: closed[group]})
        if text is None or ALL_GROUPS.search(text):
            yield LiveView("gold.live", parts, COLUMNS, (), plant, closed)
