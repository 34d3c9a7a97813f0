"""Samples as causes of changes of state, and changes of state as rows of ALERTS."""

import hashlib
from collections.abc import Iterable
from string import Formatter
from typing import Any, NamedTuple

import pyarrow as pa

from gold.alerts.hours import holds
from gold.alerts.spec import Alert
from gold.instants import SECOND
from gold.schema import ALERTS, SAMPLES

LINEAGE = SAMPLES.names[3:8]


class Change(NamedTuple):
    """A change of an entity. `row`: the sample that caused it; None if time alone did. `known_at`: the wall clock of its step."""

    entity: str
    state: str
    previous: str
    at: int
    since: int
    known_at: int
    severity: str
    value: float | None
    episode: int
    row: int | None = None
    is_past: bool = False
    reason: str | None = None


class Cause(NamedTuple):
    """A sample, or time alone, for which `row` is None."""

    at: int
    value: float | None = None
    row: int | None = None
    verdict: bool | None = None


def causes_of(alert: Alert, samples: pa.Table) -> list[tuple[str, Cause]]:
    """Return the causes with their entities; a verdict that does not count is null. The hours must hold all of an interval."""
    columns = (samples["entity"], samples["at"].cast(pa.int64()), samples["verdict"], samples["value"])
    rows = [*zip(*(column.to_pylist() for column in columns), strict=True)]
    if alert.hours is None:
        return [(entity, Cause(at, value, row, verdict)) for row, (entity, at, verdict, value) in enumerate(rows)]
    begins = samples["window_start"].cast(pa.int64()).to_pylist()
    length = alert.signal.every_seconds * SECOND
    return [
        (entity, Cause(at, value, row, verdict if holds(alert.hours, at - length if begin is None else begin, at) else None))
        for row, ((entity, at, verdict, value), begin) in enumerate(zip(rows, begins, strict=True))
    ]


def table_of(alert: Alert, changes: Iterable[Change], samples: pa.Table) -> pa.Table:
    """Rows of ALERTS in the order in which they were known, then in order of time."""
    rows = sorted(changes, key=lambda change: (change.known_at, change.at, change.entity))
    if not rows:
        return ALERTS.empty_table()
    causes = samples.take(pa.array([change.row for change in rows], pa.int64()))
    same = ("entity", "state", "since", "known_at", "severity", "value", "is_past", "reason")
    columns: dict[str, Any] = {name: [getattr(change, name) for change in rows] for name in same}
    columns |= {
        "changed_at": [change.at for change in rows],
        "alert": [alert.name] * len(rows),
        "previous_state": [change.previous for change in rows],
        "summary": [_summary(alert, change) for change in rows],
        "alert_id": [_id(alert.name, change) for change in rows],
        **{name: causes[name] for name in LINEAGE},
    }
    return pa.table({name: columns[name] for name in ALERTS.names}, ALERTS)


def severity_of(alert: Alert, escalated: int) -> str:
    """Return the severity behind so many steps of escalation."""
    return [alert.severity, *(step.severity for step in alert.escalate)][escalated]


def _summary(alert: Alert, change: Change) -> str:
    values = {"alert": alert.name, "entity": change.entity, "state": change.state, "severity": change.severity}
    shown = (
        text + ("" if name is None else format(values[name], form or "") if name in values else _number(change.value, form))
        for text, name, form, _ in Formatter().parse(alert.summary)
    )
    return "".join(shown)


def _number(value: float | None, form: str | None) -> str:
    return "no value" if value is None else format(value, form or ".6g")


def _id(alert: str, change: Change) -> str:
    """An alert's name holds no slash."""
    return hashlib.sha256(f"{alert}/{change.episode}/{change.entity}".encode()).hexdigest()[:32]
