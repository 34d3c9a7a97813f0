"""States that neither a sample nor a clock changes: of entities that are to send or not any more, and where a condition is another one."""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from gold.alerts.changes import Change, severity_of, table_of
from gold.alerts.spec import Alert
from gold.alerts.states import FLAPPING, NORMAL, State
from gold.schema import SAMPLES

RETIRED, CHANGED = "retired", "condition changed"
"""Reasons of such changes, in ALERTS."""


def expected(states: Mapping[str, State], entities: Iterable[str], wall: int) -> dict[str, State]:
    """Return the states with those of entities that are to send from now on, and may never have sent anything."""
    return {entity: State(since=wall, seen=wall, came=wall, quiet=wall) for entity in entities} | dict(states)


def ended(alert: Alert, states: Mapping[str, State], wall: int, reason: str) -> pa.Table:
    """Rows of ALERTS by which all that is not normal ends, where nobody judges it any more."""
    return _replaced(alert, states, dict.fromkeys(states, State()), wall, reason)


def differences(alert: Alert, before: Mapping[str, State], after: Mapping[str, State], wall: int) -> pa.Table:
    """Rows of ALERTS for entities whose state is another one since the condition of an alert is."""
    return _replaced(alert, before, {**dict.fromkeys(before, State()), **after}, wall, CHANGED)


def _replaced(alert: Alert, before: Mapping[str, State], after: Mapping[str, State], wall: int, reason: str) -> pa.Table:
    changes = []
    for entity, state in after.items():
        previous = before.get(entity, State())
        names = [FLAPPING if one.is_flapping else one.name for one in (previous, state)]
        if names[0] != names[1]:
            at = max(previous.last, state.last, previous.since)
            episode = previous.episode if state.episode is None else state.episode
            value = previous.value if state.value is None else state.value
            severity = severity_of(alert, min(max(previous.escalated, state.escalated), len(alert.escalate)))
            since = at if state.name == NORMAL else state.since
            shown = names[1], names[0], at, since, wall, severity, value, at if episode is None else episode
            row = Change(entity, *shown, reason=reason, of_anomaly=state.reason or previous.reason)
            changes.append(row)
    return table_of(alert, changes, SAMPLES.empty_table())
