"""POST /events, asked over sockets: what is accepted is in the spool as it was sent, and of a request that is refused there is nothing."""

import gzip
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from backports import zstd

from tests.binary_formats import READING
from tests.collectors import JSON, PAYLOAD, Collector, collecting, spooled, tls_files, write_conf
from tests.waiting import PATIENCE_SECONDS

LINES = {"Content-Type": "application/x-ndjson"}
GZIP, ZSTD = JSON | {"Content-Encoding": "gzip"}, JSON | {"Content-Encoding": "zstd"}
MOST = 100_000
TOKEN = "a-canary-that-nobody-may-see"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    folder = tmp_path_factory.mktemp("web")
    shop = tls_files(folder)
    conf = write_conf(
        folder,
        plain=f"http: {{port: 0, max_body_bytes: {MOST}}}",
        table="http: {port: 0}, format: csv, columns: [device, ts, metric, value]",
        closed='http: {port: 0, token: "${env:OF_A_TEST}"}',
        secure=f"http: {{port: 0, tls: {shop}}}",
    )
    with collecting(conf, OF_A_TEST=TOKEN) as collector:
        yield collector
        command = Path(f"/proc/{collector.process.pid}/cmdline").read_text()
    assert TOKEN not in "".join((command, *collector.log))
    assert [file for file in folder.rglob("*") if file.is_file() and TOKEN.encode() in file.read_bytes()] == []


ACCEPTED = [
    pytest.param(b' {"a": 1.10,\n "b": "\\u00e9"}\n', JSON, [b'{"a": 1.10,\n "b": "\\u00e9"}'], 0, id="an object over several lines"),
    pytest.param(b'[{"a":1} ,\n {"a": [1, {}]}]', JSON, [b'{"a":1}', b'{"a": [1, {}]}'], 0, id="an array"),
    pytest.param(b'{"a":1}\n\n{"a":2}\r\n{"a":3}', LINES, [b'{"a":1}', b'{"a":2}', b'{"a":3}'], 0, id="lines"),
    pytest.param(b'{"a":1}', {}, [b'{"a":1}'], 0, id="without a type"),
    pytest.param(b"[]", JSON, [], 0, id="no event"),
    pytest.param(b"", JSON, [], 0, id="no body"),
    pytest.param(b'{"a":1}\n{\n "a": 2\n}', JSON, [b'{"a":1}', b'{\n "a": 2\n}'], 0, id="lines as JSON"),
    pytest.param(b'\xef\xbb\xbf[{"a":1}]', JSON, [b'{"a":1}'], 0, id="byte order mark"),
    pytest.param(b'[{"a":1}, {"a":NaN, "b":[{}, {}]}]', JSON, [b'{"a":1}', b'{"a":NaN, "b":[{}, {}]}'], 0, id="NaN, which silver reads"),
    pytest.param(gzip.compress(b'[{"a":1},') + gzip.compress(b'{"a":2}]'), GZIP, [b'{"a":1}', b'{"a":2}'], 0, id="gzip"),
    pytest.param(zstd.compress(b'{"a":1}\n') + zstd.compress(b'{"a":2}'), ZSTD | LINES, [b'{"a":1}', b'{"a":2}'], 0, id="zstd"),
]
DEEP = b'{"a":' * 10_000
UNREADABLE = [
    pytest.param(
        b'{"a":1}\nodd\n\n{"a":3}\r\n{"a":', LINES, [b'{"a":1}', b"odd", b'{"a":3}', b'{"a":'], 2, id="lines, the last of them cut"
    ),
    pytest.param(b'[{"a":1}, 2, null, [{}]]', JSON, [b'{"a":1}', b"2", b"null", b"[{}]"], 2, id="elements that are no objects"),
    pytest.param(
        b'[{"a":[1, {"]": "},\\""}]}, {"a": odd}, ,\n{"a":01},{"a":2}]',
        JSON,
        [b'{"a":[1, {"]": "},\\""}]}', b'{"a": odd}', b'{"a":01}', b'{"a":2}'],
        2,
        id="elements that are no JSON",
    ),
    pytest.param(b'[{"a":1},{"b":[{"a":2},{"a":3}', JSON, [b'{"a":1}', b'{"b":[{"a":2},{"a":3}'], 1, id="an array without its end"),
    pytest.param(b'[{"a":1}] odd', JSON, [b'{"a":1}', b"odd"], 1, id="an array and more"),
    pytest.param(b'{"a":1}}\n{"a":2}', JSON, [b'{"a":1}}', b'{"a":2}'], 1, id="a bracket too many"),
    pytest.param(b'{"a":1', JSON, [b'{"a":1'], 1, id="an object without its end"),
    pytest.param(DEEP, JSON, [DEEP], 1, id="deep"),
    pytest.param(b"\x16\x03\x01\x02\x00", JSON, [b"\x16\x03\x01\x02\x00"], 1, id="binary"),
    pytest.param(gzip.compress(b"{}\nodd\n"), GZIP | LINES, [b"{}", b"odd"], 1, id="gzip"),
]


@pytest.mark.parametrize(("body", "headers", "events", "unreadable"), [*ACCEPTED, *UNREADABLE])
def test_events_are_kept_in_the_bytes_in_which_they_were_sent_and_what_silver_cannot_read_is_counted(
    body: bytes, headers: dict[str, str], events: list[bytes], unreadable: int, collector: Collector
) -> None:
    before = len(collector.kept())
    assert collector.ask(body, headers) == (202, {"accepted": len(events)} | ({"unreadable": unreadable} if unreadable else {}))
    assert collector.kept()[before:] == events


def test_positions_name_the_request_and_the_number_in_it(collector: Collector) -> None:
    collector.ask(b'[{"n":1},{"n":2}]', JSON)
    (first, second) = [position for position, _ in spooled(collector.folder, "plain")][-2:]
    assert (first.rpartition("/")[0], first[-2:], second[-2:]) == (second.rpartition("/")[0], "/1", "/2")
    assert first.startswith("request/")


BOMB = 50_000_000
REFUSED = [
    pytest.param(b'{"a":1}', {"Content-Type": "application/x-www-form-urlencoded"}, 415, "Content-Type: application/json", id="a form"),
    pytest.param(b'{"a":1}', JSON | {"Content-Encoding": "br"}, 415, "gzip, zstd", id="brotli"),
    pytest.param(gzip.compress(b'{"a":1}')[:-1], GZIP, 400, "ends in the middle", id="cut gzip"),
    pytest.param(zstd.compress(b'{"a":1}')[:-1], ZSTD, 400, "ends in the middle", id="cut zstd"),
    pytest.param(gzip.compress(b'{"a":1}') + b"xyz", GZIP, 400, "not gzip", id="gzip and more"),
    pytest.param(b'{"a":1}', ZSTD, 400, "not zstd", id="no zstd"),
    pytest.param(gzip.compress(b" " * BOMB), GZIP, 413, "at most 100,000 bytes", id="gzip bomb"),
    pytest.param(zstd.compress(b" " * BOMB), ZSTD, 413, "at most 100,000 bytes", id="zstd bomb"),
    pytest.param(zstd.compress(b" ") * 5_000 + zstd.compress(b" " * MOST), ZSTD, 413, "at most", id="many frames"),
    pytest.param(zstd.compress(b"") * 10_001, ZSTD, 400, "10,000 zstd members", id="endless frames"),
    pytest.param(b" " * (MOST + 1), JSON, 413, "at most 100,000 bytes", id="long"),
]


@pytest.mark.parametrize(("body", "headers", "status", "reason"), REFUSED)
def test_nothing_is_kept_of_a_request_that_is_refused(
    body: bytes, headers: dict[str, str], status: int, reason: str, collector: Collector
) -> None:
    before = collector.kept()
    found, answer = collector.ask(body, headers)
    assert (found, reason in str(answer["error"])) == (status, True), answer
    assert collector.kept() == before


def test_a_window_that_only_a_bomb_needs_is_refused(collector: Collector) -> None:
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    packed = packer.compress(b"{}") + packer.flush()
    assert collector.ask(packed, ZSTD)[0] == 400


def test_a_body_without_a_length_is_refused_as_soon_as_it_is_too_long(collector: Collector) -> None:
    with collector.connect() as connection:
        connection.sendall(b"POST /events HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            connection.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")


def test_a_client_that_leaves_within_its_body_leaves_nothing(collector: Collector) -> None:
    before = collector.kept()
    with collector.connect() as connection:
        connection.sendall(b'POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"a":1}')
    assert collector.ask(b"", {}, method="GET", path="/health") == (200, {"is_full": False, "is_broken": False})
    assert collector.kept() == before


def test_other_paths_and_methods_are_refused(collector: Collector) -> None:
    assert collector.ask(b"{}", JSON, path="/other")[0] == 404
    assert collector.ask(b"", JSON, method="GET")[0] == 405


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer x"}, {"Authorization": TOKEN}, {"Authorization": f"Bearer {TOKEN}x"}])
def test_without_the_token_nothing_is_taken(header: dict[str, str], collector: Collector) -> None:
    status, answer = collector.ask(b"{}", JSON | header, "closed")
    assert (status, TOKEN in str(answer)) == (401, False)
    assert collector.kept("closed") == []


def test_with_the_token_events_are_taken(collector: Collector) -> None:
    assert collector.ask(b"{}", JSON | {"Authorization": f"Bearer {TOKEN}"}, "closed") == (202, {"accepted": 1})
    spooled(collector.folder, "closed")
    (segment,) = (collector.folder / "lake/spool/closed").glob("*.spool")
    segment.unlink()


def test_lines_of_csv_are_events(collector: Collector) -> None:
    assert collector.ask(b"oven,1,temperature,2\r\noven,2,temperature,3\n", {"Content-Type": "text/csv"}, "table") == (
        202,
        {"accepted": 2},
    )
    odd = b'oven,3,temperature\n"oven","4","temperature","3,5"\n"oven,5,temperature,4\noven,6,temperature,5'
    assert collector.ask(odd, {"Content-Type": "text/csv"}, "table") == (202, {"accepted": 4, "unreadable": 2})
    assert collector.kept("table") == [b"oven,1,temperature,2\r", b"oven,2,temperature,3", *odd.split(b"\n")]
    assert collector.ask(b"{}", JSON, "table")[0] == 415


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate")
def test_tls_is_spoken_where_conf_says_so_and_garbage_ends_nothing(collector: Collector) -> None:
    port = collector.ports["secure"]
    trusted = ssl.create_default_context(cafile=str(collector.folder / "server.crt"))
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as connection:
        connection.sendall(b"POST /events HTTP/1.1\r\n\r\n")
        assert b"202" not in connection.recv(100)
    with collector.connect() as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20)
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    with closing(http.client.HTTPSConnection("localhost", port, timeout=PATIENCE_SECONDS, context=trusted)) as secure:
        secure.request("POST", "/events", b'{"a":1}', JSON)
        assert secure.getresponse().status == 202
    assert collector.kept("secure") == [b'{"a":1}']


def test_secrets_of_conf_are_references(tmp_path: Path) -> None:
    conf = write_conf(tmp_path, plant='http: {port: 0, token: "${file:token.txt}"}')
    command = ["-c", "from orchestration.cli.app import main; main()", "--conf", str(conf), "collect"]
    failed = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert (failed.returncode, f"${{file:{tmp_path}/token.txt}}, which sources.yml names" in failed.stderr) == (4, True)
    (tmp_path / "token.txt").write_text(TOKEN + "\n")
    with collecting(conf) as collector:
        assert collector.ask(b"{}", JSON | {"Authorization": f"Bearer {TOKEN}"}, "plant")[0] == 202


def test_an_endless_head_ends_its_own_connection(collector: Collector) -> None:
    with collector.connect() as connection:
        connection.sendall(b"POST /events HTTP/1.1\r\nHost: a\r\n")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for n in range(1000):
                connection.sendall(b"X-%d: " % n + b"a" * 10_000 + b"\r\n")
                time.sleep(0.001)
    assert collector.ask(b"{}", JSON)[0] == 202


def test_of_a_source_of_messages_a_request_is_one_event_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "reading.avsc").write_text(json.dumps(READING))
    time_of = PAYLOAD.replace("time: {field: ts}", "time: {field: ts, format: epoch_ms}").replace("format: json, ", "")
    conf = write_conf(tmp_path, plain="http: {port: 0}")
    (conf / "sources.yml").write_text(f"sources:\n  plain: {{http: {{port: 0}}, format: avro, schema: ./reading.avsc, {time_of}}}\n")
    body = b"\x00\n[{" + bytes(range(256))
    with collecting(conf) as collector:
        assert collector.ask(body, {"Content-Type": "application/octet-stream"}) == (202, {"accepted": 1})
        assert collector.ask(gzip.compress(body), {"Content-Encoding": "gzip"}) == (202, {"accepted": 1})
        assert collector.ask(b"", {}) == (202, {"accepted": 0})
        status, answer = collector.ask(b"{}", JSON)
    assert (status, "send Content-Type: application/octet-stream" in str(answer)) == (415, True)
    assert collector.kept() == [body, body]
