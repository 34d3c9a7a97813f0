"""Requests that must not get through to the page, and the headers that each answer has. No browser, no Spark."""

import csv
import http.client
import io
import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from prometheus_client.parser import text_string_to_metric_families

from orchestration.conf.load import load
from orchestration.errors import ConfError
from orchestration.web.server import PageProtocol, link
from orchestration.web.site import MOST_STREAMS
from tests.collectors import write_conf
from tests.pages import Served, served

TOKEN = "correct-horse-battery-staple"
PAGE = "page: {port: 0, token: '${env:PAGE_TOKEN}', names: [plant.example]}\n"
PATHS = (
    *("/", "/batches?span=day", "/runs", "/alerts", "/quarantine", "/quality", "/groups", "/devices", "/readings", "/sql", "/events"),
    *("/api/overview", "/api/completions?text=sel", "/sql/answer.csv?query=select+1", "/metrics", "/static/page.js"),
)
ACTIONS = ("/quality/release", "/runs/notes", "/sql/queries", "/alerts/acknowledge", "/alerts/silence", "/alerts/unsilence")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
UPGRADE = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABk"}
KNOWN = {"Authorization": f"Bearer {TOKEN}"}
HOSTS = (
    "evil.example",
    "evil.example:8643",
    "127.0.0.1.evil.example",
    "localhost.evil.example:1",
    "",
    "plant.example.evil.example",
    "[::2]",
)
SITES = ("cross-site", "same-site")
TRAVERSALS = (
    *("/static/../pipeline.yml", "/static/..%2f..%2fsite.py", "/static/%2e%2e/site.py", "/static/....//site.py", "/static//etc/passwd"),
    *("/static/..\\site.py", "/static/%00", "/static/../../../../../../etc/passwd", "/../etc/passwd", "//etc/passwd", "/static/"),
    *("/static/..%252fsite.py", "/templates/frame.html", "/static/../templates/frame.html", "/.git/config", "/up/state.json"),
)
WRONG_TOKENS = ("", "wrong", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "Bearer", "null", "0")
METHODS = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    conf = write_conf(tmp_path_factory.mktemp("guarded"), plant="path: ./landing")
    with (conf / "pipeline.yml").open("a") as file:
        file.write(PAGE)
    with served(conf, PAGE_TOKEN=TOKEN) as running:
        yield running


@pytest.mark.parametrize("path", PATHS)
def test_who_has_the_token_and_calls_it_by_a_name_of_its_own_gets_an_answer(server: Served, path: str) -> None:
    for host in ("127.0.0.1:8643", "localhost:1", "plant.example"):
        status, headers, _ = server.ask(path, headers=KNOWN | {"Host": host})
        assert status == 200
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("host", HOSTS)
def test_a_name_that_is_not_its_own_is_refused(server: Served, path: str, host: str) -> None:
    assert server.ask(path, headers=KNOWN | {"Host": host})[0] in (400, 421)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", WRONG_TOKENS)
def test_a_wrong_token_is_refused_wherever_it_stands(server: Served, path: str, token: str) -> None:
    for headers in ({"Authorization": f"Bearer {token}"}, {"Cookie": f"tidemark={token}"}, {}):
        assert server.ask(path, headers=headers)[0] == 401
    assert server.ask(f"{path.partition('?')[0]}?token={token}")[0] == 401


def test_the_token_of_the_address_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(server: Served) -> None:
    status, headers, _ = server.ask(f"/?token={TOKEN}&at=1")
    assert (status, headers["location"]) == (303, "/?at=1")
    assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in headers["set-cookie"].split(";")}
    assert server.ask("/", headers={"Cookie": headers["set-cookie"].partition(";")[0]})[0] == 200
    assert TOKEN not in server.said  # which may go to a log


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("site", SITES)
def test_what_another_site_sends_is_refused_also_its_stream_of_events(server: Served, path: str, site: str) -> None:
    headers = KNOWN | {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors", "Origin": "http://evil.example"}
    assert server.ask(path, headers=headers)[0] == 403
    assert server.ask(path, headers=headers | {"Upgrade": "websocket", "Connection": "Upgrade"})[0] in (400, 403, 404)


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_leads_out_of_its_own_files(server: Served, path: str) -> None:
    status, _, body = server.ask(path, headers=KNOWN)
    assert status in (400, 404)
    assert "root:" not in body and "import" not in body


@pytest.mark.parametrize("method", METHODS)
def test_no_method_but_get_does_anything_to_a_view(server: Served, method: str) -> None:
    for path in ("/", "/api/overview"):
        assert server.ask(path, method, KNOWN)[0] in (400, 405)


def test_the_stream_of_events_has_headers_for_who_asks_for_headers_alone(server: Served) -> None:
    status, headers, body = server.ask("/events?path=/runs", "HEAD", KNOWN)
    assert (status, headers["content-type"].partition(";")[0], body) == (200, "text/event-stream", "")
    assert server.ask("/events?path=/none", "HEAD", KNOWN)[0] == 404


def test_a_form_that_is_sent_twice_makes_one_note_and_two_forms_make_two(server: Served) -> None:
    def form(text: str) -> str:
        form_token = re.findall(r'name="form_token" value="([^"]+)"', server.ask("/runs", headers=KNOWN)[2])[0]
        return urlencode({"form_token": form_token, "begins": "2026-01-01T12:00", "text": text, "author": "ada"})

    def send(body: str) -> int:
        return server.ask("/runs/notes", "POST", KNOWN | FORM, body)[0]

    twice, mistaken = form("clicked twice"), form("mended").replace("2026-01-01", "soon")
    with ThreadPoolExecutor(2) as clicks:
        assert [*clicks.map(send, [twice, twice])] == [303, 303]
    assert send(twice) == 303
    assert [send(mistaken), send(mistaken.replace("soon", "2026-01-01"))] == [400, 303]
    assert [send(form("said again")), send(form("said again"))] == [303, 303]
    assert server.ask("/runs/notes", "POST", KNOWN | FORM | UPGRADE, form("by HTTP/2"))[0] == 303
    shown = server.ask("/runs", headers=KNOWN)[2]
    texts = ("clicked twice", "mended", "said again", "by HTTP/2")
    assert [shown.count(f"<td>{text}</td>") for text in texts] == [1, 1, 2, 1]


@pytest.mark.parametrize("path", ACTIONS)
@pytest.mark.parametrize("form_token", ["", "wrong", "none", TOKEN])
def test_a_form_that_the_page_has_not_given_out_does_nothing(server: Served, path: str, form_token: str) -> None:
    body = urlencode(
        {"form_token": form_token, "name": "evil", "query": "select 1", "text": "evil", "author": "evil", "begins": "2026-01-01"}
    )
    assert server.ask(path, "POST", KNOWN | FORM, body)[0] == 403
    assert server.ask(path, "POST", KNOWN | {"Content-Type": "application/json"}, f'{{"form_token": "{form_token}"}}')[0] == 403
    assert server.ask(path, "POST", FORM, body)[0] == 401
    assert "evil" not in server.ask("/runs", headers=KNOWN)[2] + server.ask("/sql", headers=KNOWN)[2]


@pytest.mark.parametrize("path", ACTIONS)
def test_a_form_of_the_page_is_refused_from_another_site_by_get_and_where_it_is_too_long(server: Served, path: str) -> None:
    form_token = re.findall(r'name="form_token" value="([^"]+)"', server.ask("/runs", headers=KNOWN)[2])[0]
    body = urlencode({"form_token": form_token, "name": "../evil", "text": "", "version": "1", "table": "x", "reason": "y"})
    of_site = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Origin": "http://evil.example"}
    assert server.ask(path, "POST", KNOWN | FORM | of_site, body)[0] == 403
    assert server.ask(f"{path}?{body}", headers=KNOWN)[0] in (404, 405)
    assert server.ask(path, "POST", KNOWN | FORM, f"{body}&more={'x' * 200_000}")[0] == 403
    assert server.ask(path, "POST", KNOWN | FORM, body)[0] == 400  # the form is known, and what it asks for is wrong


@pytest.mark.parametrize("name", ["../evil", "/etc/cron.d/evil", "a/b", ".", "", "a.sql", "A", "x" * 61, "\0", "ä"])
def test_a_query_is_saved_under_a_plain_name_only(server: Served, name: str) -> None:
    form_token = re.findall(r'name="form_token" value="([^"]+)"', server.ask("/sql", headers=KNOWN)[2])[0]
    body = urlencode({"form_token": form_token, "name": name, "query": "select 1"})
    assert server.ask("/sql/queries", "POST", KNOWN | FORM, body)[0] == 400


def test_an_address_that_other_machines_reach_needs_a_token(tmp_path: Path) -> None:
    conf = write_conf(tmp_path, plant="path: ./landing")
    with (conf / "pipeline.yml").open("a") as file:
        file.write("page: {host: 0.0.0.0}\n")
    with pytest.raises(ConfError, match=r"pipeline\.yml:4: page\.host is '0\.0\.0\.0', which other machines reach; set page\.token"):
        load(conf)


def test_metrics_are_in_the_format_of_prometheus_and_name_no_device(server: Served) -> None:
    families = {family.name: family for family in text_string_to_metric_families(server.ask("/metrics", headers=KNOWN)[2])}
    assert {"tidemark_up", "tidemark_lag_seconds", "tidemark_measurements", "tidemark_events", "tidemark_problems"} <= families.keys()
    labels = {name for family in families.values() for sample in family.samples for name in sample.labels}
    assert labels <= {"node", "layer", "outcome", "part", "severity", "about"}


def test_a_query_that_another_site_opens_is_shown_and_not_run(server: Served) -> None:
    query = urlencode({"query": "select 40 + 2 as asked", "snapshot": ""})
    link = KNOWN | {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    status, _, shown = server.ask(f"/sql?{query}", headers=link)
    assert (status, "select 40 + 2 as asked" in shown, "It was not asked" in shown, 'id="answer"' in shown) == (200, True, True, False)
    for format in ("csv", "parquet"):
        status, headers, body = server.ask(f"/sql/answer.{format}?{query}", headers=link | {"Sec-Fetch-Site": "same-site"})
        assert (status, headers["location"].partition("?")[0], body) == (303, "/sql", "")
    for site in ("none", "same-origin"):
        assert 'id="answer"' in server.ask(f"/sql?{query}", headers=link | {"Sec-Fetch-Site": site})[2]
    assert 'id="answer"' in server.ask(f"/sql?{query}", headers=KNOWN)[2]


@pytest.mark.parametrize("path", ["//evil.example", "///evil.example/", "/\\evil.example", "//evil.example:80/..//", "/\\/evil.example"])
def test_the_token_of_the_address_leads_to_no_other_site(server: Served, path: str) -> None:
    status, headers, _ = server.ask(f"{path}?token={TOKEN}")
    assert (status, headers["location"][0], headers["location"][1:2] in ("/", "\\")) == (303, "/", False)


@pytest.mark.parametrize(
    ("action", "fields", "field"),
    [
        ("/runs/notes", {"begins": "2026-01-01T12:00", "text": "a\0b", "author": "ada"}, "text"),
        ("/runs/notes", {"begins": "2026-01-01T12:00", "text": "a", "author": "x" * 2_001}, "author"),
        ("/runs/notes", {"begins": "2026-01-01T12:00", "text": "a", "author": "\x1b[31mada"}, "author"),
        ("/alerts/silence", {"alert": "a\0", "entity": "*", "author": "ada", "reason": "r", "length": "1 h"}, "alert"),
        ("/alerts/silence", {"alert": "*", "entity": "x" * 10_000, "author": "ada", "reason": "r", "length": "1 h"}, "entity"),
        ("/sql/queries", {"name": "ok", "query": "select '\0'"}, "query"),
        ("/sql/queries", {"name": "ok", "query": "x" * 70_000}, "query"),
    ],
)
def test_a_text_of_a_form_has_a_length_and_no_control_characters(server: Served, action: str, fields: dict[str, str], field: str) -> None:
    form_token = re.findall(r'name="form_token" value="([^"]+)"', server.ask("/runs", headers=KNOWN)[2])[0]
    body = urlencode({"form_token": form_token, **fields})
    status, _, answer = server.ask(action, "POST", KNOWN | FORM | {"Accept": "application/json"}, body)
    assert (status, json.loads(answer)["field"]) == (400, field)


def test_the_stream_of_a_view_takes_no_parameter_that_the_view_does_not_read(server: Served) -> None:
    shown = server.ask("/batches?span=day&noise=1&span=week&token=x", headers=KNOWN)[2]
    assert 'data-events="/events?path=%2Fbatches&amp;span=day&amp;span=week"' in shown


def test_more_open_pages_than_it_serves_are_refused_and_others_are_answered(server: Served) -> None:
    opened = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=60) for _ in range(MOST_STREAMS + 3)]
    statuses = []
    for connection in opened:
        connection.request("GET", "/events?path=/runs", headers=KNOWN)
        statuses.append(connection.getresponse().status)
    assert statuses == [200] * MOST_STREAMS + [503] * 3
    assert server.ask("/runs", headers=KNOWN)[0] == 200
    for connection in opened:
        connection.close()


def test_idle_connections_keep_nobody_out(server: Served) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2 * PageProtocol.most_connections)]
    idle[-1].sendall(b"GET /runs HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    assert server.ask("/runs", headers=KNOWN)[0] == 200
    idle[0].settimeout(10)
    assert idle[0].recv(1) == b""  # the oldest are closed first
    for connection in idle:
        connection.close()


@pytest.mark.parametrize("page", ["{host: 0.0.0.0, token: '${env:PAGE_TOKEN}'}", "{names: [plant.example], token: '${env:PAGE_TOKEN}'}"])
def test_a_token_that_others_could_guess_is_refused_where_they_reach_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    folder = write_conf(tmp_path, plant="path: ./landing")
    with (folder / "pipeline.yml").open("a") as file:
        file.write(f"page: {page}\n")
    monkeypatch.setenv("PAGE_TOKEN", "hunter2")
    with pytest.raises(ConfError, match=r"page\.token has 7 characters; where others reach the page it needs 16"):
        link(load(folder), None)
    monkeypatch.setenv("PAGE_TOKEN", "x" * 16)
    assert link(load(folder), None).endswith("?token=xxxxxxxxxxxxxxxx")


def test_cells_that_a_spreadsheet_would_run_are_guarded_by_choice(server: Served) -> None:
    query = """select '=1+1' as a, '+x' as b, '-x' as c, '@x' as d, chr(9) || 'x' as e, 'x=1' as f, -1 as g, -1.5 as h, -2.5::double as i,
    '' as j, null as k, '-t'::enum('-t') as l, 1 as "=cmd()" """
    address = f"/sql/answer.csv?{urlencode({'query': query})}"
    plain, guarded = ([*csv.reader(io.StringIO(server.ask(f"{address}{more}", headers=KNOWN)[2]))] for more in ("", "&guard=formulas"))
    assert plain == [[*"abcdefghijkl", "=cmd()"], ["=1+1", "+x", "-x", "@x", "\tx", "x=1", "-1", "-1.5", "-2.5", "", "", "-t", "1"]]
    assert guarded == [
        [*"abcdefghijkl", "'=cmd()"],
        ["'=1+1", "'+x", "'-x", "'@x", "'\tx", "x=1", "-1", "-1.5", "-2.5", "", "", "'-t", "1"],
    ]


@pytest.mark.parametrize(("first", "is_local"), [("timestamp '2026-03-28'", True), ("timestamptz '2026-03-28 00:00Z'", False)])
def test_a_chart_over_local_times_shows_them_in_no_zone(server: Served, first: str, *, is_local: bool) -> None:
    query = f"select {first} + n * interval 1 hour as t, n from range(3) r(n)"
    shown = unescape(server.ask(f"/sql?{urlencode({'query': query})}", headers=KNOWN)[2])
    assert f'"is_local": {str(is_local).lower()}' in shown
    assert ("<td>2026-03-28T01:00:00</td>" in shown, "<td>2026-03-28T01:00:00Z</td>" in shown) == (is_local, not is_local)
