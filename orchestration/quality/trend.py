"""How each expectation went in the last runs: since when it fails, and what changed. Looks at a snapshot are of the past, and left out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from pathlib import Path

from orchestration.quality.history import results_path
from orchestration.quality.outcome import Identity, Result, Run, TableResult, identity
from orchestration.quality.store import opened, pinned, show

MOST_RUNS = 200
# Of each suite and table for itself: some are looked at with every batch, others once a day.
POINTS = """
  with looks as (select distinct run_id, table_name, suite from {results} where cause <> 'snapshot'),
  newest as (from looks qualify row_number() over (partition by table_name, suite order by run_id desc) <= {most})
  select table_name, suite, expectation, details ->> '$.description', list((run_id, run_at, is_success, unexpected_percent) order by run_at)
  from {results} semi join newest using (run_id, table_name, suite) group by all
"""


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
    results = pinned("quality.results", results_path(lake))
    if results.version is None:
        return {}
    with closing(opened()) as store:
        show(store, results)
        rows = store.execute(POINTS.format(results=results.view, most=MOST_RUNS)).fetchall()
    return {tuple(key): [Point(*point) for point in points] for *key, points in rows}


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
