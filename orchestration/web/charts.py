"""Charts of metrics over time, as the script draws them: lines, limits across them, and spans of time behind them."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from orchestration.conf.model import Conf
from orchestration.storage.delta import literal
from orchestration.storage.ops_tables import NOTES
from orchestration.storage.positions import ALERTS
from orchestration.storage.snapshots import find_snapshot
from orchestration.web.queries import ViewRequest
from silver.metric import Metric

Points = Sequence[tuple[float, float | None]]
"""Seconds since 1970, and values; a null breaks the line."""
Limit = tuple[float, str, float]
"""A value, its name, and how far from the values it may be and is still shown, as a share of their range."""
PARTS = 750
"""Parts of a line. One of more points than twice as many shows the least and the greatest of each part."""
THINNED = """
  select * from (select *, count(*) over (partition by {line}) as points, ntile({parts}) over (partition by {line} order by x) as part
    from ({rows}))
  qualify points <= 2 * {parts} or row_number() over (partition by {line}, part order by value) = 1
    or row_number() over (partition by {line}, part order by value desc) = 1
  order by {line}, x
"""
"""The rows that are drawn of a query for `x` and `value`. `line`: columns that a line has in common; `points`: how many it has."""
COMPARED = re.compile(r"\bvalue\s*[<>]=?\s*(-?\d+(?:\.\d+)?)")
"""A comparison of the value with a number, in the condition of an alert."""
EPISODES = """
  select alert, entity, min(changed_at) filter (state = 'firing') as begins_at, max(changed_at) filter (state = 'normal') as ends_at
  from gold.alerts where entity in {entities} group by alert, entity, alert_id
  having begins_at < {end} and coalesce(ends_at > {start}, true) order by begins_at desc limit 100
"""


@dataclass(frozen=True)
class Band:
    """A span of time, or an instant, that a chart has behind its lines. `tone`: a class of colours. `metric` None: on all charts."""

    begins_at: datetime
    ends_at: datetime
    text: str
    tone: str = ""
    metric: str | None = None

    def as_json(self) -> dict[str, Any]:
        span = {"start": self.begins_at.timestamp(), "end": self.ends_at.timestamp(), "text": self.text}
        return span | ({"tone": self.tone} if self.tone else {})


@dataclass(frozen=True)
class Chart:
    """`lines`: device, kind, points. `thinned`: points of a line that shows fewer. `of_readings`: its points are readings, not windows.

    `key`: charts with the same one share their cursor.
    """

    key: str
    metric: Metric
    lines: Sequence[tuple[str, str, Points]]
    thinned: int = 0
    bands: Sequence[Band] = ()
    limits: Sequence[Limit] = ()
    of_readings: bool = False

    @property
    def data(self) -> str:
        """JSON for the script that draws it."""
        lines = [
            {"device": device, "kind": kind, "x": [x for x, _ in points], "y": [y for _, y in points]}
            for device, kind, points in self.lines
        ]
        bands = [band.as_json() for band in self.bands if band.metric in (None, self.metric.name)]
        facts = {"group": self.key, "metric": self.metric.name, "unit": self.metric.unit or "", "lines": lines, "bands": bands}
        every = self.metric.every_seconds if self.of_readings else None
        return json.dumps(facts | {"limits": self.limits, "is_stepped": self.metric.is_state, "window_seconds": every})


def limits_of(conf: Conf, metric: Metric, kinds: Sequence[str] = ("reading", "window")) -> list[Limit]:
    """List the limits of a metric: what can be true, and the numbers that alerts on these kinds of signals compare its value with."""
    bounds: list[Limit] = []
    for limit, word in ((metric.minimum, "minimum"), (metric.maximum, "maximum")):
        if limit is not None and not metric.is_state:
            bounds.append((limit, word, 0.3))
    for alert in conf.alerts.values():
        if alert.signal.kind in kinds and alert.signal.metric == metric.name:
            bounds += [(float(number), alert.name, 1.0) for number in COMPARED.findall(str(alert.when))]
    return [*dict.fromkeys(bounds)]


def bands_of(request: ViewRequest, entities: Sequence[str], start: datetime, end: datetime) -> Iterator[Band]:
    """Yield notes on the span, and the episodes of alerts of these entities."""
    for note in NOTES.rows(request.conf.lake, [("begins_at", "<=", end), ("ends_at", ">=", start)]):
        yield Band(note.begins_at, note.ends_at, note.text)
    alerts, snapshot = request.conf.alerts, find_snapshot(request.conf.lake)
    if entities and alerts and snapshot and ALERTS in snapshot.versions:
        for row in request.rows(EPISODES.format(entities=literal(entities), start=literal(start), end=literal(end))):
            if alert := alerts.get(row["alert"]):
                text = f"{alert.name}: {row['entity']}"
                yield Band(row["begins_at"], row["ends_at"] or request.now, text, "bad", alert.signal.metric)


def broken(points: Points, step: float) -> Iterator[tuple[float, float | None]]:
    """Put a null behind each point that no other one follows after a step."""
    for (x, y), (following, _) in pairwise(points):
        yield x, y
        if following - x > 1.5 * step:
            yield x + step, None
    yield from points[-1:]
