"""Views of groups, devices, quality and SQL in a real browser, over a lake with what is late, duplicate, unreadable, future and hostile."""

import http.client
import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from playwright.sync_api import Browser, Page

from orchestration.conf.load import load
from orchestration.location import Location
from orchestration.storage.delta import rows_of, table_id
from orchestration.storage.gate_state import RELEASES, Failure, GateState, write_gate_state
from orchestration.storage.lease import sole_writer
from orchestration.storage.ops_tables import NOTES
from orchestration.storage.tables import LakeStore
from tests.built import copy_of
from tests.page_lakes import HOSTILE, LONG, PARAMETERS, PATHS, VIEWS
from tests.pages import Served, plotted, serious_violations
from tests.rows import at

pytestmark = [pytest.mark.chromium, pytest.mark.lakes]


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = copy_of("views", tmp_path_factory.mktemp("views"))
    with sole_writer(Location(folder / "lake")):
        yield folder / "conf"


def test_a_group_is_as_good_as_its_worst_device_and_the_share_is_said(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/groups")
    rows = [row.inner_text().split("\t") for row in page.locator("#all ~ .wide tbody tr").all()]
    assert rows == [
        ["Kitchen <b>", "1 of 3", "stale", HOSTILE, "2026-01-01 12:10:00", "2026-01-01 15:40:00"],
        ["attic", "0 of 0", "new", "", "", "none"],
    ]
    page.goto(f"{server.address}/groups?group=kitchen")
    assert "1 of 3 devices are up to date; the last window of" in page.inner_text("p.stale")
    assert page.locator("main img").count() == 0


def test_a_chart_marks_windows_that_are_amended_open_and_carried(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/groups?group=kitchen&span=day")
    temperature = plotted(page, "temperature")
    assert temperature["oven", "amended"] == [pytest.approx((200 + 201 + 202 + 203 + 204 + 1000) / 6)]
    assert temperature["oven", "window"][0] == temperature["oven", "amended"][0]
    assert temperature["oven", "open"] == [pytest.approx(307.0), pytest.approx(312.0), pytest.approx(317.0)]
    assert temperature["fridge", "window"] == [4.0] * 6
    carried = plotted(page, LONG)["oven", "carried"]
    assert carried and {*carried} == {1.0}
    assert page.locator(".plot canvas").count() == 2
    painted = page.evaluate(
        "(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(of => of))(document.querySelector('canvas'))"
    )
    assert painted


def test_a_zoom_has_a_link_and_stays_when_the_view_is_brought_anew(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/groups?group=kitchen&span=day")
    box = page.locator(".u-over").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 60, steps=5)
    page.mouse.up()
    page.wait_for_selector("#zoomed:not([hidden])")
    link = page.get_attribute("#zoomed", "href") or ""
    assert re.search(r"from=2026-01-01T1\d.*to=2026-01-01T1\d", link)
    page.goto(f"{server.address}{link}")
    (first, *_, last) = json.loads(page.locator(".plot").first.get_attribute("data-plot") or "")["lines"][0]["x"]
    assert at("12:10:00").timestamp() < first < last < at("15:40:00").timestamp()


def test_from_a_point_one_gets_to_its_readings_and_their_raw_events(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/groups?group=kitchen&span=day&device=oven")
    over = page.locator(".u-over").first
    box = over.bounding_box()
    assert box is not None
    x, y = page.evaluate(
        "(() => { const u = drawn[0].plot, line = u.series.findIndex((of) => of.class === 'window');"
        "return [u.valToPos(u.data[0][3], 'x'), u.valToPos(u.data[line][3], 'y')]; })()"
    )
    over.click(position={"x": x, "y": y})
    page.wait_for_selector("h2:has-text('oven: temperature from')")
    assert len(page.locator(".event").all()) == 5
    assert '"device": "oven"' in page.locator("pre").first.inner_text()
    assert "1.jsonl" in page.locator(".event").first.inner_text()
    page.goto(f"{server.address}/readings?device=oven&metric=temperature&end=2026-01-01T12:10:00Z")
    assert ["(late)" in of.inner_text() for of in page.locator(".event").all()] == [False, False, False, True, False, False]


def test_a_device_has_its_counts_its_registry_and_its_clock(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/devices?find=OV")
    page.click("#device-1")
    page.wait_for_selector("h2:text('oven')")
    facts = dict(zip(page.locator(".facts dt").all_inner_texts(), page.locator(".facts dd").all_inner_texts(), strict=True))
    assert {name: facts[name] for name in ("readings", "late", "duplicates", "quarantined", "groups")} == {
        "readings": "125",
        "late": "1",
        "duplicates": "1",
        "quarantined": "2",
        "groups": "kitchen",
    }
    assert "ahead of the fleet's" in facts["clock"] or "behind the fleet's" in facts["clock"]
    page.goto(f"{server.address}/devices?find=img")
    assert page.locator("tbody th").first.inner_text() == HOSTILE
    assert page.locator("main img").count() == 0


def test_an_expectation_that_fails_comes_first_with_its_rows_beside_their_payloads(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/quality")
    assert [of.inner_text().partition(":")[0] for of in page.locator("details[open] > summary").all()] == [
        "gold.attic_aggregates",
        "silver.readings",
    ]
    page.click("a:text('No oven is hotter than 310.')")
    page.wait_for_selector("h2:text('No oven is hotter than 310. (silver.readings): rows that fail')")
    assert "device_id oven" in page.locator(".event p").first.inner_text()
    assert '"device": "oven"' in page.locator(".event pre").first.inner_text()


def test_a_closed_gate_is_opened_by_a_form_with_a_reason_that_is_kept(page: Page, server: Served, conf: Path) -> None:
    lake, table = Location(conf.parent / "lake"), LakeStore(load(conf)).table_path("silver.readings")
    failure = Failure(-1, 2, "2026-01-01T12:00:00Z", (f"critical silver.readings {HOSTILE}",))
    write_gate_state(lake, GateState("silver.readings", table_id(table), -1, failure))
    page.goto(f"{server.address}/quality")
    assert HOSTILE in page.inner_text(".troubles")
    page.fill("input[name=reason]", "the sensor was exchanged")
    page.click("button:text('Let it through')")
    page.wait_for_selector("input[name=reason]", state="detached")
    assert [(row.version, row.reason) for row in RELEASES.rows(lake)] == [(2, "the sensor was exchanged")]


def test_a_query_is_asked_by_keyboard_and_answered_as_table_chart_csv_and_parquet(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/sql")
    page.fill("#query", "")
    page.type("#query", "select window_end, value from gold.kitchen_agg")
    page.wait_for_selector("#words li:text('gold.kitchen_aggregates')")
    page.keyboard.press("Tab")
    page.type("#query", " where device_id = 'oven' order by 1 limit 12")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("h2:text('12 rows')")
    page.wait_for_selector(".plot canvas")  # drawn by a script behind the page
    csv = page.request.get(server.address + (page.get_attribute("#csv", "href") or "")).text()
    assert csv.splitlines()[0] == '"window_end","value"'
    assert len(csv.splitlines()) == 13
    parquet = page.request.get(server.address + (page.get_attribute("#parquet", "href") or "")).body()
    assert pq.read_table(io.BytesIO(parquet)).num_rows == 12


def test_a_word_is_completed_from_where_it_began_also_if_more_of_it_was_typed_since(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/sql")
    page.fill("#query", "")
    page.type("#query", "select '\N{FIRE}', * from gold.k")
    page.wait_for_selector("#words li:text('gold.kitchen_aggregates')")
    # Without an event, as if its answer were on the way.
    page.eval_on_selector("#query", "query => { query.setRangeText('itchen_agg', query.selectionStart, query.selectionStart, 'end') }")
    page.keyboard.press("Tab")
    assert page.input_value("#query") == "select '\N{FIRE}', * from gold.kitchen_aggregates"


def test_a_wrong_query_is_told_with_its_place_and_reads_no_file(page: Page, server: Served) -> None:
    page.goto(f"{server.address}/sql?query=select+valeu+from+silver.readings")
    assert "valeu" in page.inner_text("pre.bad")
    assert "^" in page.inner_text("pre.bad")
    page.goto(f"{server.address}/sql?query=select+*+from+read_text('/etc/passwd')")
    assert "root:" not in page.content()
    assert page.locator("pre.bad").count() == 1


def test_a_query_is_saved_as_a_file_beside_conf(page: Page, server: Served, conf: Path) -> None:
    page.goto(f"{server.address}/sql?query=select+1+as+one")
    page.fill("input[name=name]", "one")
    page.evaluate("window.mark = 1")  # gone, if the page were loaded anew
    page.click("button:text('Save')")
    page.wait_for_selector("#saved a:text('one')")
    assert page.locator("#answer").count() == 1
    assert page.evaluate("window.mark") == 1
    page.click("a:text('one')")
    page.wait_for_selector("h2:text('1 row')")
    assert (conf.parent / "queries/one.sql").read_text() == "select 1 as one\n"


def test_a_note_is_kept_and_drawn_behind_the_windows(page: Page, server: Served, conf: Path) -> None:
    page.goto(f"{server.address}/runs")
    page.click("#noting summary")
    page.fill("input[name=begins]", "2026-01-01T13:00:00")
    page.fill("input[name=ends]", "2026-01-01T13:30:00")
    page.fill("input[name=text]", HOSTILE)
    page.fill("input[name=author]", "ada")
    page.click("button:text('Add')")
    page.wait_for_selector("td:text('by ada')")
    assert page.locator("main img").count() == 0
    (note,) = rows_of(NOTES.path(Location(conf.parent / "lake")))
    assert (note["begins_at"], note["ends_at"], note["text"], note["author"]) == (at("13:00:00"), at("13:30:00"), HOSTILE, "ada")
    page.goto(f"{server.address}/groups?group=kitchen&span=day")
    bands = json.loads(page.locator(".plot").first.get_attribute("data-plot") or "")["bands"]
    assert {"start": at("13:00:00").timestamp(), "end": at("13:30:00").timestamp(), "text": HOSTILE} in bands


def test_what_is_filled_in_is_not_taken_away_by_a_batch(page: Page, server: Served, conf: Path) -> None:
    page.goto(f"{server.address}/runs")
    page.click("#noting summary")
    page.fill("input[name=text]", "half a note")
    (conf.parent / "lake/up").mkdir(exist_ok=True)
    page.evaluate("(() => { const before = show; show = (html) => { before(html); live.dataset.brought = '.'; }; })()")
    (conf.parent / "lake/up/state.json").touch()
    page.wait_for_selector("#live[data-brought]")
    assert page.input_value("input[name=text]") == "half a note"


@pytest.mark.parametrize(
    "query",
    [
        "select null::timestamp a, 1 b union all select timestamp '2026-01-01', 2 union all select timestamp '2026-01-02', 3",
        "select timestamp_ns '2020-01-01 00:00:00.123456789' a, 1 b union all select timestamp_ns '2021-01-01 00:00:00.123456789', 2",
        "select 9223372036854775807::bigint a, 9223372036854775807::bigint b union all select 1, 2",
        "select 'nan'::double a, 'inf'::double b union all select 1, 2",
        "select " + ", ".join(f"i as c{n}" for n in range(2000)) + " from range(500) t(i)",
        "select 1 a, 2 a",
    ],
)
def test_odd_columns_are_answered_with_a_chart_or_without(server: Served, query: str) -> None:
    status, _, body = server.ask(f"/sql?{urlencode({'query': query})}")
    assert (status, 'id="answer"' in body) == (200, True)
    assert len(body) < 3_000_000


@pytest.mark.parametrize(
    "path", ["/readings?device=a&metric=temperature&end=0001-01-01T00:00:00Z", f"/sql?query=select+1&snapshot={'9' * 5000}"]
)
def test_numbers_and_instants_beyond_all_bounds_are_told(server: Served, path: str) -> None:
    assert server.ask(path)[0] in (200, 400)
    assert server.ask(f"/api/completions?text=a&cursor={'9' * 5000}")[0] == 200
    assert server.ask("/events?path=/none")[0] == 404


def test_queries_without_end_keep_no_view_waiting(server: Served) -> None:
    endless = urlencode({"query": "select sum(a.i * b.i) from range(100000000) a(i), range(1000000) b(i)"})
    waiting = [http.client.HTTPConnection("127.0.0.1", server.port) for _ in range(6)]
    for connection in waiting:
        connection.request("GET", f"/sql?{endless}")
    time.sleep(1)
    begin = time.monotonic()
    for number in range(4):
        assert server.ask(f"/groups?group=kitchen&device=d{number}")[0] == 200
    assert server.ask("/api/overview")[0] == server.ask("/metrics")[0] == 200
    took = time.monotonic() - begin
    for connection in waiting:
        connection.close()
    assert took < 25  # those queries end after 30 s


@pytest.mark.parametrize("begins", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1850-01-01T00:00:00"])
def test_a_note_on_any_instant_is_refused_or_shown(server: Served, begins: str) -> None:
    form_token = re.findall(r'name="form_token" value="([^"]+)"', server.ask("/runs")[2])[0]
    form = urlencode({"form_token": form_token, "begins": begins, "text": "long ago", "author": "ada"})
    status = server.ask("/runs/notes", "POST", {"Content-Type": "application/x-www-form-urlencoded"}, form)[0]
    _, _, shown = server.ask("/runs")
    assert (status, "long ago" in shown) == ((303, True) if begins.startswith("1850") else (400, False))
    assert server.ask("/groups?group=kitchen")[0] == 200


@given(PATHS, PARAMETERS)
def test_no_parameter_makes_it_fail_and_json_is_json(server: Served, path: str, parameters: dict[str, str]) -> None:
    status, headers, body = server.ask(f"{path}?{urlencode(parameters)}")
    assert status in (200, 400), body
    if path.startswith("/api"):
        assert headers["content-type"] == "application/json"
        assert isinstance(json.loads(body), dict | list)


@pytest.mark.parametrize("path", VIEWS)
def test_axe_finds_nothing_serious_and_a_phone_shows_it_whole(browser: Browser, server: Served, path: str) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740})
    opened = context.new_page()
    opened.goto(f"{server.address}{path}")
    serious = serious_violations(opened)
    opened.emulate_media(color_scheme="dark")
    serious += serious_violations(opened)
    width = opened.evaluate("document.documentElement.scrollWidth")
    context.close()
    assert serious == []
    assert width <= 360
