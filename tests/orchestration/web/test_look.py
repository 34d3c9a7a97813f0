"""The look that views share, and what each shows of it: status line, time zone, choosers, charts, tables that fold, phone. In a browser."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from orchestration.connectors.outages import begin_outage, end_outage
from orchestration.location import Location
from orchestration.storage.lease import sole_writer
from tests.built import copy_of
from tests.page_lakes import HOSTILE, LONG, VIEWS
from tests.pages import Served, plotted
from tests.rows import at
from tests.waiting import until

pytestmark = [pytest.mark.chromium, pytest.mark.lakes]


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = copy_of("views", tmp_path_factory.mktemp("look"))
    with sole_writer(Location(folder / "lake")):
        yield folder / "conf"


@pytest.mark.parametrize("path", VIEWS)
def test_each_view_says_on_top_what_is_wrong(server: Served, path: str) -> None:
    _, _, body = server.ask(path)
    status = body.partition('<div id="status">')[2].partition("</div>")[0]
    assert "known up to" in status
    assert 'class="badge' in status


def test_the_status_line_of_an_open_view_changes_though_the_view_does_not(page: Page, server: Served, conf: Path) -> None:
    page.goto(f"{server.address}/groups?group=kitchen")
    lake, counts = Location(conf.parent / "lake"), page.locator("#status .count")
    before = counts.all_inner_texts()
    begin_outage(lake, "source", "plant", HOSTILE, at("12:00:00"))
    try:
        until(lambda: counts.all_inner_texts() != before)
        assert page.locator("#status img").count() == 0
    finally:
        end_outage(lake, "source", "plant")
    until(lambda: counts.all_inner_texts() == before)


def test_instants_are_in_the_zone_that_is_chosen_and_the_choice_stays(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/groups")
    ended = page.locator("#all ~ .wide tbody td time").first
    assert ended.inner_text() == "2026-01-01 12:10:00"
    page.evaluate("zones.add(new Option('Asia/Tokyo')); zones.value = 'Asia/Tokyo'; zones.dispatchEvent(new Event('change'))")
    assert ended.inner_text() == "2026-01-01 21:10:00"
    assert ended.get_attribute("title") == "2026-01-01 21:10:00 Asia/Tokyo"
    page.select_option("#zone", "UTC")
    page.reload()
    assert page.locator("#all ~ .wide tbody td time").first.inner_text() == "2026-01-01 12:10:00"


def test_what_came_lately_is_said_by_its_age_with_the_instant_on_hover(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/quality")
    run = page.locator("tbody td time").first
    assert re.fullmatch(r"\d+ (s|min|h) ago", run.inner_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", run.get_attribute("title") or "")


def test_devices_of_a_group_are_chosen_from_a_list_with_the_worst_first(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/groups?group=kitchen&span=day")
    page.click("#chooser summary")
    names = [box.get_attribute("value") for box in page.locator("#chooser input[type=checkbox]").all()]
    assert names == [HOSTILE, "fridge", "oven"]
    row = page.locator("#chooser tbody tr", has=page.locator("input[value=oven]"))
    assert row.locator("td").all_inner_texts() == ["2026-01-01 15:40:00", "307", "1"]
    assert "device=oven&metric=temperature&end=" in (row.locator("a").first.get_attribute("href") or "")
    page.check("#chooser input[value=fridge]")
    page.click("#chooser button")
    page.wait_for_selector("a:text('All devices')")
    assert {device for device, _ in plotted(page, "temperature")} == {"fridge"}
    assert page.is_checked("#chooser input[value=fridge]")


def test_charts_of_a_device_have_its_alerts_the_limits_and_what_was_set_aside(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/devices?device=oven")
    charts = {
        told["metric"]: told for told in (json.loads(place.get_attribute("data-plot") or "") for place in page.locator(".plot").all())
    }
    chart = charts["temperature"]
    assert chart["lines"][0]["y"][0] == 200.0
    assert [limit[:2] for limit in chart["limits"]] == [[300.0, "hot"]]
    texts = [band["text"] for band in chart["bands"]]
    assert "hot: oven" in texts
    assert "event_time_is_not_in_the_future (quarantine)" in texts
    assert "hot: oven" not in [band["text"] for band in charts[LONG]["bands"]]


def test_what_fires_has_the_value_that_came_last_beside_the_one_that_it_began_with(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/alerts")
    row = page.locator("section[aria-labelledby=declared] tbody tr")
    assert [row.locator("td").nth(place).inner_text() for place in (5, 6)] == ["301\u00a0degC", "319\u00a0degC"]


def test_a_text_column_splits_the_series_and_a_text_first_makes_bars(page: Page, server: Served) -> None:
    of_devices = "select event_time, device_id, value from silver.readings where metric = 'temperature'"
    page.goto(f"{server.address}/sql?{urlencode({'query': of_devices})}")
    told = json.loads(page.get_attribute(".plot", "data-plot") or "")
    assert {line["device"]: len(line["x"]) for line in told["lines"]} == {"oven": 120, "fridge": 30, HOSTILE: 1}
    counted = "select device_id, count(*) as n from silver.readings where device_id in ('oven', 'fridge') group by 1 order by 1"
    page.goto(f"{server.address}/sql?{urlencode({'query': counted})}")
    told = json.loads(page.get_attribute(".plot", "data-plot") or "")
    assert (told["is_bars"], told["names"], told["lines"][0]["y"]) == (True, ["fridge", "oven"], [30.0, 125.0])
    page.wait_for_selector(".plot canvas")


def test_tables_and_their_columns_are_listed_and_a_click_puts_a_name_into_the_query(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/sql")
    page.click(".tree summary:text-is('readings')")
    page.fill("#query", "select ")
    page.click(".tree button:text-is('event_time')")
    assert page.input_value("#query") == "select event_time"


def test_a_long_table_is_collapsed_and_filtered_by_typing_and_an_event_changes_that_not(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/sql?{urlencode({'query': 'select i, i * i as square from range(100) t(i) order by 1'})}")
    rows = page.locator("table.answer tbody tr:visible")
    assert rows.count() == 12
    page.click("button:text('All 100')")
    assert rows.count() == 100
    page.fill("input[type=search]", "9801")
    assert rows.all_inner_texts() == ["99\t9801"]


def test_on_a_phone_each_cell_says_what_it_is(browser: Browser, server: Served) -> None:
    opened = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
    opened.goto(f"{server.address}/devices")
    labels = opened.evaluate("[...document.querySelector('tbody tr').cells].map((cell) => getComputedStyle(cell, '::before').content)")
    assert labels[:3] == ['"device"', '"last event came"', '"readings"']
    opened.context.close()


def test_what_is_in_quarantine_is_counted_by_file_and_by_reason(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/quarantine?rule=payload_is_readable")
    assert page.locator("section[aria-labelledby=files] tbody tr").all_inner_texts()[0].split("\t")[:3] == ["1.jsonl", "plant", "1"]
    page.goto(f"{server.address}/quarantine?rule=event_time_is_not_in_the_future")
    reasons = page.locator("section[aria-labelledby=reasons] tbody tr").all_inner_texts()
    assert reasons == ["ingested_at is …, event_time is …\t1"]  # without what is of one row alone


def test_a_failing_expectation_has_its_severity_and_what_was_found_in_its_row(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/quality")
    row = page.locator("tr", has=page.locator("a:text('No oven is hotter than 310.')"))
    assert row.locator(".badge").all_inner_texts() == ["fails", "warning"]
    assert row.locator("td").nth(2).inner_text() != ""
    assert page.locator("#table-silver\\.readings details summary").inner_text().endswith("hold, or had no rows to check")
