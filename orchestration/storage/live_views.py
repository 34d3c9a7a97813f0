"""Windows that a snapshot has not closed, with what has come of them: gold.<group>_live, and gold.live of all groups.

Grain and columns are those of gold.<group>_aggregates without revision and gold_batch, so that both together are every window, as a batch
job over the prefix of the snapshot gives it. SQL for DuckDB alone; the pages' charts read it too.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from gold.windows.calendar import SPAN, windows_of_spans
from gold.windows.spec import IN_ORDER
from orchestration.conf.place import GroupWindows
from orchestration.storage.delta import FIRST_INSTANT, in_log, literal, open_table
from orchestration.storage.generations import Generation, numbered
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
    "series": (
        "list({{'at': epoch_us(event_time), 'value': value}} order by event_time)",
        *IN_ORDER,
    ),
}
"""Measures beside those that every window has, and the aggregation types that ask for them."""
VALUES = {
    Aggregation.AVERAGE: "sum / count",
    Aggregation.COUNT: "count::double",
    Aggregation.QUANTILE: "quantiles[list_position({probabilities}, quantile)]",
    Aggregation.CIRCULAR_MEAN: "case when sqrt(east ** 2 + north ** 2) >= 1e-9 * count"
    " then round((degrees(atan2(east, north)) + 360) % 360, 9) % 360 end",
    **dict.fromkeys(IN_ORDER, "null"),
}
"""Measures of a window; other aggregation types are a measure by themselves."""
SELECT = """
  select * from (with settings as (
    select * exclude (names), unnest(string_split(names, ' ')) as device_group
    from (values {settings}) as s(names, metric, step, slide, aggregation, quantile, closed, keeps_aside)
  ),
  arrived as ({arrived}),
  placed as (
    select *, {ended} as ended, {began} as began
    from (select * exclude (groups), unnest(list_distinct(groups)) as device_group from arrived) join settings using (device_group, metric)
      {calendar} cross join unnest(range(step // slide)) as slides(nth)
    where not (is_late and keeps_aside)
  ),
  measured as (
    select device_group, device_id, metric, began, ended, aggregation, quantile, count(*) as count, min(value) as min,
      max(value) as max, sum(value) as sum, arg_max(value, event_time) as latest{measures}
    from placed where ended > closed group by device_group, device_id, metric, began, ended, aggregation, quantile
  )
  select device_group, device_id, metric, to_timestamp(began) as window_start, to_timestamp(ended) as window_end,
    case aggregation {values} end::double as value, count, min, max, sum, latest{series}
  from measured)
"""
STEPS = {"ended": "(floor(floor(epoch(event_time)) / slide) + 1 + nth) * slide", "began": "ended - step", "calendar": ""}
CALENDAR = {
    "ended": f"coalesce(if(epoch(event_time) < changes, changes, later), {STEPS['ended']})",
    "began": f"coalesce(if(epoch(event_time) < changes, begins, changes), {STEPS['began']})",
    "calendar": f"""left join (from (values {{spans}}) as c(of_metric, span, begins, changes, later)) as spans
      on of_metric = metric and span = floor(epoch(event_time) / {SPAN})""",
}
"""The windows of a reading where metrics have windows by the calendar: those of the span of time that it is in."""
NEWEST = """
  select device_group, device_id, metric, window_end, carry, revision from (
    select device_group, device_id, metric, window_end, carry, revision,
      row_number() over (partition by device_group, device_id, metric order by window_end desc, revision desc) as nth
    from ({rows}) as closed where carry is not null
  ) as numbered where nth = 1
"""
"""The newest window of each device and metric among rows of gold.aggregates, with what the next one goes on from."""


@dataclass(frozen=True)
class LiveView(View):
    """`parts`: readings, late rows if there are any, and so many tables of closed windows. `closed_until`: of each group that it shows,
    None for one without windows yet."""

    plant: Plant | None = field(default=None, compare=False)
    closed_until: Mapping[str, datetime | None] = field(default_factory=dict, compare=False)
    tables_of_closed: int = 0

    @property
    def _arriving(self) -> tuple[Part, ...]:
        return self.parts[: len(self.parts) - self.tables_of_closed]

    @property
    def metrics(self) -> dict[str, "Metric"]:
        """Metrics of its groups. ConfError where the conf has mistakes."""
        assert self.plant is not None
        return {metric.name: metric for name in self.closed_until for metric in self.plant.group_windows[name].metrics}

    @property
    def is_linked(self) -> bool:
        """Whether it has windows that DuckDB alone cannot complete: see `completed`."""
        return any(metric.aggregation in IN_ORDER for metric in self.metrics.values())

    def select(self, rows: Sequence[str]) -> str:
        """A query that DuckDB understands, of windows that are not linked."""
        return f"select {', '.join(self.columns)} from ({self.windows(rows)})"

    def newest(self, rows: Sequence[str]) -> str:
        """A query of the newest closed window of each device and metric, with what it carries."""
        if not (tables := rows[len(rows) - self.tables_of_closed :]):
            return f"select device_group, device_id, metric, window_end, null::double[] as carry from ({self.windows(rows)}) limit 0"
        groups = f"device_group in {literal([*self.closed_until])}"
        return NEWEST.format(rows=" union all ".join(f"select * from {table} where {groups}" for table in tables))

    def completed(self, windows: pa.Table, newest: pa.Table) -> pa.Table:
        """Give linked windows their value."""
        import pyarrow.compute as pc  # other queries do without these

        from gold.windows.links import WINDOWS, link

        is_linked = pc.is_in(windows["metric"], pa.array([m.name for m in self.metrics.values() if m.aggregation in IN_ORDER]))
        rows = pa.concat_tables([windows.filter(is_linked), newest], promote_options="default")
        columns = [rows[name] if name in rows.column_names else pa.nulls(len(rows), WINDOWS.field(name).type) for name in WINDOWS.names]
        made = link(pa.table(columns, WINDOWS.names).cast(WINDOWS), self.metrics)
        return pa.concat_tables(
            [windows.filter(pc.invert(is_linked)).select(self.columns), made.select(self.columns)], promote_options="permissive"
        )

    def windows(self, rows: Sequence[str]) -> str:
        """A query of all windows, those that are linked with their `series` in place of a value."""
        assert self.plant is not None
        windows, metrics = {name: self.plant.group_windows[name] for name in self.closed_until}, self.metrics
        kinds = sorted({metric.aggregation for metric in metrics.values()})
        probabilities = sorted({metric.quantile for metric in metrics.values() if metric.quantile is not None})
        values = (f"when '{kind}' then {VALUES.get(kind, kind).format(probabilities=probabilities)}" for kind in kinds)
        spans = ", ".join(self._spans(metrics.values()))
        return SELECT.format(
            settings=", ".join(self._settings(windows)),
            arrived=self._arrived(rows, max(metric.longest_seconds for metric in metrics.values())),
            **({name: sql.format(spans=spans) for name, sql in CALENDAR.items()} if spans else STEPS),
            measures="".join(_measures(kinds)).format(probabilities=probabilities),
            series=", series" if self.is_linked else "",
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
                cells = (" ".join(names), metric.name, metric.window_seconds, metric.every_seconds, metric.aggregation.value)
                numbers = (metric.quantile, EVER if closed is None else closed.timestamp())
                written = (*map(literal, cells), *(f"{'null' if number is None else number}::double" for number in numbers))
                yield f"({', '.join(written)}, {keeps_late_aside})"

    def _spans(self, metrics: Collection[Metric]) -> Iterator[str]:
        """Yield a row for each calendar metric and span of time that readings may be in, by the logs."""
        calendars = [(metric, calendar) for metric in metrics if (calendar := metric.calendar)]
        logs = [in_log(open_table(part.location, part.version), "min.event_time", "max.event_time") for part in self._arriving if calendars]
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
            for table, part, is_late in zip(rows, self._arriving, ("false", "true"), strict=False)
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
            of_group = _tables_of_closed(plant, snapshot, generation, [group])
            yield LiveView(f"gold.{group}_live", (*parts, *of_group), COLUMNS[1:], (), plant, {group: closed[group]}, len(of_group))
        if text is None or ALL_GROUPS.search(text):
            of_all = _tables_of_closed(plant, snapshot, generation, closed)
            yield LiveView("gold.live", (*parts, *of_all), COLUMNS, (), plant, closed, len(of_all))


def _tables_of_closed(plant: Plant, snapshot: Snapshot, generation: Generation, groups: Iterable[str]) -> tuple[Part, ...]:
    names = {generation.gold(plant.stream_of[group], "aggregates") for group in groups}
    return tuple(Part(generation.table(plant.lake, name), snapshot.versions[name]) for name in sorted(names & snapshot.versions.keys()))
