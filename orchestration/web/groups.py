"""The view of groups: how fresh each is; for one group its windows and vectors as charts, with the newest values by device."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from gold.windows.spec import Group
from gold.windows.vectors import features_of
from orchestration.storage.delta import literal
from orchestration.web.anomalies import MOST_BANDS, Anomalies, anomalies, has_anomalies, lines_of_anomalies
from orchestration.web.charts import PARTS, THINNED, Band, Chart, bands_of, broken, limits_of
from orchestration.web.freshness import Freshness, freshness, has_gold
from orchestration.web.queries import ViewRequest
from orchestration.web.spans import Span, span_of
from silver.metric import Metric

MOST_GROUPS, MOST_LISTED, LEAST_LISTED, MOST_VALUES, MOST_DEVICES, WORST = 200, 200, 20, 2_000, 6, 3
NEWEST = "select max(window_end) as newest from {table}_history"
OF_ALL = "silver.devices, gold.aggregates_history"
OF_ONE = f"{OF_ALL}, silver.readings, gold.alerts, gold.{{group}}_aggregates_history, gold.{{group}}_vectors, gold.{{group}}_live"
LISTED = """
  select device_id, max(ended_at) as ended_at, map(list(metric), list(newest)) as metrics, count(*) over () as every from (
    select device_id, metric, max(window_end) as ended_at, struct_pack(ended := epoch(max(window_end)), value := arg_max(value, window_end),
      count := arg_max(count, window_end), revision := arg_max(revision, window_end)) as newest
    from gold.{group}_aggregates where window_end > {since} and window_end <= {until} group by all)
  group by device_id order by ended_at, device_id limit {most}
"""
WINDOWS = """
  select device_id, metric, epoch(window_end) as x, value, revision,
    2 * count < median(count) over (partition by device_id, metric) as is_partial
  from gold.{group}_aggregates
  where window_end > {since} and window_end <= {until} and device_id in {devices} and value is not null
"""
BAND = """
  select metric, epoch(max(window_end)) as ended, min(value) as least, max(value) as most from gold.{group}_aggregates
  where window_end > {since} and window_end <= {until} and value is not null
  group by metric, floor((epoch(window_end) - {start}) / {length} * {parts}) order by ended
"""
"""The least and the greatest value of all devices."""
OPEN = """
  select device_id, metric, epoch(window_end) as ended, value from gold.{group}_live where device_id in {devices} order by window_end
"""
CARRIED = """
  select entity, feature, epoch(window_end) as ended, vector[list_position({features}, feature)] as value
  from (select entity, window_end, vector, unnest(filled) as feature from gold.{group}_vectors
    where window_end > {since} and window_end <= {until} and entity in {entities})
  where value is not null order by ended
"""
EXTREMES = ("least", "most")
Lines = dict[tuple[str, str, str], list[tuple[float, float | None]]]
"""Points by metric, device and kind: window, amended, partial, open, carried, anomaly, low and high of what was expected, or EXTREMES of
all devices."""


@dataclass(frozen=True)
class Groups:
    """`all`: the first MOST_GROUPS of `count`, the worst first. `group` None: none is chosen, and what follows is empty; else `all` is.

    `metrics`: of the group. `newest`: the end of its newest window. `listed`: rows of LISTED, the worst first; `devices`: those in the
    charts; `has_band`: which have the least and the greatest of all devices too. `anomalies`: None where vectors are not judged.
    """

    at: datetime
    all: Sequence[Freshness]
    count: int
    group: Group | None = None
    fresh: Freshness | None = None
    metrics: Sequence[Metric] = ()
    newest: datetime | None = None
    span: Span | None = None
    listed: Sequence[Mapping[str, Any]] = ()
    devices: Sequence[str] = ()
    has_band: bool = False
    charts: Sequence[Chart] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    anomalies: Anomalies | None = None


def groups(request: ViewRequest) -> Groups:
    """`group`, `device` (again for each one), and a span; without a group the freshness of all."""
    group = request.conf.groups.get(request.params.get("group", ""))
    if group is None:
        every = freshness(request.conf, replace(request, tables=OF_ALL).rows)
        return Groups(request.now, every[:MOST_GROUPS], len(every))
    is_judged = has_anomalies(request.conf, group)
    tables = OF_ONE.format(group=group.name)
    request = replace(request, tables=f"{tables}, gold.{group.name}_anomalies" if is_judged else tables)
    (fresh,) = freshness(request.conf, request.rows, group.name)
    newest = fresh.newest_at
    if newest is None and has_gold(request.conf):
        newest = request.rows(NEWEST.format(table=f"gold.{group.name}_aggregates"))[0]["newest"]
    if newest is None:
        return Groups(request.now, (), 0, group, fresh)
    metrics = [request.conf.metrics[name] for name in group.metrics]
    span = span_of(request.params, newest)
    values = {"group": group.name, "since": literal(span.start), "until": literal(span.end)}
    most = min(MOST_LISTED, max(MOST_VALUES // len(metrics), LEAST_LISTED))
    listed = request.rows(LISTED.format(**values, most=most))
    chosen = [name for name in dict.fromkeys(request.params.getlist("device")) if name][:MOST_DEVICES]
    has_band = not chosen and len(listed) > MOST_DEVICES
    devices = chosen or sorted(row["device_id"] for row in listed[: WORST if has_band else MOST_DEVICES])
    charts, newest_anomalies = [], anomalies(request, group, newest) if is_judged else None
    if devices:
        values["devices"] = literal(devices)
        lines, thinned = _lines(request, group, span, values, is_newest=span.end >= newest, has_band=has_band)
        if is_judged:
            _add_anomalies(request, group, lines, values, span)
        charts = _charts(request, group, lines, thinned, [*bands_of(request, [*devices, group.name], span.start, span.end)])
    named = {"span": span.name} if span.name else {"from": span.start.isoformat(), "to": span.end.isoformat()}
    params = {"group": group.name, "device": chosen, **named}
    return Groups(request.now, (), 0, group, fresh, metrics, newest, span, listed, devices, has_band, charts, params, newest_anomalies)


def _lines(
    request: ViewRequest, group: Group, span: Span, values: Mapping[str, Any], *, is_newest: bool, has_band: bool
) -> tuple[Lines, dict[str, int]]:
    """Read the points of all lines, and how many windows a line of a metric has where it shows fewer.

    `is_newest`: the span reaches up to now, so that open windows belong to it.
    """
    parts = {"start": span.start.timestamp(), "length": (span.end - span.start).total_seconds(), "parts": PARTS}
    lines: Lines = defaultdict(list)
    for row in request.rows(BAND.format(**values, **parts)) if has_band else ():
        for kind in EXTREMES:
            lines[row["metric"], "all devices", kind].append((row["ended"], row[kind]))
    windows = request.rows(THINNED.format(rows=WINDOWS.format(**values), line="device_id, metric", parts=PARTS))
    for row in windows:
        for kind, is_such in (("window", True), ("amended", row["revision"]), ("partial", row["is_partial"])):
            if is_such:
                lines[row["metric"], row["device_id"], kind].append((row["x"], row["value"]))
    if is_newest and windows:
        _add_open(request, lines, values)
    if group.vector is not None and windows:
        _add_carried(request, group, lines, values)
    return lines, {row["metric"]: row["points"] for row in windows if row["points"] > 2 * PARTS}


def _charts(request: ViewRequest, group: Group, lines: Lines, thinned: Mapping[str, int], bands: Sequence[Band]) -> list[Chart]:
    """Draw one for each metric that has something to show."""
    charts = []
    for metric in (request.conf.metrics[name] for name in group.metrics):
        is_broken = metric.name not in thinned
        drawn = [
            (device, kind, [*broken(points, metric.every_seconds)] if kind == "window" and is_broken else points)
            for (name, device, kind), points in sorted(lines.items())
            if name == metric.name and not (metric.is_state and kind in EXTREMES)
        ]
        if drawn:
            charts.append(Chart(group.name, metric, drawn, thinned.get(metric.name, 0), bands, limits_of(request.conf, metric)))
    return charts


def _add_open(request: ViewRequest, lines: Lines, values: Mapping[str, Any]) -> None:
    """Add windows that no watermark has passed, as far as readings have come; each line goes on from its last closed window.

    A window that ends in the future is drawn now.
    """
    now = request.now.timestamp()
    for row in request.rows(OPEN.format(**values)):
        line = lines[row["metric"], row["device_id"], "open"]
        if not line:
            line += lines.get((row["metric"], row["device_id"], "window"), [])[-1:]
        if not line or line[-1][0] < now:
            line.append((min(row["ended"], now), row["value"]))


def _add_carried(request: ViewRequest, group: Group, lines: Lines, values: Mapping[str, Any]) -> None:
    """Add features of vectors that an earlier window has filled, by the metric and device that they are of."""
    assert group.vector is not None
    for row in request.rows(CARRIED.format(**_of_vectors(group, values))):
        metric, device = _line_of(group, row["entity"], row["feature"])
        if (metric, device, "window") in lines:
            lines[metric, device, "carried"].append((row["ended"], row["value"]))


def _add_anomalies(request: ViewRequest, group: Group, lines: Lines, values: Mapping[str, Any], span: Span) -> None:
    """Add anomalies, and what was expected of devices that have one, if they are few, or of the only device."""
    assert group.vector is not None
    metrics = request.conf.metrics
    steps = {feature: metrics[metric].every_seconds for feature, metric in features_of(group, group.vector).items()}
    of_lines = [
        (*_line_of(group, entity, feature), kind, points)
        for entity, feature, kind, points in lines_of_anomalies(request, _of_vectors(group, values), span, steps)
    ]
    devices = {device for _, device, kind in lines if kind == "window"}
    marked = devices if len(devices) == 1 else {device for _, device, kind, _ in of_lines if kind == "anomaly"}
    for metric, device, kind, points in of_lines:
        has_band = device in marked and len(marked) <= MOST_BANDS and not metrics[metric].is_state
        if (metric, device, "window") in lines and (kind == "anomaly" or has_band):
            lines[metric, device, kind] += points


def _of_vectors(group: Group, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what queries of vectors want: names of features, and the entities that have the devices."""
    assert group.vector is not None
    entities = values["devices"] if group.vector.entity == "device" else literal([group.name])
    return {**values, "features": f"[{', '.join(map(literal, group.vector.features))}]", "entities": entities}


def _line_of(group: Group, entity: str, feature: str) -> tuple[str, str]:
    """Return the metric and the device of a feature."""
    assert group.vector is not None
    metric = features_of(group, group.vector).get(feature, "")
    return metric, entity if group.vector.entity == "device" else feature.removesuffix(f".{metric}")
