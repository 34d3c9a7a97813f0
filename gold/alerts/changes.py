"""Samples as causes of changes of state, and changes of state as rows of ALERTS."""

import hashlib
from collections.abc import Callable, Iterable
from string import Formatter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from gold.alerts.hours import holds
from gold.alerts.spec import DEFAULT_SUMMARY, Alert
from gold.instants import SECOND
from gold.schema import ALERTS, SAMPLES

LINEAGE = SAMPLES.names[3:8]
REASONED = {"pending", "firing"}
"""States that have the reason of an anomaly in the default summary; what ends an alert has none."""
MANY = 100
"""Fewer samples are judged in less time than it takes to leave some out."""


class Change(NamedTuple):
    """A change of an entity. `row`: the sample that caused it; None if time alone did. `known_at`: the wall clock of its step.

    `reason`: for the column; `of_anomaly`: for the summary.
    """

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
    of_anomaly: str | None = None


class Cause(NamedTuple):
    """A sample, or time alone, for which `row` is None."""

    at: int
    value: float | None = None
    row: int | None = None
    verdict: bool | None = None
    reason: str | None = None


def causes_of(alert: Alert, samples: pa.Table, first_row: int, last: Callable[[str], int]) -> list[tuple[str, Cause]]:
    """Return the causes in samples of one step, with their entities; a verdict that does not count is null. The hours must hold all of an
    interval. `first_row`: the number of the first sample. `last`: the newest judged instant of an entity."""
    each_counts = alert.hours or alert.for_times or alert.flapping
    rows = pa.array(range(len(samples)), pa.int64()) if each_counts or len(samples) < MANY else _first_and_last_of_runs(samples, last)
    taken = samples.take(rows)
    columns = (taken["at"].cast(pa.int64()), taken["value"], pc.add(rows, first_row), taken["verdict"], taken["reason"])
    causes = [(entity, Cause(*cause)) for entity, *cause in zip(*map(_listed, (taken["entity"], *columns)), strict=True)]
    if alert.hours is None:
        return causes
    begins, length = _listed(taken["window_start"].cast(pa.int64())), alert.signal.every_seconds * SECOND
    return [
        (entity, cause if holds(alert.hours, cause.at - length if begin is None else begin, cause.at) else cause._replace(verdict=None))
        for (entity, cause), begin in zip(causes, begins, strict=True)
    ]


def _first_and_last_of_runs(samples: pa.Table, last: Callable[[str], int]) -> pa.Array:
    """Return the rows at which an entity's verdict is another one, and its last one: those in between change nothing."""
    entity = samples["entity"].combine_chunks().dictionary_encode()
    lasts = pa.array([last(name) for name in entity.dictionary.to_pylist()], pa.int64())
    is_newest = pc.greater(samples["at"].cast(pa.int64()).combine_chunks(), lasts.take(entity.indices))
    verdict = pc.fill_null(samples["verdict"].combine_chunks().cast(pa.int8()), -1)
    # Samples that are not newer than what is known are judged by themselves.
    is_other = pc.or_(_differs(entity.indices), _differs(is_newest))
    begins = pa.concat_arrays([pa.array([True]), pc.or_(is_other, _differs(verdict))])
    ends = pa.concat_arrays([is_other, pa.array([True])])
    return pc.indices_nonzero(pc.or_(begins, ends)).cast(pa.int64())


def _differs(column: pa.Array) -> pa.Array:
    """Say of each value but the first whether it is another one than that before it."""
    return pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))


def _listed(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values


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
    values["reason"] = change.of_anomaly or "no reason"
    shown = (
        text + ("" if name is None else format(values[name], form or "") if name in values else _number(change.value, form))
        for text, name, form, _ in Formatter().parse(alert.summary)
    )
    is_told = alert.summary == DEFAULT_SUMMARY and change.of_anomaly and change.state in REASONED
    return "".join(shown) + (f": {change.of_anomaly}" if is_told else "")


def _number(value: float | None, form: str | None) -> str:
    return "no value" if value is None else format(value, form or ".6g")


def _id(alert: str, change: Change) -> str:
    """An alert's name holds no slash."""
    return hashlib.sha256(f"{alert}/{change.episode}/{change.entity}".encode()).hexdigest()[:32]
