"""How each expectation went in the last runs: since when it fails, and what changed. Looks at a snapshot are of the past, and left out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from orchestration.quality.history import results_path
from orchestration.quality.outcome import Cause, Identity, Result, Run, TableResult, identity

MOST_RUNS = 500
"""Runs that are looked at: each is a file."""


@dataclass(frozen=True)
class Point:
    """What one run found of one expectation; see Outcome."""

    run_id: str
    run_at: datetime
    is_success: bool | None
    unexpected_percent: float | None


@dataclass(frozen=True)
class Streak:
    """Runs in a row, up to the newest, in which an expectation failed. `is_all`: it never passed in what is known."""

    first: Point
    runs: int
    is_all: bool


Trends = Mapping[Identity, Sequence[Point]]


@dataclass(frozen=True)
class Change:
    """An expectation that failed and holds now, or the other way round; `is_new`: nothing was known of it."""

    table: TableResult
    result: Result
    is_new: bool


def trends(lake: Path) -> Trends:
    """Points of each expectation, oldest first; none where no run was kept."""
    path = results_path(lake)
    if not DeltaTable.is_deltatable(str(path)):
        return {}
    found: dict[Identity, list[Point]] = {}
    columns = ["run_id", "run_at", "table_name", "suite", "expectation", "is_success", "unexpected_percent", "details"]
    filters = [("cause", "!=", Cause.SNAPSHOT.value), ("run_id", ">=", _oldest(path))]
    rows = pa.table(DeltaTable(path).to_pyarrow_table(columns=columns, filters=filters)).sort_by("run_at").to_pylist()
    for row in rows:
        key = (row["table_name"], row["suite"], row["expectation"], json.loads(row["details"])["description"])
        found.setdefault(key, []).append(Point(row["run_id"], row["run_at"], row["is_success"], row["unexpected_percent"]))
    return found


def _oldest(path: Path) -> str:
    """The run to begin with, from the log alone."""
    newest = pa.table(DeltaTable(path).get_add_actions(flatten=True)).to_pydict().get("max.run_id", [])
    return min(sorted((each for each in newest if each is not None), reverse=True)[:MOST_RUNS], default="")


def streak(points: Sequence[Point]) -> Streak | None:
    """None where the newest run that could tell found nothing wrong."""
    decided = [point for point in points if point.is_success is not None]
    failing = [*takewhile(lambda point: not point.is_success, reversed(decided))]
    return Streak(failing[-1], len(failing), len(failing) == len(decided)) if failing else None


def changes(run: Run, known: Trends) -> Iterator[Change]:
    """What is otherwise than the last run before that could tell; of what is seen first, only what fails."""
    for table in run.tables:
        for result in table.results:
            points = known.get(identity(table.table, result), ())
            before = [point.is_success for point in points if point.run_at < run.run_at and point.is_success is not None]
            now = result.outcome.is_success
            if now is not None and now != (before[-1] if before else True):
                yield Change(table, result, not before)
