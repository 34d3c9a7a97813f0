"""What `tidemark test` computes, against what a run does."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from orchestration.audit.conf_tests.outcome import ConfUnderTest
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.conf.model import Conf
from orchestration.storage.tables import LakeStore
from tests.lakes import latest, recorded, table

TOLD_BY_BATCH = ("hot", "jump", "warm_window", "odd_vector", "few", "rubbish")
"""Alerts that no clock changes: a run judges time when it comes to it, a test at the instant."""
CHANGES = ["alert", "entity", "state", "previous_state", "changed_at", "since", "known_at", "severity", "value", "alert_id", "is_past"]


def assert_conf_tests_compute_the_same(made: Conf) -> None:
    """What `tidemark test` makes of the events of a lake, against its tables."""
    snapshot = latest_snapshot(made)
    events, closed = recorded(LakeStore(made), "bronze.events"), snapshot.closed_until
    until = min(closed[f"gold.flows/{name}"] for name in made.flows)
    came = ConfUnderTest(made).rows_of_events(events, until, ["windows", "vectors", "flows", "alerts"])
    for name in ("readings", "quarantine", "late", "duplicates"):
        columns = ["bronze_batch", "bronze_row", "part", *(["value", "event_time", "zone"] if name == "readings" else [])]
        assert as_texts(came[name], columns) == as_texts(dicts(table(made, f"silver.{name}")), columns), name
    for name, key, columns in (
        ("windows", ["device_id", "metric", "window_end"], ["device_id", "metric", "window_end", "value", "count", "min", "max", "latest"]),
        ("vectors", ["entity", "window_end"], ["entity", "window_end", "vector", "missing", "filled"]),
    ):
        of_run = dicts(latest(made, f"gold.kitchen_{name.replace('windows', 'aggregates')}", key))
        assert as_texts([row for row in came[name] if row["window_end"] <= closed["kitchen"]], columns) == as_texts(of_run, columns), name
    for of_table in sorted({f"gold.{flow.table}" for flow in made.flows.values()}):
        of_run = dicts(table(made, of_table))
        columns = [column for column in of_run[0] if column not in {"bronze_batch", "bronze_row", "part"}]
        of_flows = [row for row in came["flows"] if f"gold.{made.flows[row['flow']].table}" == of_table]
        assert as_texts(of_flows, columns) == as_texts(of_run, columns), of_table
    of_run = dicts(table(made, "gold.alerts"))
    for name in TOLD_BY_BATCH:
        both = (
            [row for row in rows if row["alert"] == name and row["changed_at"] <= closed["kitchen"]] for rows in (came["alerts"], of_run)
        )
        computed, ran_rows = (as_texts(rows, CHANGES) for rows in both)
        assert computed == ran_rows, name


def dicts(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]


def as_texts(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    """Rows by their content: numbers to ten digits, instants in UTC, null and NaN alike."""

    def text(value: Any) -> str:
        if isinstance(value, list | tuple | np.ndarray):
            return str([*map(text, value)])
        if value is None or value is pd.NaT or (isinstance(value, float) and isnan(value)):
            return "-"
        return (
            f"{value:.10g}" if isinstance(value, float | int) else str(pd.Timestamp(value)) if isinstance(value, datetime) else str(value)
        )

    return sorted(str([text(row[column]) for column in columns]) for row in rows)
