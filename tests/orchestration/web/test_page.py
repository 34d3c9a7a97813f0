"""The live page in a real browser: what it shows, that it stays true, and who can use it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from playwright.sync_api import Browser, Page

from orchestration.conf.load import load
from orchestration.connectors.outages import begin_outage, end_outage
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.storage.lease import sole_writer
from orchestration.storage.ops_tables import COUNTED, LEDGER, LEDGER_SCHEMA, RUNS, RunOfJob
from orchestration.supervisor.history import note
from tests.built import copy_of
from tests.collectors import write_conf
from tests.lakes import write
from tests.pages import Served, served
from tests.rows import at
from tests.waiting import until

HOSTILE = '<img src=x onerror="document.title=1">'
COMMAND = [sys.executable, "-m", "orchestration.cli.app"]
pytestmark = [pytest.mark.chromium, pytest.mark.lakes]


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a lake that one run has filled, and that somebody writes."""
    folder = copy_of("page", tmp_path_factory.mktemp("page"))
    with sole_writer(Location(folder / "lake")):
        yield folder / "conf"


def test_the_overview_shows_each_flow_and_where_every_event_is(page: Page) -> None:
    assert [node.inner_text() for node in page.locator(".node strong").all()] == [
        *("plant", "bronze.events", "silver.readings", "silver.ledger", "gold.kitchen")
    ]
    legend = {line.inner_text().partition(":")[0]: line.inner_text() for line in page.locator(".legend li").all()}
    assert legend.keys() == {"readings", "quarantined", "duplicates"}
    assert legend["readings"] == "readings: 12 (75.00 %)"
    assert "16 events came. None of them waits." in page.inner_text("main")
    widths = [float(bar.get_attribute("width") or 0) for bar in page.locator(".bar rect").all()]
    assert sum(widths) == pytest.approx(100)


def test_an_open_page_shows_a_batch_once_it_is_committed_and_keeps_what_is_focused(page: Page, conf: Path) -> None:
    page.locator("h1 a").focus()
    page.evaluate("window.mark = 1")  # gone, if the page were loaded anew
    lake, of_batch = Lake(load(conf)), {"source": "plant", "bronze_batch": 99}
    write(lake, "bronze.events", of_batch | {"bronze_row": 0, "ingested_at": at("13:00:00"), "ingested_on": at("13:00:00").date()})
    page.wait_for_selector("text=17 events came. 1 of them wait for the ledger.")
    counts = pa.Table.from_pylist([dict.fromkeys(COUNTED, 0) | of_batch | {"events": 1, "readings": 1}], LEDGER_SCHEMA)
    write_deltalake(lake.table_path(LEDGER).local, counts, mode="append")
    page.wait_for_selector("text=readings: 13")
    page.wait_for_selector("text=17 events came. None of them waits.")
    assert page.evaluate("window.mark") == 1
    assert page.evaluate("document.activeElement.textContent") == page.inner_text("h1")


def test_what_is_wrong_comes_first_with_a_command_and_no_text_becomes_a_tag(page: Page, conf: Path) -> None:
    lake = Location(conf.parent / "lake")
    begin_outage(lake, "source", "plant", HOSTILE, at("12:00:00"))
    try:
        worst = page.wait_for_selector(".troubles li.critical")
        assert worst is not None
        assert worst.inner_text().startswith(f"critical source plant is down: {HOSTILE} more since 2026-01-01 12:00:00")
        (warning,) = page.locator(".troubles li.warning").all()
        assert f"'{HOSTILE}' is not in devices.yml: 1 reading of source plant is in quarantine." in warning.inner_text()
        fix = f"tidemark --conf {conf} quarantine retry --rule device_is_known"
        assert page.locator("main section").first.locator("code").all_inner_texts() == [fix]
        assert page.locator("main section").first.locator("h2").inner_text() == "Wrong now: 2"
        assert page.locator("main img").count() == 0
        assert page.locator(".node.down strong").inner_text() == "plant"
        assert page.title() == "test · overview · Tidemark"
    finally:
        end_outage(lake, "source", "plant")
    page.wait_for_selector("h2:text('Wrong now: 1')")
    assert "Known up to" in page.locator("main section").first.inner_text()


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


def test_batches_are_shown_by_flow_with_percentiles_a_chart_and_the_steps_of_the_newest(page: Page, conf: Path) -> None:
    lake = Location(conf.parent / "lake")
    for number in range(100):
        note(
            lake,
            {
                "flow": "silver.readings",
                "batch": number,
                "rows": 10,
                "seconds": 1 + number / 100,
                "steps": {"addBatch": 900, "walCommit": 30},
            },
        )
    note(lake, {"job": "silver.ledger", "rows": 1000, "seconds": 7.0})
    note(lake, {"warning": "gap", "reason": HOSTILE})
    page.click("nav >> text=Batches")
    page.wait_for_selector("h1")
    rows = [row.inner_text().split("\t")[:6] for row in page.locator("tbody").first.locator("tr").all()]
    assert rows == [
        ["silver.ledger", "1", "1,000", "7.0 s", "7.0 s", "7.0 s"],
        ["silver.readings", "100", "1,000", "1.5 s", "2.0 s", "2.0 s"],
    ]
    assert [row.inner_text().split("\t")[:2] for row in page.locator(".steps tbody tr").all()] == [
        ["compute and write", "0.900 s"],
        ["note what is about to be read", "0.030 s"],
    ]
    assert HOSTILE in page.inner_text(".troubles")
    assert page.locator("main img").count() == 0
    page.click("#span-week")
    page.wait_for_selector("strong:text('week')")
    assert page.url.endswith("/batches?span=week")
    note(lake, {"flow": "gold.kitchen", "batch": 1, "rows": 5, "seconds": 9.0})
    (lake / "up").local.mkdir(exist_ok=True)
    (lake / "up/state.json").local.touch()
    page.wait_for_selector("th:text('gold.kitchen')")


def test_quarantine_is_shown_by_rule_with_reasons_and_payloads_that_are_text(page: Page) -> None:
    page.click("nav >> text=Quarantine")
    page.wait_for_selector(".event")
    rules = [row.inner_text() for row in page.locator("tbody th").all()]
    assert {"payload_is_readable", "device_is_known", "event_time_is_not_in_the_future"} <= {*rules}
    page.click("tbody th a:text('payload_is_readable')")
    page.wait_for_selector("pre:text('rubbish')")
    page.click("tbody th a:text('device_is_known')")
    page.wait_for_selector("h2:text('The newest that break device_is_known')")
    (row,) = page.locator(".event").all()
    assert HOSTILE.replace('"', '\\"') in row.locator("pre").inner_text()
    assert HOSTILE in row.inner_text()
    assert page.locator("main img").count() == 0
    assert page.url.endswith("/quarantine?rule=device_is_known")


def test_runs_show_jobs_by_the_clock_snapshots_and_generations(conf: Path, browser: Browser) -> None:
    lake = Location(conf.parent / "lake")
    RUNS.append(lake, [RunOfJob("every_night", at("03:15:00"), at("03:15:01"), 12.5, "no", 0, "2 rows differ")])
    before = (conf / "pipeline.yml").read_text()
    (conf / "pipeline.yml").write_text(f'{before}schedules: {{every_night: {{cron: "15 3 * * *", command: verify}}}}\n')
    with served(conf) as running:
        opened = browser.new_page()
        opened.goto(f"{running.address}/runs")
        text = opened.inner_text("main").replace("\t", " ")
        opened.close()
    (conf / "pipeline.yml").write_text(before)
    assert "every_night 15 3 * * * verify" in text
    assert "2026-01-01 03:15:01 job every_night no due 2026-01-01 03:15:00 UTC, took 12.5 s, snapshot 0: 2 rows differ" in text
    assert "1 the beginning active the first" in text


def test_a_lake_without_a_snapshot_and_one_without_a_table_have_a_page(tmp_path: Path) -> None:
    conf = write_conf(tmp_path, plant="path: ./landing")
    with served(conf) as running:
        status, _, body = running.ask("/")
        assert status == 200
        assert "there is no snapshot yet" in body
        assert "Nothing writes the lake now: what is shown does not move." in body
        assert f"<code>tidemark --conf {conf} up</code>" in body
        assert f"<code>mkdir -p {tmp_path / 'landing'}</code>" in body
        assert json.loads(running.ask("/api/overview")[2])["account"]["events"] == 0
        assert "No batch ended in this span" in running.ask("/batches?span=century")[2]
        assert "Nothing is in quarantine" in running.ask("/quarantine?rule=%3Cscript%3E")[2]
        assert "There is none yet" in running.ask("/runs")[2]


@pytest.mark.slow
def test_while_a_lake_is_replayed_every_view_has_an_answer_and_then_shows_the_new_generation(tmp_path: Path) -> None:
    copied = copy_of("page", tmp_path)
    said = tmp_path / "replay.txt"
    with served(copied / "conf") as running, said.open("w") as output:
        replay = subprocess.Popen([*COMMAND, "--conf", str(copied / "conf"), "replay", "--yes"], stdout=output, stderr=output)
        asked = 0
        while replay.poll() is None:
            for path in ("/", "/groups?group=kitchen", "/devices", "/quality", "/runs", "/metrics"):
                status, _, body = running.ask(path)
                assert status == 200, body
                asked += 1
        assert replay.returncode == 0, said.read_text()
        assert asked > 50
        assert '<th scope="row">2</th>' in running.ask("/runs")[2]
        assert json.loads(running.ask("/api/overview")[2])["account"]["waiting"] == 0
