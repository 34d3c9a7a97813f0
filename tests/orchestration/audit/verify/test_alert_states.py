"""Verify's own states of alerts are those of the layer, whatever is declared and whatever comes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gold.alerts.edits import ended, expected
from gold.alerts.spec import DEFAULT_SUMMARY, Alert, Hours
from gold.alerts.states import State
from orchestration.audit.verify.alert_states import Sample, changes
from orchestration.utc import from_micros, to_micros
from tests.gold.alert_steps import ALERTS, STEPS, Step, at, judged, table

HOURS = st.sampled_from(
    [None, Hours("UTC", (0,), 1, 2), Hours("Europe/Berlin", (6, 0), 23 * 60, 61), Hours("Asia/Kolkata", (0,), 331, 331)]
)
SUMMARIES = st.sampled_from([DEFAULT_SUMMARY, "{alert} {entity} {state} {severity} {value} {value:.1f} {reason}"])
COMPARED = (
    *("entity", "state", "previous_state", "changed_at", "since", "known_at", "severity", "value", "summary", "alert_id"),
    *("is_past", "reason", "bronze_row"),
)
Presence = Sequence[tuple[int, bool]]


def of_layer(alert: Alert, steps: Sequence[Step], presence: Presence) -> list[dict[str, Any]]:
    """Rows where each step is a slice; the device a joins and leaves at the beginning of steps."""
    states, rows = dict[str, State](), list[dict[str, Any]]()
    for number, step in enumerate(steps):
        for of_step, is_member in presence:
            wall = to_micros(at(step.wall))
            if of_step == number and is_member:
                states = expected(states, ["a"], wall)
            elif of_step == number:
                rows += ended(alert, {name: state for name, state in states.items() if name == "a"}, wall, "retired").to_pylist()
                states.pop("a", None)
        new, states, _ = judged(alert, states, [step])
        rows += new.to_pylist()
    return sorted(rows, key=itemgetter("entity", "known_at"))


def of_verify(alert: Alert, steps: Sequence[Step], presence: Presence) -> list[dict[str, Any]]:
    walls = [to_micros(at(step.wall)) for step in steps]
    samples: dict[str, list[Sample]] = {"a": [], "b": []}
    for row in table(steps).to_pylist():
        shown = row["verdict"], row["value"], row["step"], None, (row["bronze_row"],), row["reason"]
        samples[row["entity"]].append(Sample(to_micros(row["at"]), *shown))
    rows = []
    for entity, of_entity in samples.items():
        for change in changes(alert, entity, of_entity, walls, presence if entity == "a" else ()):
            row = {name: from_micros(getattr(change, name)) for name in ("changed_at", "since", "known_at")}
            rows.append({**change._asdict(), **row, "entity": entity, "bronze_row": change.cause.lineage[0] if change.cause else None})
    return sorted(rows, key=itemgetter("entity", "known_at"))


def in_steps(rows: list[dict[str, Any]]) -> list[list[Any]]:
    """What happens of an entity in a step; rows of the past and of the present are in no order to each other."""
    cells = [[row[name].isoformat() if isinstance(row[name], datetime) else row[name] for name in COMPARED] for row in rows]
    by_step = groupby(cells, key=lambda row: (row[0], row[COMPARED.index("known_at")]))
    return [sorted(of_step, key=str) for _, of_step in by_step]


@given(ALERTS, HOURS, SUMMARIES, STEPS, st.lists(st.tuples(st.integers(0, 11), st.booleans()), max_size=3))
def test_both_give_the_same_changes(
    alert: Alert, hours: Hours | None, summary: str, steps: list[Step], presence: list[tuple[int, bool]]
) -> None:
    declared = replace(alert, summary=summary, hours=hours)
    of_steps = sorted({step: (step, is_member) for step, is_member in presence if step < len(steps)}.values())
    assert in_steps(of_layer(declared, steps, of_steps)) == in_steps(of_verify(declared, steps, of_steps))
