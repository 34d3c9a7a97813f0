"""Jobs by the clock: when they run, what becomes of a missed time, and the rows of ops.runs."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.conf.pipeline_settings import ScheduleSettings
from orchestration.errors import ConfError
from orchestration.service.jobs import Jobs, arguments
from orchestration.storage.delta import rows_of
from orchestration.storage.ops_tables import RUNS
from tests.collectors import write_conf
from tests.rows import at
from tests.waiting import until

NOON = at("12:00:00")
HOURLY = 'answer: {cron: "0 * * * *", sql: {query: "select 42 as n", to: ./out/answer.csv}}'


def conf_of(folder: Path, schedules: str) -> Path:
    conf = write_conf(folder, plant="path: ./landing")
    with (conf / "pipeline.yml").open("a") as file:
        file.write(f"schedules: {{{schedules}}}\n")
    return conf


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def conf(tmp_path: Path) -> Conf:
    return load(conf_of(tmp_path, HOURLY))


@pytest.fixture
def jobs(conf: Conf, said: list[str]) -> Iterator[Jobs]:
    made = Jobs(conf, lambda part, line: said.append(f"{part} {line}"))
    yield made
    made.end(NOON)


def runs(conf: Conf) -> list[dict[str, Any]]:
    return sorted(rows_of(RUNS.path(conf.lake)), key=lambda row: (row["due_at"], row["started_at"]))


def has_rows(jobs: Jobs, conf: Conf, now: datetime, count: int) -> bool:
    """Whether there are so many, after another look."""
    jobs.look(now)
    return len(runs(conf)) == count


def test_a_job_runs_when_it_is_due_and_is_a_row_with_its_outcome(jobs: Jobs, conf: Conf, said: list[str]) -> None:
    jobs.look(NOON - timedelta(minutes=10))
    jobs.look(NOON - timedelta(seconds=1))
    assert [row["outcome"] for row in runs(conf)] == ["declared"]
    until(partial(has_rows, jobs, conf, NOON, 2))
    assert (conf.folder.parent / "out/answer.csv").read_text() == "n\n42\n"
    row = runs(conf)[1]
    assert (row["job"], row["due_at"], row["outcome"], row["snapshot_id"], row["reason"]) == ("answer", NOON, "done", None, None)
    assert "up answer: begins, as it was due at 2026-01-01T12:00Z" in said


def test_what_was_missed_many_times_is_done_once(conf: Conf, jobs: Jobs) -> None:
    jobs.look(NOON - timedelta(days=3))
    following = Jobs(conf, lambda *_: None)
    until(partial(has_rows, following, conf, NOON, 2))
    following.look(NOON + timedelta(minutes=59))
    assert len(runs(conf)) == 2
    until(partial(has_rows, following, conf, NOON + timedelta(hours=1), 3))


def test_a_job_that_still_runs_is_not_begun_a_second_time(tmp_path: Path, said: list[str]) -> None:
    slow = "select count(*) from range(100000000000)"
    conf = load(conf_of(tmp_path, f'slow: {{cron: "* * * * *", sql: {{query: "{slow}", to: ./slow.csv}}}}'))
    jobs = Jobs(conf, lambda part, line: said.append(f"{part} {line}"))
    jobs.look(NOON)
    for minutes in (1, 2, 3):
        jobs.look(NOON + timedelta(minutes=minutes))
    assert sum("begins" in line for line in said) == 1
    jobs.end(NOON + timedelta(minutes=4))
    assert [row["outcome"] for row in runs(conf)] == ["declared", "ended"]


def test_a_job_that_breaks_says_why(tmp_path: Path) -> None:
    conf = load(conf_of(tmp_path, 'wrong: {cron: "* * * * *", sql: {query: "select nothing_like_it", to: ./wrong.csv}}'))
    jobs = Jobs(conf, lambda *_: None)
    jobs.look(NOON)
    until(partial(has_rows, jobs, conf, NOON + timedelta(minutes=1), 2))
    row = runs(conf)[1]
    assert row["outcome"] == "broke"
    assert "nothing_like_it" in row["reason"]
    assert not (tmp_path / "wrong.csv").exists()


@pytest.mark.parametrize(
    ("schedule", "line"),
    [
        ({"command": "quarantine retry"}, ["quarantine", "retry"]),
        ({"train": "kitchen"}, ["train", "kitchen", "--promote"]),
    ],
)
def test_a_job_runs_the_command_that_it_stands_for(schedule: dict[str, Any], line: list[str]) -> None:
    assert arguments(ScheduleSettings("0 5 * * *", **schedule)) == line


@pytest.mark.parametrize(
    ("schedule", "mistake"),
    [
        ('{cron: "0 25 * * *", command: verify}', "which is no schedule"),
        ('{cron: "0 5 * * *", command: rm}', "rm"),
        ('{cron: "0 5 * * *"}', "sets none of command, sql, train; set one"),
        ('{cron: "0 5 * * *", train: kitchn}', "train names 'kitchn', which groups.yml does not declare; did you mean 'kitchen'?"),
        ('{cron: "0 5 * * *", train: kitchen}', "train names 'kitchen', which has no anomalies; add `anomalies: {}` to it in groups.yml"),
        ('{cron: "0 5 * * *", sql: {query: "select 1", to: ./out.txt}}', "end it with .csv or .json or .parquet"),
    ],
)
def test_a_schedule_that_cannot_be_meant_is_refused(tmp_path: Path, schedule: str, mistake: str) -> None:
    with pytest.raises(ConfError) as refused:
        load(conf_of(tmp_path, f"job: {schedule}"))
    assert mistake in str(refused.value)
