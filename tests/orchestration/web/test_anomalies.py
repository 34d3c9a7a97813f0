"""Anomalies in the view of a group, in a browser: what was expected, marks, the newest with their reasons, and what people say of them."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from orchestration.location import Location
from orchestration.storage.ops_tables import LABELS, labels
from tests.anomaly_lake import anomaly_lake
from tests.pages import Served, plotted, serious_violations

pytestmark = pytest.mark.chromium


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return anomaly_lake(tmp_path_factory.mktemp("anomalies"))


def open_group(page: Page, server: Served, more: str = "&span=week") -> None:
    page.goto(f"{server.address}/groups?group=kitchen{more}")
    page.wait_for_selector("section[aria-labelledby=anomalies]")


def test_a_chart_has_what_was_expected_and_a_mark_on_each_anomaly(page: Page, server: Served) -> None:
    open_group(page, server)
    power = plotted(page, "power")
    low, high, line = (power["oven-01", kind] for kind in ("low", "high", "window"))
    assert len(low) == len(high) > 500
    assert all(below is None or (above is not None and below < above) for below, above in zip(low, high, strict=True))
    (marked,) = power["oven-01", "anomaly"]
    assert marked in line
    assert marked is not None and marked < 750
    assert ("oven-02", "low") in power


def test_anomalies_are_listed_the_newest_first_with_their_reasons_and_lead_to_their_charts(page: Page, server: Served) -> None:
    open_group(page, server)
    rows = page.locator("section[aria-labelledby=anomalies] tbody tr")
    times = [row.locator("time").first.get_attribute("datetime") or "" for row in rows.all()]
    assert times == sorted(times, reverse=True)
    row = rows.filter(has_text="power 6")
    assert "% of the score)" in row.inner_text()
    row.get_by_role("link").click()
    page.wait_for_selector("text=Charts show oven-01")
    assert ("oven-01", "anomaly") in plotted(page, "power")
    assert serious_violations(page) == []


def test_one_click_says_that_it_was_a_fault_and_another_one_that_it_was_none(page: Page, server: Served, conf: Path) -> None:
    open_group(page, server)
    row = page.locator("section[aria-labelledby=anomalies] tbody tr").filter(has_text="power 6")
    row.get_by_role("button", name="It was a fault").click()  # the browser asks for a name first
    assert labels(Location(conf.parent / "lake"), "kitchen") == []
    page.locator("#labelling input[name=author]").fill("ada")
    page.locator("#labelling input[name=kind]").fill("a fuse")
    row.get_by_role("button", name="It was a fault").click()
    page.wait_for_selector("td:has-text('a fuse by ada')")
    (label,) = labels(Location(conf.parent / "lake"), "kitchen")
    assert (label.entity, label.is_fault, label.kind) == ("oven-01", True, "a fuse")
    row.get_by_role("button", name="It was no fault").click()  # the name is remembered
    page.wait_for_selector(".badge:text('no fault')")
    (label,) = labels(Location(conf.parent / "lake"), "kitchen")
    assert not label.is_fault
    assert len(LABELS.rows(Location(conf.parent / "lake"))) == 2


def test_enter_in_a_field_says_nothing_and_a_forged_form_is_refused(page: Page, server: Served, conf: Path) -> None:
    open_group(page, server)
    before = len(LABELS.rows(Location(conf.parent / "lake")))
    page.locator("#labelling input[name=kind]").press("Enter")
    token = page.locator("#labelling input[name=form_token]").get_attribute("value")
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    forged = "group=kitchen&author=eve&label=fault%202026-01-20T09:20:00Z%20oven-01"
    assert server.ask("/groups/labels", "POST", headers, forged)[0] == 403
    for label in (
        "fault%202026-01-20T00:00:00Z%20oven-01",
        "fault%20soon%20oven-01",
        "maybe",
        "fault%202026-01-20T09:20:00Z%20x'%20or%201=1",
    ):
        status, _, said = server.ask("/groups/labels", "POST", headers, f"form_token={token}&group=kitchen&author=eve&label={label}")
        assert (status, "this is no anomaly" in said) == (400, True)
    assert len(LABELS.rows(Location(conf.parent / "lake"))) == before


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_overflows(browser, server: Served, width: int, scheme: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    open_group(page, server, "&span=day")
    page.screenshot(path=tmp_path / f"anomalies-{width}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
