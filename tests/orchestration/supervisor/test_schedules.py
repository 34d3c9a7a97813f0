"""When suites are checked: by their last run and a cron expression in UTC; what was missed is caught up once."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from expectations.suite import suite
from orchestration.cli.app import exit_code
from orchestration.conf.model import Quality
from orchestration.engine import lake as lakes
from orchestration.engine.lake import Lake
from orchestration.quality import suites
from orchestration.quality.history import last_checked
from orchestration.storage import quality_tables
from orchestration.supervisor.schedules import due, next_at, run_due
from tests.lakes import bare_conf
from tests.orchestration.quality.test_quality import HAS_ROWS

EVENTS, READINGS, ELSEWHERE = (
    suite(name, {"table": table, "expectations": [HAS_ROWS]})
    for name, table in (("events", "bronze.events"), ("readings", "silver.readings"), ("elsewhere", "gold.nobody_*"))
)
ALL = [EVENTS, READINGS, ELSEWHERE]
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def lake_of(folder: Path, quality: Quality) -> Lake:
    return Lake(bare_conf(folder, quality=quality))


def names(chosen: object) -> list[str]:
    assert isinstance(chosen, list)
    return [each.name for each in chosen]


def checked(lake: Lake, at: datetime) -> list[str]:
    """The suites that a run at this instant checks."""
    run = run_due(lake, ALL, at, lambda _: None)
    return [] if run is None else sorted({result.suite for table in run.tables for result in table.results})


def test_nothing_is_due_unless_conf_says_when(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, Quality())
    assert (due(lake, ALL, NOON), next_at(lake, ALL), checked(lake, NOON)) == ([], None, [])


def test_a_suite_is_checked_at_its_next_time_after_the_last_run_and_missed_times_count_once(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, Quality("0 * * * *", {"readings": "30 3 * * *"}))
    assert names(due(lake, ALL, NOON)) == ["events", "readings"]  # they never were
    assert checked(lake, NOON) == ["events", "readings"]
    assert last_checked(lake.conf.lake) == {"events": NOON, "readings": NOON}
    assert next_at(lake, ALL) == NOON + timedelta(hours=1)
    assert checked(lake, NOON + timedelta(minutes=59)) == []
    assert checked(lake, NOON + timedelta(hours=6)) == ["events"]
    assert checked(lake, NOON + timedelta(hours=6, minutes=59)) == []
    assert checked(lake, NOON + timedelta(days=3)) == ["events", "readings"]


def test_a_suite_may_be_left_to_people(tmp_path: Path) -> None:
    assert names(due(lake_of(tmp_path, Quality("0 * * * *", {"readings": None})), ALL, NOON)) == ["events"]


def test_while_another_quality_run_is_active_the_next_time_will_do(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, Quality("0 * * * *"))
    with quality_tables.lock(lake.conf.lake):
        assert checked(lake, NOON) == []
    assert checked(lake, NOON) == ["events", "readings"]


@pytest.fixture
def scheduled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """What the command line opens: two suites, of which one is on a schedule. Works in `tmp_path`."""
    lake = lake_of(tmp_path, Quality(None, {"events": "0 0 1 1 *"}))
    monkeypatch.setattr(lakes.Lake, "open", lambda folder: lake)
    monkeypatch.setattr(suites, "packaged", lambda: [EVENTS, READINGS])
    monkeypatch.chdir(tmp_path)
    return lake


def test_the_command_checks_what_is_due_once_and_ends(scheduled: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["quality", "--scheduled", "--format", "json"]) == 1  # there are no events
    counts = {row["table"]: row["critical"] for row in json.loads(capsys.readouterr().out)}
    assert (counts["bronze.events"], counts["silver.readings"]) == (1, 0)
    assert exit_code(["quality", "--scheduled", "--format", "json"]) == 0
    found = capsys.readouterr()
    assert (json.loads(found.out), found.err) == ([], "no suite is due\n")
    assert list(last_checked(scheduled.conf.lake)) == ["events"]
    assert exit_code(["quality", "--scheduled", "--full"]) == 2
