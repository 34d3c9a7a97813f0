"""The webhook: what is told, when, and that a host that misbehaves costs a warning and nothing else. Against a real HTTP server."""

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from orchestration.conf.model import Quality
from orchestration.engine.lake import Lake
from orchestration.quality import history, webhook
from orchestration.quality.failed_rows import FAILED_ROWS
from orchestration.quality.history import RESULTS, Change, Trends, changes, streak, trends
from orchestration.quality.outcome import Cause, Outcome, Run
from orchestration.quality.publish import publish, store_run
from orchestration.storage import commit
from orchestration.storage.delta import path_of
from tests.http_server import http_server
from tests.lakes import bare_conf
from tests.orchestration.quality.test_quality_report import HOSTILE, RUN_AT, run_of
from tests.waiting import PATIENCE_SECONDS

GOOD, BAD, NOTHING = (
    Outcome(True, "none of 10 rows", 0.0),
    Outcome(False, "3 of 10 rows", 30.0),
    Outcome(None, "not checked: there are no rows"),
)
SECRET = "T0P/s3cr3t?token=s3cr3t"


class Server:
    """Answers with each of the codes in turn, the last one for ever; keeps what it was sent."""

    def __init__(self, *codes: int) -> None:
        self.codes, self.documents, self.paths = list(codes), list[dict[str, Any]](), list[str]()

    def answer(self, path: str, body: bytes) -> int:
        self.paths.append(path)
        self.documents.append(json.loads(body))
        return self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]


@contextmanager
def serving(*codes: int) -> Iterator[tuple[Server, str]]:
    server = Server(*codes)
    with http_server(lambda asked: (server.answer(asked.path, asked.body), b"")) as url:
        yield server, f"{url}/{SECRET}"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestration.quality.webhook.time.sleep", lambda seconds: None)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(bare_conf(tmp_path))


def run(n: int, outcome: Outcome, cause: Cause = Cause.ASKED) -> Run:
    return replace(run_of(outcome), run_id=f"r{n}", run_at=RUN_AT + timedelta(hours=n), cause=cause)


def changed(outcome: Outcome, known: Trends | None = None) -> list[Change]:
    return list(changes(run(0, outcome), known or {}))


def test_what_changed_is_told_once_and_what_stays_as_it_is_is_not(lake: Lake, tmp_path: Path) -> None:
    with serving(200) as (server, url):
        posting = Lake(replace(lake.conf, quality=Quality(webhook=url)))
        for n, outcome in enumerate((GOOD, GOOD, BAD, BAD, NOTHING, GOOD, NOTHING, GOOD)):
            each = run(n, outcome)
            publish(posting, each, store_run(lake, each), tmp_path / "page.html")
    told = [(document["run_id"], change["before"], change["now"]) for document in server.documents for change in document["changes"]]
    assert told == [("r2", "ok", "failed"), ("r5", "failed", "ok")]
    (change,) = server.documents[0]["changes"]
    assert change == {
        "table": "silver.readings",
        "table_version": 3,
        "suite": "silver_readings",
        "expectation": "expect_column_values_to_be_between",
        "columns": ["value"],
        "description": "Every value is finite.",
        "severity": "critical",
        "before": "ok",
        "now": "failed",
        "observed": "3 of 10 rows",
    }
    document = server.documents[0]
    assert (document["pipeline"], document["is_passed"], document["report"]) == ("plant", False, str(tmp_path / "page.html"))


def test_a_run_on_a_snapshot_changes_nothing(lake: Lake, tmp_path: Path) -> None:
    with serving(200) as (server, url):
        posting = Lake(replace(lake.conf, quality=Quality(webhook=url)))
        for n, (outcome, cause) in enumerate(((GOOD, Cause.ASKED), (BAD, Cause.SNAPSHOT), (GOOD, Cause.ASKED))):
            each = run(n, outcome, cause)
            publish(posting, each, store_run(lake, each), tmp_path / "page.html")
    assert server.documents == []


def test_what_fails_when_it_is_first_seen_is_told_and_what_holds_is_not() -> None:
    assert [change.is_new for change in changed(BAD)] == [True]
    assert changed(GOOD) == []
    assert changed(NOTHING) == []


def test_a_streak_begins_with_the_first_failure_and_unchecked_runs_do_not_end_it(lake: Lake) -> None:
    for n, outcome in enumerate((BAD, GOOD, BAD, NOTHING, BAD)):
        store_run(lake, run(n, outcome))
    (points,) = trends(lake.conf.lake).values()
    found = streak(points)
    assert found is not None
    assert (found.first.run_id, found.runs, found.is_all) == ("r2", 2, False)
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
    found = {key[0]: [(point.run_id, point.is_success) for point in points] for key, points in trends(lake.conf.lake).items()}
    assert found == {
        "gold.kitchen_aggregates": [("r-1", False)],
        "silver.readings": [(f"r{n}", n % 2 == 0) for n in range(1, 6)],
    }


@pytest.mark.parametrize(
    ("codes", "tries", "is_told"), [((503, 429, 200), 3, True), ((500,), 3, False), ((404,), 1, False), ((302,), 1, False)]
)
def test_what_may_pass_is_tried_again_and_what_will_not_is_left(
    codes: tuple[int, ...], tries: int, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(*codes) as (server, url):
        assert webhook.post_changes(url, run(0, BAD), changed(BAD), Path("page.html")) is is_told
    assert (len(server.documents), len(set(server.paths))) == (tries, 1)
    assert ("did not get run r0" in caplog.text) is not is_told
    assert "s3cr3t" not in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        f"http://127.0.0.1:1/{SECRET}",
        f"ftp://host/{SECRET}",
        f"http://host:port/{SECRET}",
        f"http://[/{SECRET}",
        f"http://h/\n{SECRET}",
        "s3cr3t",
    ],
)
def test_a_host_that_is_not_there_and_a_url_that_is_none_are_a_warning_without_the_secret(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        assert not webhook.post_changes(url, run(0, BAD), changed(BAD), Path("page.html"))
    assert len(caplog.records) == 1
    assert "s3cr3t" not in caplog.text


def test_a_host_that_takes_its_time_is_given_up(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(webhook, "TIMEOUT_SECONDS", 0.05)
    is_over = threading.Event()
    monkeypatch.setattr(Server, "answer", lambda *_: is_over.wait(PATIENCE_SECONDS) and 200)
    with serving(200) as (_, url):
        assert not webhook.post_changes(url, run(0, BAD), changed(BAD), Path("page.html"))
        is_over.set()
    assert "was not reached (TimeoutError)" in caplog.text


def test_hostile_values_leave_as_json_and_cut() -> None:
    outcome = Outcome(False, HOSTILE + "x" * 2**20)
    with serving(200) as (server, url):
        assert webhook.post_changes(url, run(0, outcome), changed(outcome), Path("page.html"))
    assert server.documents[0]["changes"][0]["observed"].startswith(HOSTILE)
    assert len(json.dumps(server.documents[0])) < 5_000
