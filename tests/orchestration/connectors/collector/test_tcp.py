"""Connections, over sockets: whole frames are stored and counted, and one that misbehaves harms itself alone."""

import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from silver.policy import Policy
from tests.collectors import Collector, collecting, spooled, tls_files, write_conf
from tests.waiting import until

KEY = "a-canary-that-nobody-may-see"
MOST = 1000


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    folder = tmp_path_factory.mktemp("tcp")
    conf = write_conf(
        folder,
        plain=f"tcp: {{port: 0, max_frame_bytes: {MOST}}}",
        wide="tcp: {port: 0}",
        framed=f"tcp: {{port: 0, framing: length, max_frame_bytes: {MOST}}}",
        closed='tcp: {port: 0, key: "${env:OF_A_TEST}"}',
        secure=f"tcp: {{port: 0, tls: {tls_files(folder)}}}",
        mute="tcp: {port: 0, acknowledge: false}",
        brief="tcp: {port: 0, idle_seconds: 0.3}",
        few="tcp: {port: 0, max_connections: 2}",
    )
    with collecting(conf, OF_A_TEST=KEY) as collector:
        yield collector
    assert KEY not in "".join(collector.log)


def acknowledged(connection: socket.socket, events: int) -> int:
    """The last number that came, once it is as great as that."""
    answer, number = b"", 0
    while number < events:
        part = connection.recv(1000)
        assert part, answer
        answer += part
        number = int(answer.rpartition(b"\n")[0].rpartition(b"\n")[2] or 0)
    return number


def closed(connection: socket.socket) -> bytes:
    """Read what came before the other side closed it."""
    answer = b""
    try:
        while part := connection.recv(1000):
            answer += part
    except ConnectionResetError:
        pass
    return answer


def test_lines_are_events_whatever_pieces_they_come_in(collector: Collector) -> None:
    events = [b'{"a":1}', b"", b"\x00\xff", b"with a return\r", b"x" * MOST]
    before = len(collector.kept())
    with collector.connect() as connection:
        for n, byte in enumerate(b"".join(event + b"\n" for event in events[:4])):
            connection.sendall(bytes([byte]))
            if n % 5 == 0:
                time.sleep(0.002)
        connection.sendall(events[4] + b"\nthe beginning of another")
        assert acknowledged(connection, 5) == 5
    found = spooled(collector.folder, "plain")[before:]
    assert [payload for _, payload in found] == events
    assert [position.rpartition("/")[2] for position, _ in found] == ["1", "2", "3", "4", "5"]
    assert len({position.rpartition("/")[0] for position, _ in found}) == 1


def test_a_line_longer_than_silver_reads_is_kept_and_the_connection_goes_on(collector: Collector) -> None:
    events = [b"odd", b"x" * (Policy(lateness_seconds=600).max_payload_bytes + 1), b'{"a":1}']
    with collector.connect("wide") as connection:
        connection.sendall(b"".join(event + b"\n" for event in events))
        assert acknowledged(connection, 3) == 3
    assert collector.kept("wide") == events


def test_frames_with_a_length_may_hold_anything(collector: Collector) -> None:
    events = [b"", b"\n\n", os.urandom(MOST), b"x"]
    content = b"".join(struct.pack(">I", len(event)) + event for event in events)
    with collector.connect("framed") as connection:
        for at in range(0, len(content), 7):
            connection.sendall(content[at : at + 7])
        assert acknowledged(connection, 4) == 4
    assert collector.kept("framed")[-4:] == events


def test_a_sender_that_is_done_sending_still_reads_what_is_acknowledged(collector: Collector) -> None:
    with collector.connect() as connection:
        connection.sendall(b"1\n2\n")
        connection.shutdown(socket.SHUT_WR)
        assert closed(connection).splitlines()[-1] == b"2"


def test_an_endless_line_is_refused_and_what_was_acknowledged_stays(collector: Collector) -> None:
    with collector.connect() as connection:
        connection.sendall(b"before\n")
        acknowledged(connection, 1)
        try:
            for _ in range(1000):
                connection.sendall(b"x" * 100_000)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert closed(connection) == b""
    assert collector.kept()[-1] == b"before"


@pytest.mark.parametrize("source", ["plain", "framed"])
@pytest.mark.parametrize("garbage", [b"\xff" * 5000, b"\x16\x03\x01\x02\x00\x01\x00" * 1000], ids=["binary", "TLS"])
def test_garbage_ends_its_own_connection(garbage: bytes, source: str, collector: Collector) -> None:
    before = collector.kept(source)
    with collector.connect(source) as other, collector.connect(source) as connection:
        connection.sendall(garbage)
        assert closed(connection) == b""
        assert collector.kept(source) == before
        other.sendall(b"\n" if source == "plain" else bytes(4))
        assert acknowledged(other, 1) == 1


def test_without_the_key_nothing_is_taken(collector: Collector) -> None:
    for first in (b'{"a":1}\n{"a":2}\n', KEY.encode() + b"x\n1\n", b"\n1\n"):
        with collector.connect("closed") as connection:
            connection.sendall(first)
            assert closed(connection) == b""
    with collector.connect("closed") as connection:
        connection.sendall(KEY.encode() + b"\r\n")
        connection.sendall(b"1\n")
        assert acknowledged(connection, 1) == 1
    assert collector.kept("closed") == [b"1"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate")
def test_tls_is_spoken_where_conf_says_so(collector: Collector) -> None:
    with collector.connect("secure") as connection:
        connection.sendall(b"plain\n" * 100)
        assert b"1" not in closed(connection)[:2]
    trusted = ssl.create_default_context(cafile=str(collector.folder / "server.crt"))
    with collector.connect("secure") as connection, trusted.wrap_socket(connection, server_hostname="localhost") as secure:
        secure.sendall(b"1\n2\n")
        assert acknowledged(secure, 2) == 2
    assert collector.kept("secure") == [b"1", b"2"]


def test_where_nothing_is_to_be_acknowledged_nothing_is_sent(collector: Collector) -> None:
    with collector.connect("mute") as connection:
        connection.sendall(b"1\n")
        connection.shutdown(socket.SHUT_WR)
        assert closed(connection) == b""
    assert collector.kept("mute") == [b"1"]


def test_an_idle_connection_is_closed(collector: Collector) -> None:
    with collector.connect("brief") as idle:
        assert closed(idle) == b""


def test_connections_above_the_bound_are_closed_until_another_one_leaves(collector: Collector) -> None:
    def is_taken() -> bool:
        with suppress(ConnectionError), collector.connect("few") as connection:
            connection.sendall(b"1\n")
            return connection.recv(10) == b"1\n"
        return False

    with collector.connect("few") as one, collector.connect("few") as other:
        for connection in (one, other):
            connection.sendall(b"1\n")
            acknowledged(connection, 1)
        assert not is_taken()
    until(is_taken)


@pytest.mark.parametrize("many", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_connections_and_a_slow_one_are_served_together(many: int, collector: Collector) -> None:
    before = len(collector.kept())
    with ExitStack() as stack, collector.connect() as slow:
        slow.sendall(b"the beginning of a line")
        connections = [stack.enter_context(collector.connect()) for _ in range(many)]
        for n, connection in enumerate(connections):
            connection.sendall(b"".join(b"%d-%d\n" % (n, m) for m in range(10)))
        assert [acknowledged(connection, 10) for connection in connections] == [10] * many
        slow.sendall(b", and its end\n")
        assert acknowledged(slow, 1) == 1
    found = collector.kept()[before:]
    assert sorted(found) == sorted([b"%d-%d" % (n, m) for n in range(many) for m in range(10)] + [b"the beginning of a line, and its end"])


def test_a_second_collector_is_refused_and_the_first_goes_on(collector: Collector) -> None:
    command = [sys.executable, "-c", "from orchestration.cli.app import main; main()", "--conf", str(collector.folder / "conf"), "collect"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "OF_A_TEST": KEY})
    holder, sentence = f"process {collector.process.pid} on ", "collects the events of source plain; stop it first"
    assert (refused.returncode, holder in refused.stderr, sentence in refused.stderr) == (3, True, True)


def test_sigterm_acknowledges_what_was_read_and_ends_well(tmp_path: Path) -> None:
    with collecting(write_conf(tmp_path, plain="tcp: {port: 0}")) as collector, collector.connect() as connection:
        connection.sendall(b"1\n")
        acknowledged(connection, 1)
        connection.sendall(b"2\n" * 1000)
        assert collector.end() == 0
        last = int(closed(connection).splitlines()[-1])
    assert len(collector.kept()) == last
