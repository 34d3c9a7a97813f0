"""The page: what it says, and that no value on it can do more than be read."""

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from expectations.suite import Expectation, Severity
from orchestration.quality.outcome import Cause, Outcome, Result, Run, TableResult
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
