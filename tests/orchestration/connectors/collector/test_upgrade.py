"""A push that asks for another protocol is taken as any other, and none is accepted of which a part is missing."""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collectors import Collector, collecting, write_conf
from tests.waiting import PATIENCE_SECONDS

HEAD = b"POST /events HTTP/1.1\r\nHost: a\r\n"
TOKEN = "a-token-of-this-test"
UPGRADES = [
    pytest.param({"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABk"}, id="h2c"),
    pytest.param({"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}, id="websocket"),
    pytest.param({"Connection": "keep-alive, upgrade", "Upgrade": "TLS/1.0, foo/2"}, id="others"),
]


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    conf = write_conf(
        tmp_path_factory.mktemp("upgrade"),
        plain="http: {port: 0, max_body_bytes: 1000}",
        closed='http: {port: 0, token: "${env:OF_A_TEST}"}',
    )
    with collecting(conf, OF_A_TEST=TOKEN) as collector:
        yield collector


def all_of(connection: socket.socket) -> bytes:
    """Read until the collector closes the connection."""
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


@pytest.mark.parametrize("headers", UPGRADES)
def test_an_upgrade_is_ignored_and_the_events_are_kept(headers: dict[str, str], collector: Collector) -> None:
    before = collector.kept()
    assert collector.ask(b'[{"a":1},{"a":2}]', headers)[0] == 202
    assert collector.kept()[len(before) :] == [b'{"a":1}', b'{"a":2}']


@pytest.mark.parametrize("headers", UPGRADES)
def test_refusals_are_the_same_with_an_upgrade(headers: dict[str, str], collector: Collector) -> None:
    before = collector.kept()
    assert collector.ask(b"{}", headers, "closed")[0] == 401
    assert collector.ask(b" " * 1001, headers)[0] == 413
    assert collector.ask(b"{}", headers | {"Content-Type": "text/html"})[0] == 415
    assert collector.kept() == before


def test_an_upgrade_may_come_in_pieces_be_chunked_be_pipelined_and_wait_for_100_continue(collector: Collector) -> None:
    before, upgrade = collector.kept(), b"Connection: upgrade\r\nUpgrade: h2c\r\n"
    one = HEAD + upgrade + b'Content-Length: 7\r\n\r\n{"n":1}'
    chunked = HEAD + upgrade + b'Transfer-Encoding: chunked\r\n\r\n3\r\n{"n\r\n4\r\n":2}\r\n0\r\n\r\n'
    with collector.connect() as connection:
        for byte in one + chunked + one:
            connection.sendall(bytes([byte]))
        connection.sendall((one + chunked) * 50)
        connection.sendall(HEAD + upgrade + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: 7\r\n\r\n")
        content = b""
        while b"100 Continue" not in content:
            content += connection.recv(1 << 16)
        connection.sendall(b'{"n":3}')
        content += all_of(connection)
    assert (content.count(b"HTTP/1.1 202"), content.count(b'{"accepted":1}')) == (104, 104)
    assert b"".join(collector.kept()[len(before) :]) == b'{"n":1}{"n":2}{"n":1}' + b'{"n":1}{"n":2}' * 50 + b'{"n":3}'


@pytest.mark.skipif(shutil.which("java") is None, reason="is the client")
def test_the_http_client_of_java_pushes_with_its_defaults(collector: Collector) -> None:
    before, program = collector.kept(), Path(__file__).with_name("Push.java")
    url = f"http://127.0.0.1:{collector.ports['plain']}/events"
    done = subprocess.run(["java", "-Xshare:auto", str(program), url], capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS)
    assert done.stdout.splitlines() == ['202 {"accepted":1}'] * 3
    assert [json.loads(event) for event in collector.kept()[len(before) :]] == [{"java": n} for n in range(3)]


@pytest.mark.skipif(shutil.which("curl") is None, reason="is the client")
@pytest.mark.parametrize("more", [["-d", '{"curl":1}'], ["-d", '{"curl":1}', "-H", "Transfer-Encoding: chunked"]])
def test_curl_pushes_while_it_asks_for_http_2(more: list[str], collector: Collector) -> None:
    before, url = collector.kept(), f"http://127.0.0.1:{collector.ports['plain']}/events"
    command = ["curl", "-sS", "--http2", "-H", "Content-Type: application/json", *more, url]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS)
    assert (done.stdout, collector.kept()[len(before) :]) == ('{"accepted":1}', [b'{"curl":1}'])


CUT = [
    pytest.param(b'Content-Length: 10\r\n\r\n{"a":1}', id="a body shorter than its length"),
    pytest.param(b'Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 10\r\n\r\n{"a":1}', id="and with an upgrade"),
    pytest.param(b'Transfer-Encoding: chunked\r\n\r\n7\r\n{"a":1}\r\n', id="chunks without the last"),
]


@pytest.mark.parametrize("request_bytes", CUT)
def test_nothing_is_kept_of_a_body_that_is_cut(request_bytes: bytes, collector: Collector) -> None:
    before = collector.kept()
    with collector.connect() as connection:
        connection.sendall(HEAD + request_bytes)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert collector.kept() == before


UNCLEAR = [
    pytest.param(HEAD + b'Content-Length: 7\r\nContent-Length: 8\r\n\r\n{"a":1}', 400, id="two lengths"),
    pytest.param(HEAD + b'Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n{"a":1}\r\n0\r\n\r\n', 400, id="a length and chunks"),
    pytest.param(HEAD + b'Transfer-Encoding: gzip, chunked\r\n\r\n7\r\n{"a":1}\r\n0\r\n\r\n', 501, id="another coding"),
    pytest.param(HEAD + b'Transfer-Encoding: identity\r\n\r\n{"a":1}', 400, id="a coding without an end"),
    pytest.param(HEAD + b"\r\n", 411, id="no length"),
    pytest.param(b'POST /events HTTP/1.0\r\n\r\n{"a":1}', 411, id="no length of HTTP/1.0"),
    pytest.param(HEAD + b"Content-Encoding: identity\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 415, id="two encodings"),
    pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, id="HTTP/2 without asking"),
    pytest.param(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n{}", 400, id="CONNECT"),
]


@pytest.mark.parametrize(("request_bytes", "status"), UNCLEAR)
def test_a_body_whose_end_is_not_clear_is_refused(request_bytes: bytes, status: int, collector: Collector) -> None:
    before = collector.kept()
    with collector.connect() as connection:
        connection.sendall(request_bytes)
        assert connection.recv(12) == b"HTTP/1.1 %d" % status
    assert collector.kept() == before


def test_what_follows_a_body_that_was_refused_is_a_request_of_its_own(collector: Collector) -> None:
    before = collector.kept()
    good, long = HEAD + b'Content-Length: 7\r\n\r\n{"a":1}', HEAD + b"Content-Length: 1001\r\n\r\n" + b" " * 1001
    with collector.connect() as connection:
        connection.sendall(good + long + good + HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}")
        answers = all_of(connection).split(b"HTTP/1.1 ")
    assert [answer[:3] for answer in answers] == [b"", b"202", b"413", b"202", b"202"]
    assert collector.kept()[len(before) :] == [b'{"a":1}', b'{"a":1}', b"{}"]
