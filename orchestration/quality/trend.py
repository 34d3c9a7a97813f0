"""Results of each expectation in the last runs: since when it fails, and what changed. Runs on snapshots are left out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from orchestration.location import Location
from orchestration.quality.history import RESULTS
from orchestration.quality.outcome import Identity, Result, Run, TableResult, identity
from orchestration.quality.store import create_view, open_store, pin_table
from orchestration.storage.delta import path_of

MOST_RUNS = 200
# By suite and table: some run with every batch, others once a day.
POINTS = """
  with runs as (select distinct run_id, table_name, suite from {results} where cause <> 'snapshot'),
  newest as (from runs qualify row_number() over (partition by table_name, suite order by run_id desc) <= {most})
  select table_name, suite, expectation, details ->> '$.description', list((run_id, run_at, is_success, unexpected_percent) order by run_at)
  from {results} semi join newest using (run_id, table_name, suite) group by all
"""


@dataclass(frozen=True)
class Point:
    """What one run found about one expectation; see Outcome."""

    run_id: str
    run_at: datetime
    is_success: bool | None
    unexpected_percent: float | None


@dataclass(frozen=True)
class Streak:
    """Runs in a row, up to the newest, in which an expectation failed. `is_all`: it never passed in the runs that are kept."""

    first: Point
    runs: int
    is_all: bool


Trends = Mapping[Identity, Sequence[Point]]


@dataclass(frozen=True)
class Change:
    """An expectation that failed and holds now, or the other way round; `is_new`: it has no earlier result."""

    table: TableResult
    result: Result
    is_new: bool


def trends(lake: Location) -> Trends:
    """Points of each expectation, oldest first; empty before the first run."""
    results = pin_table(RESULTS, path_of(lake, RESULTS))
    if results.version is None:
        return {}
    with closing(open_store()) as store:
        create_view(store, results)
        rows = store.execute(POINTS.format(results=results.view, most=MOST_RUNS)).fetchall()
    return {tuple(key): [Point(*point) for point in points] for *key, points in rows}


def streak(points: Sequence[Point]) -> Streak | None:
    """None if the expectation passed in the newest run that could check it."""
    decided = [point for point in points if point.is_success is not None]
    failing = [*takewhile(lambda point: not point.is_success, reversed(decided))]
    return Streak(failing[-1], len(failing), len(failing) == len(decided)) if failing else None


def changes(run: Run, history: Trends) -> Iterator[Change]:
    """Expectations whose state differs from their last checked run before. Of those without one, only failures."""
    for table in run.tables:
        for result in table.results:
            points = history.get(identity(table.table, result), ())
            before = [point.is_success for point in points if point.run_at < run.run_at and point.is_success is not None]
            now = result.outcome.is_success
            if now is not None and now != (before[-1] if before else True):
                yield Change(table, result, not before)
