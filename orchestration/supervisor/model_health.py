"""Problems of models of anomalies: one that does not fit its vectors any more, one that alarms too often, and devices that none knows."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from expectations.wording import counted
from gold.anomalies.model import RESIDUAL
from gold.windows.spec import Group
from gold.windows.vectors import base_of, features_of
from orchestration.conf.model import Conf
from orchestration.location import Location
from orchestration.storage.delta import ask, instant, open_table, python_rows
from orchestration.storage.generations import numbered
from orchestration.storage.models import TRAINED, ModelEvent, events_by_group, in_force
from orchestration.storage.snapshots import find_snapshot
from orchestration.supervisor.problem import Problem, Severity
from orchestration.utc import to_micros

WEEK, LONGEST_WAIT = timedelta(days=7), timedelta(days=6)
TOO_MANY = 10
"""A model alarms too often with so many times the planned alarms."""
OF_A_WEEK = """
  select device_group, entity, model, count(*) filter (where is_anomaly) as alarms, count(score) as scored,
    last_value(reason order by window_end) as reason, min(window_end) as first, max(window_end) as last
  from rows where revision = 0 and window_end > {since} group by device_group, entity, model
"""


def problems_of_models(conf: Conf) -> Iterator[Problem]:
    """Yield what is wrong in groups with `anomalies`, by vectors of the week before the newest window."""
    groups = [group for group in conf.groups.values() if group.anomalies]
    snapshot = find_snapshot(conf.lake) if groups else None
    if snapshot is None:
        return
    events, rows = events_by_group(conf.lake), defaultdict[tuple[str, str | None], list[dict[str, Any]]](list)
    hour = snapshot.at.replace(minute=0, second=0, microsecond=0)
    for table in {numbered(conf.lake, snapshot.generation).gold(group.stream, "anomalies") for group in groups}:
        for row in _of_a_week(conf.lake, table, hour):
            rows[row["device_group"], row["model"]].append(row)
    for group in groups:
        model_id = next((model_id for _, model_id in reversed(in_force(events[group.name]))), None)
        model = next((event for event in events[group.name] if (event.event, event.model_id) == (TRAINED, model_id)), None)
        if model and (misfit := _misfit(conf, group, model)):
            yield _problem(group, Severity.WARNING, f"Model {model_id} of {group.name} {misfit}.")
        else:
            yield from _of_rows(group, model, rows[group.name, model_id or None])


def _misfit(conf: Conf, group: Group, model: ModelEvent) -> str | None:
    assert group.vector
    assert group.anomalies
    features = group.anomalies.features or group.vector.features
    if {*features} != {*model.features}:
        return f"was trained on {', '.join(model.features)}, and {', '.join(features)} are judged now"
    seconds = base_of(features_of(group, group.vector), conf.metrics).every_seconds
    if model.step_seconds not in {0, seconds}:  # 0: nobody wrote it down
        return f"was trained on a vector in {model.step_seconds:,} s, and there is one in {seconds:,} s now"
    return None


def _of_rows(group: Group, model: ModelEvent | None, rows: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """`rows`: of OF_A_WEEK, judged by the model in force. A model of `novelty` learns each device by itself."""
    assert group.vector
    assert group.anomalies
    entities, alarms = sum(row["scored"] > 0 for row in rows), sum(row["alarms"] for row in rows)
    planned = group.anomalies.planned_per_week * entities
    if model and alarms > TOO_MANY * planned:
        text = f"Model {model.model_id} of {group.name} raised {alarms:,} alarms in a week, and {planned:,.4g} are planned."
        yield _problem(group, Severity.WARNING, text)
    wait = min(timedelta(seconds=group.anomalies.learning_seconds), LONGEST_WAIT)
    unknown = sum(row["reason"] == "learning" and row["last"] - row["first"] >= wait for row in rows)
    if unknown and (model is None or model.detector == RESIDUAL):
        text = f"{counted(unknown, group.vector.entity)} of {group.name} {'has' if unknown == 1 else 'have'} no model."
        yield _problem(group, Severity.NOTICE, text)


def _problem(group: Group, severity: Severity, text: str) -> Problem:
    return Problem(severity, f"model {group.name}", text, None, "/groups", f"tidemark train {group.name} --promote")


@lru_cache(16)
def _of_a_week(lake: Location, table: str, _: datetime) -> list[dict[str, Any]]:
    """Ask for OF_A_WEEK once an hour: a page looks every few seconds, and a week may have millions of vectors."""
    snapshot = find_snapshot(lake)
    assert snapshot
    if table not in snapshot.versions or not snapshot.closed_until:
        return []
    since = instant(to_micros(max(snapshot.closed_until.values()) - WEEK))
    location = numbered(lake, snapshot.generation).table(lake, table)
    return python_rows(ask(OF_A_WEEK.format(since=since), {"rows": open_table(location, snapshot.versions[table])}).read_all())
