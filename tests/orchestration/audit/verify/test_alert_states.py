"""Verify's own states of alerts are those of the layer, whatever is declared and whatever comes."""

from dataclasses import replace
from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gold.alerts.spec import Alert, Hours
from gold.alerts.states import judge
from orchestration.audit.verify.alert_states import Sample, changes
from orchestration.utc import from_micros, to_micros
from tests.gold.test_alerts import ALERTS, SLICES, at, table

HOURS = st.sampled_from(
    [None, Hours("UTC", (0,), 1, 2), Hours("Europe/Berlin", (6, 0), 23 * 60, 61), Hours("Asia/Kolkata", (0,), 331, 331)]
)
COMPARED = ("entity", "state", "previous_state", "changed_at", "since", "known_at", "severity", "value", "summary", "alert_id")
SUMMARY = "{alert} {entity} {state} {severity} {value} {value:.1f}"


def of_layer(alert: Alert, rows: list[tuple[str, float, bool | None]], until: float) -> list[dict[str, Any]]:
    found = judge(alert, {}, table(rows), at(until)).changes.to_pylist()
    return sorted(found, key=lambda row: str(row["entity"]))


def of_verify(alert: Alert, rows: list[tuple[str, float, bool | None]], until: float) -> list[dict[str, Any]]:
    made = [(row["entity"], to_micros(row["at"]), row["verdict"], row["value"], row["bronze_row"]) for row in table(rows).to_pylist()]
    found = []
    for entity, of_entity in groupby(sorted(made, key=lambda row: row[0]), key=lambda row: row[0]):
        samples = [Sample(time, verdict, value, from_micros(time + 5_000_000), (number,)) for _, time, verdict, value, number in of_entity]
        for change in changes(alert, entity, samples, to_micros(at(until))):
            instants = {name: from_micros(getattr(change, name)) for name in ("changed_at", "since")}
            known = {"known_at": change.cause.ingested_at if change.cause else instants["changed_at"], "entity": entity}
            row = {"bronze_row": change.cause.lineage[0] if change.cause else None}
            found.append({**change._asdict(), **instants, **known, **row})
    return found


@given(ALERTS, HOURS, SLICES, st.integers(180, 300))
def test_both_give_the_same_changes(alert: Alert, hours: Hours | None, rows: list[tuple[str, float, bool | None]], until: float) -> None:
    declared = replace(alert, summary=SUMMARY, hours=hours)
    found = [{name: row[name] for name in COMPARED} for row in of_layer(declared, rows, until)]
    assert found == [{name: row[name] for name in COMPARED} for row in of_verify(declared, rows, until)]
