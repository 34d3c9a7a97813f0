"""The view of groups: how fresh each is; for one group its windows and vectors as charts, with the newest values by device."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from gold.windows.spec import Group
from gold.windows.vectors import features_of
from orchestration.storage.delta import literal
from orchestration.storage.ops_tables import NOTES, Note
from orchestration.web.freshness import Freshness, freshness, has_gold
from orchestration.web.queries import ViewRequest
from orchestration.web.spans import Span, span_of
from silver.spec import Metric

MOST_GROUPS, MOST_ROWS, MOST_DEVICES = 200, 200, 6
NEWEST = "select max(window_end) as newest from {table}_history"
OF_ALL = "silver.devices, gold.aggregates_history"
OF_ONE = f"{OF_ALL}, silver.readings, gold.{{group}}_aggregates_history, gold.{{group}}_vectors, gold.{{group}}_live"
VALUES = """
  select *, count(*) over () as every from (
    select device_id, metric, max(window_end) as ended_at, arg_max(value, window_end) as value, arg_max(count, window_end) as count,
      arg_max(revision, window_end) as revision, count(*) as windows, count(*) filter (revision > 0) as amended
    from {table} where window_end > {start} and window_end <= {end} group by all)
  order by ended_at, device_id, metric limit {most}
"""
PARTS = 750
"""Parts of a span. If a line has more windows, each part shows the least and the greatest."""
WINDOWS = """
  select device_id, metric, epoch(window_end) as ended, value, revision,
    count(*) over (partition by device_id, metric) as windows, floor((epoch(window_end) - {start}) / {length} * {parts}) as place
  from gold.{group}_aggregates
  where window_end > {since} and window_end <= {until} and device_id in {devices} and value is not null
  qualify windows <= 2 * {parts} or row_number() over (partition by device_id, metric, place order by value) = 1
    or row_number() over (partition by device_id, metric, place order by value desc) = 1
  order by device_id, metric, window_end
"""
OPEN = """
  select device_id, metric, epoch(window_end) as ended, value from gold.{group}_live where device_id in {devices} order by window_end
"""
CARRIED = """
  select entity, feature, epoch(window_end) as ended, vector[list_position({features}, feature)] as value
  from (select entity, window_end, vector, unnest(filled) as feature from gold.{group}_vectors
    where window_end > {since} and window_end <= {until} and entity in {entities})
  where value is not null order by ended
"""
Lines = dict[tuple[str, str, str], list[tuple[float, float | None]]]
"""Points by metric, device and kind: window, amended, open or carried. A null breaks the line."""


@dataclass(frozen=True)
class Chart:
    """`lines`: device, kind, points (x: seconds since 1970). `thinned`: windows of a line that shows fewer. `notes`: on the span."""

    group: str
    metric: Metric
    lines: Sequence[tuple[str, str, Sequence[tuple[float, float | None]]]]
    thinned: int
    notes: Sequence[Note]

    @property
    def data(self) -> str:
        """JSON for the script that draws it."""
        lines = [
            {"device": device, "kind": kind, "x": [x for x, _ in points], "y": [y for _, y in points]}
            for device, kind, points in self.lines
        ]
        bands = [{"start": note.begins_at.timestamp(), "end": note.ends_at.timestamp(), "text": note.text} for note in self.notes]
        return json.dumps({"group": self.group, "metric": self.metric.name, "lines": lines, "bands": bands})

    @property
    def newest(self) -> Sequence[tuple[str, float, float]]:
        """The newest windows of each device: device, end and value; for who does not look at the chart."""
        closed = [(device, points) for device, kind, points in self.lines if kind == "window"]
        return [(device, x, y) for device, points in closed for x, y in [*reversed(points)][:3] if y is not None]


@dataclass(frozen=True)
class Groups:
    """`all`: the first MOST_GROUPS of `count`, the worst first. `group` None: none is chosen, and what follows is empty; else `all` is.

    `newest`: the end of its newest window. `values`: rows of VALUES, the oldest first; `devices`: those in the charts.
    """

    at: datetime
    all: Sequence[Freshness]
    count: int
    group: Group | None = None
    fresh: Freshness | None = None
    newest: datetime | None = None
    span: Span | None = None
    values: Sequence[Mapping[str, Any]] = ()
    devices: Sequence[str] = ()
    charts: Sequence[Chart] = ()
    params: Mapping[str, Any] = field(default_factory=dict)

    def params_with(self, **changes: Any) -> dict[str, Any]:
        """Return the parameters of this view, some of them changed."""
        return {name: value for name, value in {**self.params, **changes}.items() if value not in (None, "")}


def groups(request: ViewRequest) -> Groups:
    """`group`, `device` (again for each one), and a span; without a group the freshness of all."""
    group = request.conf.groups.get(request.params.get("group", ""))
    if group is None:
        every = freshness(request.conf, replace(request, tables=OF_ALL).rows)
        return Groups(request.now, every[:MOST_GROUPS], len(every))
    request = replace(request, tables=OF_ONE.format(group=group.name))
    (fresh,) = freshness(request.conf, request.rows, group.name)
    newest = fresh.newest_at
    if newest is None and has_gold(request.conf):
        newest = request.rows(NEWEST.format(table=f"gold.{group.name}_aggregates"))[0]["newest"]
    if newest is None:
        return Groups(request.now, (), 0, group, fresh)
    span = span_of(request.params, newest)
    table, between = f"gold.{group.name}_aggregates", {"start": literal(span.start), "end": literal(span.end)}
    values = request.rows(VALUES.format(table=table, **between, most=MOST_ROWS))
    chosen = [name for name in dict.fromkeys(request.params.getlist("device")) if name][:MOST_DEVICES]
    devices = chosen or [*dict.fromkeys(row["device_id"] for row in sorted(values, key=lambda row: row["device_id"]))][:MOST_DEVICES]
    drawn = _charts(request, group, span, devices, is_newest=span.end >= newest)
    named = {"span": span.name} if span.name else {"from": span.start.isoformat(), "to": span.end.isoformat()}
    params = {"group": group.name, "device": chosen, **named}
    return Groups(request.now, (), 0, group, fresh, newest, span, values, devices, drawn, params)


def _charts(request: ViewRequest, group: Group, span: Span, devices: Sequence[str], *, is_newest: bool) -> list[Chart]:
    """Draw one for each metric that has something to show. `is_newest`: the span reaches up to now, so that open windows belong to it."""
    values: dict[str, Any] = {"group": group.name, "devices": literal([*devices])}
    values |= {"since": literal(span.start), "until": literal(span.end)}
    length = (span.end - span.start).total_seconds()
    windows = request.rows(WINDOWS.format(**values, start=span.start.timestamp(), length=length, parts=PARTS)) if devices else []
    lines: Lines = defaultdict(list)
    for row in windows:
        lines[row["metric"], row["device_id"], "window"].append((row["ended"], row["value"]))
        if row["revision"]:
            lines[row["metric"], row["device_id"], "amended"].append((row["ended"], row["value"]))
    if is_newest and windows:
        _add_open(request, lines, values)
    if group.vector is not None and windows:
        _add_carried(request, group, lines, values)
    thinned = {row["metric"]: row["windows"] for row in windows if row["windows"] > 2 * PARTS}
    drawn, notes = [], NOTES.rows(request.conf.lake, [("begins_at", "<=", span.end), ("ends_at", ">=", span.start)])
    for name in group.metrics:
        metric = request.conf.metrics[name]
        of_metric = [
            (device, kind, [*_broken(points, metric.every_seconds)] if kind == "window" and name not in thinned else points)
            for (measured, device, kind), points in sorted(lines.items())
            if measured == name
        ]
        if of_metric:
            drawn.append(Chart(group.name, metric, of_metric, thinned.get(name, 0), notes))
    return drawn


def _add_open(request: ViewRequest, lines: Lines, values: Mapping[str, Any]) -> None:
    """Add windows that no watermark has passed, as far as readings have come; each line goes on from its last closed window."""
    for row in request.rows(OPEN.format(**values)):
        line = lines[row["metric"], row["device_id"], "open"]
        if not line:
            line += lines.get((row["metric"], row["device_id"], "window"), [])[-1:]
        line.append((row["ended"], row["value"]))


def _add_carried(request: ViewRequest, group: Group, lines: Lines, values: Mapping[str, Any]) -> None:
    """Add features of vectors that an earlier window has filled, by the metric and device that they are of."""
    assert group.vector is not None
    by_device = group.vector.entity == "device"
    metrics = features_of(group, group.vector)
    names = {**values, "features": f"[{', '.join(map(literal, group.vector.features))}]"}
    entities = values["devices"] if by_device else literal([group.name])
    for row in request.rows(CARRIED.format(**names, entities=entities)):
        metric = metrics.get(row["feature"])
        device = row["entity"] if by_device else row["feature"].removesuffix(f".{metric}")
        if metric is not None and (metric, device, "window") in lines:
            lines[metric, device, "carried"].append((row["ended"], row["value"]))


def _broken(points: Sequence[tuple[float, float | None]], step: float) -> Iterator[tuple[float, float | None]]:
    """Put a null behind each window that no other one follows after a step."""
    for (x, y), (following, _) in pairwise(points):
        yield x, y
        if following - x > 1.5 * step:
            yield x + step, None
    yield from points[-1:]
