"""The view of alerts in a browser: what fires, who has seen it, silences, changes and messages; a hostile name stays text."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Page

from gold.alerts.messages import Message
from orchestration.alerts.grouping import Waiting
from orchestration.alerts.notifications import DEAD, Outcome, record
from orchestration.alerts.records import ACKNOWLEDGEMENTS, silences
from orchestration.connectors.outages import begin_outage
from orchestration.location import Location
from orchestration.storage.lease import sole_writer
from tests.collectors import write_conf
from tests.orchestration.alerts.alert_lake import changed, write_changes
from tests.rows import at
from tests.waiting import until

HOSTILE = '<img src=x onerror="document.title=1">'
pytestmark = pytest.mark.chromium


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("alerts")
    written = write_conf(folder, plant="path: ./landing")
    channels = "channels:\n  pager: {webhook: {url: http://127.0.0.1:1/}}\n"
    (written / "alerts.yml").write_text(f"{channels}alerts:\n  too_hot: {{reading: temperature, when: value > 280}}\n")
    lake = Location(folder / "lake")
    write_changes(lake, 0, changed(0, "firing"), changed(0, "firing", HOSTILE), changed(0, "firing", "fridge"))
    write_changes(lake, 1, changed(60, "normal", "fridge", "firing"))
    message = Message("m1", "too_hot", "firing", "warning", ("oven",), at("12:00"), at("12:00"), "oven is firing", 281.5, ("episode-oven",))
    record(lake, "pager", [Outcome(Waiting(message, ("c1",)), DEAD, "the webhook answered 410")], datetime.now(UTC))
    begin_outage(lake, "channel", "pager", HOSTILE, at("12:00"))
    with sole_writer(lake):
        yield written


def open_alerts(page: Page) -> None:
    page.get_by_role("link", name="Alerts", exact=True).click()
    page.wait_for_selector("section[aria-labelledby=firing]")


def test_what_fires_is_shown_and_the_overview_says_so_until_it_is_seen(page: Page, conf: Path) -> None:
    assert "2 alerts fire, and nobody has said that it is seen." in page.inner_text(".troubles")
    assert f"channel pager is down: {HOSTILE}" in page.inner_text(".troubles")
    of_tab = page.locator("nav[aria-label=Views] a", has_text="Alerts").locator(".count")
    assert of_tab.inner_text() == "4"  # two that fire, the channel, and its dead letter
    open_alerts(page)
    firing = page.locator("section[aria-labelledby=firing] tbody tr")
    assert sorted(row.locator("td").first.inner_text() for row in firing.all()) == [HOSTILE, "oven"]
    row = firing.filter(has_text="oven is firing")
    assert row.locator("td.n").first.inner_text().endswith("\u00a0degC")
    row.get_by_role("button", name="Seen").click()
    dialog = page.locator("dialog[open]")
    assert dialog.locator(".about").inner_text() == "oven is firing"
    dialog.get_by_label("by").fill("ada")
    dialog.get_by_label("note").fill("on my way")
    dialog.get_by_role("button", name="Seen").click()
    page.wait_for_selector("text=by ada")
    (seen,) = ACKNOWLEDGEMENTS.rows(Location(conf.parent / "lake"))
    assert (seen.alert_id, seen.note) == ("episode-oven", "on my way")
    page.get_by_role("link", name="Overview", exact=True).click()
    assert "1 alert fires" in page.inner_text(".troubles")


def silence(page: Page, *filled: tuple[str, str]) -> None:
    page.get_by_role("button", name="Silence alerts").click()
    dialog = page.locator("dialog[open]")
    for label, text in filled:
        dialog.get_by_label(label, exact=True).fill(text)
    dialog.get_by_role("button", name="Silence", exact=True).click()


def test_a_silence_is_made_and_ended_by_the_page(page: Page, conf: Path) -> None:
    open_alerts(page)
    silence(page, ("Alert", "too_*"), ("of", "oven"), ("Why", "new element"), ("by", "ada"))
    page.wait_for_selector(".badge:text('silenced')")
    (noted,) = silences(Location(conf.parent / "lake"))
    assert (noted.alert, noted.entity, noted.reason) == ("too_*", "oven", "new element")
    page.get_by_role("button", name="End").click()
    ending = page.locator("dialog[open]")
    assert ending.get_by_label("by").input_value() == "ada"  # whoever said it last in this browser
    ending.get_by_label("by").fill("bob")
    ending.get_by_role("button", name="End").click()
    page.wait_for_selector("text=There is none: whoever is to be told is told.")


def test_changes_and_messages_are_shown_and_come_by_themselves(page: Page, conf: Path) -> None:
    open_alerts(page)
    assert page.locator("section[aria-labelledby=changes] tbody tr").count() == 4
    assert "the webhook answered 410" in page.inner_text("section[aria-labelledby=messages]")
    write_changes(Location(conf.parent / "lake"), 2, changed(120, "normal", "oven", "firing"))
    until(lambda: page.locator("section[aria-labelledby=changes] tbody tr").count() == 5)


def test_a_mistake_is_said_beside_its_field_and_what_was_typed_stays(page: Page) -> None:
    open_alerts(page)
    silence(page, ("Alert", "nothing"), ("of", "*"), ("Why", "no"), ("by", "ada"))
    page.wait_for_selector("dialog[open] output.bad")
    assert "no alert of alerts.yml has the name nothing" in page.inner_text("input[name=alert] + output")
    assert page.get_attribute("dialog[open] input[name=alert]", "aria-invalid") == "true"
    assert page.input_value("dialog[open] input[name=reason]") == "no"


def test_each_alert_is_shown_with_its_condition_and_the_states_of_its_entities(page: Page) -> None:
    open_alerts(page)
    row = page.locator("section[aria-labelledby=declared] tbody tr")
    text = row.inner_text().replace("\t", " ").replace("\n", " ")
    assert "too_hot" in text
    assert "value > 280" in text
    assert "firing" in text
    assert "nothing yet" in text  # these rows were written without the job that judges


def test_from_an_entity_one_gets_to_its_charts_around_the_episode(page: Page) -> None:
    open_alerts(page)
    link = page.locator("section[aria-labelledby=firing] tbody a").first.get_attribute("href") or ""
    assert link.startswith("/devices?device=")
    assert "from=2026-01-05T11%3A30" in link
