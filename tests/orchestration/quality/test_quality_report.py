"""The page: what it says, and that no value on it can do more than be read."""

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from expectations.suite import Expectation, Severity
from orchestration.quality.failed_rows import Event, FailedRow
from orchestration.quality.history import Point, Trends
from orchestration.quality.outcome import Cause, Outcome, Result, Run, TableResult, identity
from orchestration.quality.report import failures, percent, rendered, write_report

RUN_AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOSTILE = '"><script src=https://evil.example/x.js></script><img src=//evil.example onerror=alert(1)> {{ 7*7 }} \u202e\x1b[31m'


def run_of(*outcomes: Outcome, version: int | None = 3, rows: int = 10, text: str = "Every value is finite.") -> Run:
    expectation = Expectation("expect_column_values_to_be_between", text, Severity.CRITICAL, {"column": "value"})
    results = tuple(Result("silver_readings", expectation, outcome) for outcome in outcomes)
    return Run("r1", RUN_AT, "plant", Cause.ASKED, (TableResult("silver.readings", version, "id", rows, results),))


class Elements(HTMLParser):
    """Names of the elements of a page, and the attributes that make a browser fetch or run something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.links += [f"{name}={value}" for name, value in attrs if name in {"src", "href", "srcset", "action"} or name.startswith("on")]


def test_hostile_values_are_shown_and_do_nothing() -> None:
    samples = ({"value": HOSTILE, HOSTILE: "1"},)
    page = rendered(run_of(Outcome(False, HOSTILE, 10.0, samples), text=HOSTILE))
    elements = Elements(page)
    assert not elements.names & {"script", "img", "link", "iframe", "object", "embed", "svg", "form", "base"}
    assert elements.links == ["href=#t1e1", "href=#t1"]
    assert "&lt;script" in page
    assert "{{ 7*7 }}" in page
    assert r"\u202e\x1b[31m" in page
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", page)


def test_the_page_of_healthy_tables_names_no_host_at_all() -> None:
    page = rendered(run_of(Outcome(True, "none of 10 rows", 0.0)))
    assert not re.search(r"(https?:)?//\w|url\(|@import", page)
    assert "default-src 'none'" in page


def test_a_long_value_is_cut_and_says_how_long_it_was() -> None:
    page = rendered(run_of(Outcome(False, "1 of 10 rows", 10.0, ({"value": "x" * 50_000_000},))))
    assert len(page) < 30_000
    assert "(50,000,000 characters)" in page


def test_the_page_tells_verdict_versions_and_when() -> None:
    page = rendered(run_of(Outcome(True, "none of 10 rows", 0.0), Outcome(False, "3 of 10 rows", 30.0)))
    for words in (
        "Not passed: 1 critical expectation failed",
        "version 3 · 10 rows",
        "05 January 2026, 12:00:00 UTC",
        "3 of 10 rows (30\xa0%)",
    ):
        assert words in page


def test_a_table_that_does_not_exist_is_told_and_nothing_has_passed() -> None:
    run = run_of(Outcome(None, "not checked: there are no rows"), version=None, rows=0)
    assert not run.is_passed
    assert "Nothing was checked" in rendered(run)
    assert "There is no such table yet" in rendered(run)


def test_an_empty_table_is_told_apart_from_a_missing_one() -> None:
    assert "The table is empty" in rendered(run_of(Outcome(None, ""), version=0, rows=0))


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0\xa0%"), (0.00013, "less than 0.01\xa0%"), (12.5, "12.5\xa0%"), (99.9999, "more than 99.99\xa0%")]
)
def test_a_share_is_never_rounded_to_none_or_to_all(share: float, text: str) -> None:
    assert percent(share) == text


def test_failures_are_told_in_a_terminal_without_steering_it() -> None:
    (line,) = failures(run_of(Outcome(False, HOSTILE)))
    assert line.startswith("critical: silver.readings: Every value is finite. Found: ")
    assert line.isprintable()


def test_the_report_replaces_the_former_one_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    page = tmp_path / "artifacts" / "quality.html"
    for observed in ("first", "second"):
        write_report(run_of(Outcome(True, observed)), page)
    assert "second" in page.read_text(encoding="utf-8")
    assert [file.name for file in page.parent.iterdir()] == ["quality.html"]


def trends_of(run: Run, *points: tuple[bool | None, float | None]) -> Trends:
    """One point an hour up to the run; the same for each of its expectations."""
    first = RUN_AT - timedelta(hours=len(points) - 1)
    each = [Point(f"r{n}", first + timedelta(hours=n), *point) for n, point in enumerate(points)]
    return {identity(table.table, result): each for table in run.tables for result in table.results}


def test_the_summary_says_what_is_wrong_where_and_since_when() -> None:
    run = run_of(Outcome(False, "3 of 10 rows", 30.0))
    page = rendered(run, trends=trends_of(run, (True, 0.0), (False, 10.0), (None, None), (False, 30.0)))
    summary = page[page.index('<ol class="wrong"') : page.index("</ol>")]
    for words in ("silver.readings", "Every value is finite.", "3 of 10 rows (30\xa0%)", "since 05 Jan 2026, 10:00 UTC, 2 runs"):
        assert words in summary


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (((True, 0.0), (False, 30.0)), "new in this run"),
        (((False, 30.0),), "seen for the first time"),
        (((False, 30.0), (False, 30.0)), "since at least 05 Jan 2026, 11:00 UTC, 2 runs"),
    ],
)
def test_a_failure_says_whether_it_is_new(points: tuple[tuple[bool, float], ...], words: str) -> None:
    run = run_of(Outcome(False, "3 of 10 rows", 30.0))
    assert words in rendered(run, trends=trends_of(run, *points))


def test_what_holds_again_is_told() -> None:
    run = run_of(Outcome(True, "none of 10 rows", 0.0))
    told = "Holds again:</b> silver.readings: Every value is finite."
    assert told in rendered(run, trends=trends_of(run, (False, 30.0), (True, 0.0)))
    assert told not in rendered(run, trends=trends_of(run, (True, 0.0), (True, 0.0)))


def test_the_last_thirty_runs_are_drawn_and_a_greater_share_is_a_taller_bar() -> None:
    run = run_of(Outcome(False, "3 of 10 rows", 30.0))
    page = rendered(run, trends=trends_of(run, *[(True, 0.0)] * 28, (False, 90.0), (True, 1.0), (False, 30.0), (None, None)))
    bars = re.findall(r'<i class="(\w+)" style="height:(\d+)%" title="([^"]+)"', page)
    assert len(bars) == 30
    assert [(word, title) for word, _, title in bars[-4:]] == [
        ("failed", "2026-01-05 09:00 UTC: failed, 90\xa0% of rows"),
        ("passed", "2026-01-05 10:00 UTC: passed, 1\xa0% of rows"),
        ("failed", "2026-01-05 11:00 UTC: failed, 30\xa0% of rows"),
        ("not_checked", "2026-01-05 12:00 UTC: not checked"),
    ]
    healthy, worst, passed, failed, unchecked = (int(height) for _, height, _ in bars[-5:])
    assert 100 == worst > failed > passed > healthy > unchecked
    assert 'aria-label="failed in 2 of the last 30 runs"' in page


def test_a_message_is_shown_beside_its_row_as_far_as_it_fits() -> None:
    run = run_of(Outcome(False, "2 of 10 rows", 20.0))
    key = identity("silver.readings", run.tables[0].results[0])
    long, empty = Event(3, 17, "a.jsonl", b"\xff" + HOSTILE.encode() + b"x" * 50_000_000), Event(3, 18, "b.jsonl", b"")
    page = rendered(run, {key: [FailedRow({"value": "inf"}, event) for event in (long, empty, Event(3, 19), None)]})
    assert r"\xff&#34;&gt;&lt;script" in page
    assert f"({len(long.payload or b''):,} bytes)" in page
    for words in ("a.jsonl · batch 3, row 17", "an empty message", "its payload is not shown", "1 more row"):
        assert words in page
    assert len(page) < 50_000
