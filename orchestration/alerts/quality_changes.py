"""Data quality for channels: expectations that fail or hold again, gates that close or open, as changes like those of alerts. No Spark."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import itemgetter
from typing import Any

from gold.alerts.messages import Change
from gold.alerts.spec import NoticePolicy
from gold.alerts.states import FIRING, NORMAL
from orchestration.alerts.stages import EntityState
from orchestration.conf.model import Conf
from orchestration.storage.delta import path_of, rows_of
from orchestration.storage.gate_state import GateState, failing_gates
from orchestration.storage.tables import LakeStore
from orchestration.utc import from_iso

Standings = Mapping[str, EntityState]
EXPECTATION, GATE = "quality.expectation", "quality.gate"
"""Alerts of alerts.yml have no dot in their names."""
POLICIES = {EXPECTATION: NoticePolicy(group_by="zone"), GATE: NoticePolicy()}
"""Expectations of one table are one message: `table_of` gives the table as their zone."""
RESULTS = "quality.results"
COLUMNS = ["run_at", "table_name", "suite", "severity", "is_success", "observed", "details"]
MOST_CHARACTERS = 500
CHECKED = ["asked", "scheduled"]
"""Causes of runs that count: one on a snapshot is about the past, and a gate has a change of its own."""


def expectation_changes(conf: Conf, standings: Standings, after: datetime | None) -> tuple[list[Change], datetime | None]:
    """Return expectations whose state has changed, by runs after that instant, the oldest first; and the instant of the last run."""
    newer = [("run_at", ">", after)] if after else []
    rows = sorted(rows_of(path_of(conf.lake, RESULTS), COLUMNS, [("cause", "in", CHECKED), *newer]), key=itemgetter("run_at"))
    before = {standing.change.entity: standing.change for standing in standings.values() if standing.change.alert == EXPECTATION}
    states = {entity: (change.state, change.severity) for entity, change in before.items()}
    changes = []
    for change in map(_of_result, rows):
        if change is not None and (change.state, change.severity) != states.get(change.entity, (NORMAL, change.severity)):
            states[change.entity] = change.state, change.severity
            changes.append(change)
    return changes, rows[-1]["run_at"] if rows else after


def gate_changes(conf: Conf, standings: Standings, now: datetime) -> Iterator[Change]:
    """Gates whose state is another one than the channel knows. One that was released and closed again changes twice."""
    failing = {_id_of(state): (state, text) for state, text in failing_gates(conf, LakeStore(conf).table_path)}
    changes = (standing.change for standing in standings.values())
    notified = {change.alert_id: change for change in changes if change.alert == GATE and change.state == FIRING}
    for change in notified.values():
        if change.alert_id not in failing:
            summary = f"{change.entity} passes again, or was released"
            yield replace(change, state=NORMAL, changed_at=now, known_at=now, summary=summary)
    for alert_id, (state, text) in failing.items():
        if alert_id not in notified and state.failure is not None:
            at = from_iso(state.failure.at)
            yield Change(GATE, state.table, FIRING, "critical", at, at, None, text, alert_id)


def table_of(standings: Standings, changes: Sequence[Change]) -> dict[str, str]:
    """The table of each expectation, by the entity of its changes."""
    every = [*changes, *(standing.change for standing in standings.values())]
    return {change.entity: change.entity.partition(": ")[0] for change in every if change.alert == EXPECTATION}


def _id_of(state: GateState) -> str:
    """One id for each closing of a gate; a gate that only warns keeps one for as long as its table fails."""
    return f"{state.table_id}/{state.failure.version}" if state.failure and state.is_closed else state.table_id


def _of_result(row: Mapping[str, Any]) -> Change | None:
    if row["is_success"] is None:
        return None
    entity = f"{row['table_name']}: {json.loads(row['details'])['description']} ({row['suite']})"
    state, outcome = (NORMAL, "It holds again.") if row["is_success"] else (FIRING, f"Found: {row['observed'][:MOST_CHARACTERS]}")
    return Change(EXPECTATION, entity, state, row["severity"], row["run_at"], row["run_at"], None, f"{entity} {outcome}", entity)
