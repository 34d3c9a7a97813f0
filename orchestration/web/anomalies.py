"""Anomalies of a group, for its view: what was expected and a mark on each in its charts, the newest ones, what people say of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from gold.windows.spec import Group
from orchestration.conf.model import Conf
from orchestration.errors import ConfError
from orchestration.storage.delta import is_table, literal
from orchestration.storage.ops_tables import LABELS, Label, labels
from orchestration.storage.tables import LakeStore
from orchestration.utc import from_iso, to_iso
from orchestration.web.charts import PARTS, Points, broken
from orchestration.web.pages import address
from orchestration.web.queries import ViewRequest
from orchestration.web.security import text_of
from orchestration.web.spans import Span

MOST, MOST_BANDS, LONGEST_TEXT = 50, 3, 200
LATELY, MARGIN = timedelta(days=30), timedelta(hours=12)
"""LATELY: how much time before the newest window anomalies are listed. MARGIN: what a chart shows before an anomaly and behind it."""
FAULT, NO_FAULT = "fault", "none"
EXPECTED = """
  select entity, feature, epoch(max(window_end)) as ended, min(middle - half) as low, max(middle + half) as high from (
    select entity, window_end, unnest({features}) as feature, unnest(expected) as middle, unnest(band) as half from gold.{group}_anomalies
    where window_end > {since} and window_end <= {until} and entity in {entities} and len(expected) = len({features}))
  where middle is not null and half is not null
  group by entity, feature, floor((epoch(window_end) - {start}) / {length} * {parts}) order by ended
"""
MARKED = """
  select entity, epoch(window_end) as ended, {features}[first] as feature, vector[first] as value from (
    select entity, window_end, vector, list_position(share, list_max(share)) as first
    from gold.{group}_anomalies join gold.{group}_vectors using (entity, window_end)
    where is_anomaly and window_end > {since} and window_end <= {until} and entity in {entities} and len(vector) = len({features}))
  where value is not null order by ended
"""
"""Anomalies, each where its first feature was."""
NEWEST = """
  select entity, window_start, window_end, score, threshold, reason from gold.{group}_anomalies
  where is_anomaly and window_end > {since} order by window_end desc, entity limit {most}
"""
SCORED = "select count(score) as scored from gold.{group}_anomalies where window_end > {since}"


@dataclass(frozen=True)
class Anomalies:
    """`newest`: rows of NEWEST, each with `chart`, an address, and its `label`, None for none. `is_learning`: no vector has a score yet."""

    newest: Sequence[dict[str, Any]]
    is_learning: bool


def has_anomalies(conf: Conf, group: Group) -> bool:
    """Whether vectors of the group are judged, and a run has done so."""
    store = LakeStore(conf)
    return group.anomalies is not None and is_table(store.table_path(store.generation.gold(group.stream, "anomalies")))


def anomalies(request: ViewRequest, group: Group, newest_end: datetime) -> Anomalies:
    """List the newest anomalies. `newest_end`: of all windows."""
    values = {"group": group.name, "since": literal(newest_end - LATELY)}
    said = {(label.entity, label.begins_at, label.ends_at): label for label in labels(request.conf.lake, group.name)}
    rows = request.rows(NEWEST.format(**values, most=MOST))
    newest = [
        row | {"chart": _chart(group, row), "label": said.get((row["entity"], row["window_start"], row["window_end"]))} for row in rows
    ]
    return Anomalies(newest, not newest and not request.rows(SCORED.format(**values))[0]["scored"])


def _chart(group: Group, row: Mapping[str, Any]) -> str:
    span = {"from": to_iso(row["window_start"] - MARGIN), "to": to_iso(row["window_end"] + MARGIN)}
    return address("/groups", {"group": group.name, "device": None if row["entity"] == group.name else row["entity"]}, **span)


def lines_of_anomalies(
    request: ViewRequest, values: Mapping[str, Any], span: Span, steps: Mapping[str, float]
) -> Iterator[tuple[str, str, str, Points]]:
    """Yield entity, feature, kind and points: `low` and `high` of what was expected, and `anomaly`. `steps`: seconds by feature."""
    length = (span.end - span.start).total_seconds()
    parts = {"start": span.start.timestamp(), "length": length, "parts": PARTS}
    lines = dict[tuple[str, str, str], list[tuple[float, float | None]]]()
    for row in request.rows(EXPECTED.format(**values, **parts)):
        for kind in ("low", "high"):
            lines.setdefault((row["entity"], row["feature"], kind), []).append((row["ended"], row[kind]))
    for (entity, feature, kind), points in lines.items():
        yield entity, feature, kind, [*broken(points, max(steps[feature], length / PARTS))]
    for row in request.rows(MARKED.format(**values)):
        yield row["entity"], row["feature"], "anomaly", [(row["ended"], row["value"])]


def add_label(request: ViewRequest, form: dict[str, str]) -> None:
    """Say of an anomaly what `label` has: FAULT or NO_FAULT, the end of its window, its entity. ConfError where there is none."""
    author, kind = text_of(form, "author", LONGEST_TEXT), text_of(form, "kind", LONGEST_TEXT, is_needed=False)
    verdict, _, rest = form.get("label", "").partition(" ")
    end, _, entity = rest.partition(" ")
    group = request.conf.groups.get(form.get("group", ""))
    try:
        at = from_iso(end)
    except ValueError:
        at = None
    if group is None or at is None or verdict not in (FAULT, NO_FAULT) or not has_anomalies(request.conf, group):
        raise ConfError("this is no anomaly of a group; go back, and load the page again.")
    request = replace(request, tables=f"gold.{group.name}_anomalies")
    this = f"is_anomaly and entity = {literal(entity)} and window_end = {literal(at)}"
    rows = request.rows(f"select window_start, window_end from gold.{group.name}_anomalies where {this}")
    if not rows:
        raise ConfError("this is no anomaly any more, as late readings came; go back, and load the page again.")
    span = rows[0]["window_start"], rows[0]["window_end"]
    LABELS.append(request.conf.lake, [Label(group.name, entity, *span, verdict == FAULT, kind, author, request.now)])
