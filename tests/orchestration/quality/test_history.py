"""quality.results: what earlier runs found, over many small appends, and since when something fails."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from orchestration.engine.lake import Lake
from orchestration.quality import history
from orchestration.quality.check import store_run
from orchestration.quality.failed_rows import FAILED_ROWS
from orchestration.quality.history import RESULTS, fixed, streak, trends
from orchestration.quality.outcome import Outcome, Run
from orchestration.storage import commit
from orchestration.storage.delta import path_of
from tests.lakes import bare_conf
from tests.orchestration.quality.test_quality_report import RUN_AT, run_of

GOOD, BAD, NOTHING = (
    Outcome(True, "none of 10 rows", 0.0),
    Outcome(False, "3 of 10 rows", 30.0),
    Outcome(None, "not checked: there are no rows"),
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(bare_conf(tmp_path))


def run(n: int, outcome: Outcome) -> Run:
    return replace(run_of(outcome), run_id=f"r{n}", run_at=RUN_AT + timedelta(hours=n))


def test_what_holds_again_is_named_once_and_unchecked_runs_change_nothing(lake: Lake) -> None:
    holds_again = []
    for n, outcome in enumerate((GOOD, BAD, BAD, NOTHING, GOOD, NOTHING, GOOD)):
        store_run(lake, run(n, outcome))
        holds_again.append([table.table for table, _ in fixed(run(n, outcome), trends(lake.conf.lake))])
    assert holds_again == [[], [], [], [], ["silver.readings"], [], []]


def test_a_streak_begins_with_the_first_failure_and_unchecked_runs_do_not_end_it(lake: Lake) -> None:
    for n, outcome in enumerate((BAD, GOOD, BAD, NOTHING, BAD)):
        store_run(lake, run(n, outcome))
    (points,) = trends(lake.conf.lake).values()
    failing = streak(points)
    assert failing is not None
    assert (failing.first.run_id, failing.runs, failing.is_all) == ("r2", 2, False)
    assert streak(points[:2]) is None


def test_many_small_files_become_one_and_what_was_known_stays_known(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "MAX_SMALL_FILES", 3)
    monkeypatch.setattr(history, "MOST_RUNS", 5)
    seldom = run(-1, BAD)
    store_run(lake, replace(seldom, tables=(replace(seldom.tables[0], table="gold.kitchen_aggregates"),)))
    for n in range(6):
        store_run(lake, run(n, BAD if n % 2 else GOOD))
    for path in (path_of(lake.conf.lake, RESULTS), path_of(lake.conf.lake, FAILED_ROWS)):
        assert len(DeltaTable(path.local).file_uris()) <= 3
    points = {key[0]: [(point.run_id, point.is_success) for point in points] for key, points in trends(lake.conf.lake).items()}
    assert points == {
        "gold.kitchen_aggregates": [("r-1", False)],
        "silver.readings": [(f"r{n}", n % 2 == 0) for n in range(1, 6)],
    }
