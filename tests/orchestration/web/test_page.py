"""The live page in a real browser: what it shows, that it stays true, and who can use it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from pyspark.sql import SparkSession

from orchestration.conf.load import load
from orchestration.location import Location
from orchestration.storage.outages import begin_outage, end_outage
from tests.collectors import write_conf
from tests.lakes import event, land, run
from tests.pages import Served, chromium, served
from tests.rows import at
from tests.waiting import until

HOSTILE = '<img src=x onerror="document.title=1">'
pytestmark = pytest.mark.chromium


@pytest.fixture(scope="module")
def conf(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a lake that one run has filled: a late one is among the readings, and a duplicate, an unreadable and a future one beside them."""
    folder = tmp_path_factory.mktemp("page")
    written = write_conf(folder, plant="path: ./landing")
    good = [event("oven", "temperature", 20.0, at(f"12:{minute:02d}:00")) for minute in range(0, 60, 5)]
    land(folder, "1.jsonl", [*good, good[0], "rubbish", event("oven", "temperature", 20.0, at("2999-01-01"))])
    run(load(written), spark)
    return written


@pytest.fixture(scope="module")
def server(conf: Path) -> Iterator[Served]:
    with served(conf) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    """The overview, opened; nothing that it asks for is elsewhere, and its console stays empty."""
    context = browser.new_context()
    opened, asked, said = context.new_page(), list[str](), list[str]()
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto(server.address)
    yield opened
    assert said == []
    assert all(url.startswith((server.address, "data:")) for url in asked)
    context.close()


def test_the_overview_shows_each_flow_and_where_every_event_is(page: Page) -> None:
    assert [node.inner_text() for node in page.locator(".node strong").all()] == [
        *("plant", "bronze.events", "silver.readings", "silver.ledger", "gold.kitchen")
    ]
    legend = {line.inner_text().partition(":")[0]: line.inner_text() for line in page.locator(".legend li").all()}
    assert legend.keys() == {"readings", "quarantined", "duplicates"}
    assert legend["readings"] == "readings: 12 (80.00 %)"
    assert "15 events came. None of them waits." in page.inner_text("main")
    widths = [float(bar.get_attribute("width") or 0) for bar in page.locator(".bar rect").all()]
    assert sum(widths) == pytest.approx(100)


def test_an_open_page_shows_a_batch_once_it_is_committed_and_keeps_what_is_focused(page: Page, conf: Path, spark: SparkSession) -> None:
    page.locator("h1 a").focus()
    page.evaluate("window.mark = 1")  # gone, if the page were loaded anew
    land(conf.parent, "2.jsonl", [event("oven", "temperature", 21.0, at("13:00:00"))])
    run(load(conf), spark)
    page.wait_for_selector("text=16 events came")
    page.wait_for_selector("text=readings: 13")
    assert page.evaluate("window.mark") == 1
    assert page.evaluate("document.activeElement.textContent") == page.inner_text("h1")


def test_what_is_wrong_comes_first_with_a_command_and_no_text_becomes_a_tag(page: Page, conf: Path) -> None:
    lake = Location(conf.parent / "lake")
    begin_outage(lake, "source", "plant", HOSTILE, at("12:00:00"))
    try:
        trouble = page.wait_for_selector(".troubles li")
        assert trouble is not None
        assert HOSTILE in trouble.inner_text()
        assert page.locator("main code").first.inner_text() == "tidemark status sources"
        assert page.locator("main section").first.locator("h2").inner_text() == "Wrong now: 1"
        assert page.locator("main img").count() == 0
        assert page.locator(".node.down strong").inner_text() == "plant"
        assert page.title() == "test · overview · Tidemark"
    finally:
        end_outage(lake, "source", "plant")
    page.wait_for_selector("text=Nothing is wrong that Tidemark knows of")


def test_a_server_that_is_gone_is_told_and_when_it_is_back_the_page_goes_on(browser: Browser, conf: Path) -> None:
    with served(conf) as running:
        opened = browser.new_context().new_page()
        opened.goto(running.address)
        opened.wait_for_selector("#link:text('live')")
    opened.wait_for_selector("#link.lost")
    assert "what is shown is old" in opened.inner_text("#link")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_on_a_phone_and_in_the_dark(browser: Browser, server: Served, scheme: Any) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": 360, "height": 740})
    opened = context.new_page()
    opened.goto(server.address)
    assert opened.evaluate("document.documentElement.scrollWidth") <= 360
    paper = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(251, 252, 253)", "dark": "rgb(15, 21, 27)"}[scheme]
    context.close()


def test_by_keyboard_alone_one_gets_to_what_is_true_now(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to what is true now"
    page.keyboard.press("Enter")
    until(lambda: page.evaluate("document.activeElement.id") == "live")


def test_a_lake_without_a_snapshot_and_one_without_a_table_have_a_page(tmp_path: Path) -> None:
    with served(write_conf(tmp_path, plant="path: ./landing")) as running:
        status, _, body = running.ask("/")
        assert status == 200
        assert "there is no snapshot yet" in body
        assert json.loads(running.ask("/api/overview")[2])["account"]["events"] == 0
