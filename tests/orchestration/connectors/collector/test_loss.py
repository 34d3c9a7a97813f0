"""Kills, full spools and full disks under load: what was acknowledged comes to bronze, each event once."""

import http.client
import resource
import signal
import socket
import threading
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.connectors.sources.all import sources
from orchestration.connectors.sources.spool_records import segments
from orchestration.errors import TidemarkError
from orchestration.storage.payload_formats import remember
from orchestration.storage.tables import LakeStore
from tests.collectors import Collector, collecting, spooled, write_conf
from tests.lakes import land, table
from tests.taking import opened, take, take_all
from tests.waiting import PATIENCE_SECONDS, until

TCP, HTTP = "tcp: {port: 0}", "http: {port: 0}"
LOST = (OSError, http.client.HTTPException)


@dataclass
class Sender:
    """Numbers its events, and sends until the collector is gone; `acknowledged`: those that it need not send again."""

    collector: Collector
    name: str
    acknowledged: list[bytes] = field(default_factory=list)

    def over_tcp(self) -> None:
        sent = 0
        with suppress(*LOST), self.collector.connect("line") as connection:
            while True:
                connection.sendall(b"".join(b"%s-%d\n" % (self.name.encode(), n) for n in range(sent, sent + 50)))
                sent += 50
                if not (answer := connection.recv(1 << 16)):
                    return
                numbers = answer.rpartition(b"\n")[0].split(b"\n")
                if numbers[-1]:
                    self.acknowledged = [b"%s-%d" % (self.name.encode(), n) for n in range(int(numbers[-1]))]

    def over_http(self) -> None:
        with (
            suppress(*LOST),
            closing(http.client.HTTPConnection("127.0.0.1", self.collector.ports["web"], timeout=PATIENCE_SECONDS)) as connection,
        ):
            for n in range(1_000_000):
                events = [b'{"event":"%s-%d-%d"}' % (self.name.encode(), n, m) for m in range(5)]
                connection.request("POST", "/events", b"[" + b",".join(events) + b"]", {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 202
                self.acknowledged += events


def sending(collector: Collector, count: int) -> tuple[list[Sender], list[threading.Thread]]:
    senders = [Sender(collector, f"{collector.process.pid}-{n}") for n in range(2 * count)]
    ways = [sender.over_tcp for sender in senders[:count]] + [sender.over_http for sender in senders[count:]]
    threads = [threading.Thread(target=way) for way in ways]
    for thread in threads:
        thread.start()
    return senders, threads


def brought(lake: LakeStore) -> Counter[bytes]:
    return Counter(table(lake.conf, "bronze.events")["payload"])


def test_kills_under_load_lose_and_double_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """While a run reads the spools; the senders of a killed collector send nothing again, so each event may be there once."""
    lake = opened(load(write_conf(tmp_path, line=TCP, web=HTTP)))
    acknowledged: list[bytes] = []
    for count in (1, 500, 100):
        with collecting(tmp_path / "conf") as collector:
            senders, threads = sending(collector, 3)

            def have_enough(count: int = count, senders: list[Sender] = senders) -> bool:
                take(lake)
                return all(len(sender.acknowledged) >= count for sender in senders)

            until(have_enough, pause_seconds=0.0)
            assert collector.kill() == -signal.SIGKILL
            for thread in threads:
                thread.join()
        acknowledged += [event for sender in senders for event in sender.acknowledged]
    take_all(lake)
    found = brought(lake)
    assert set(found.values()) == {1}
    assert set(acknowledged) <= found.keys()


@pytest.mark.parametrize("passing", [1, 4])
def test_a_kill_between_the_disk_and_the_acknowledgement_loses_nothing(passing: int, tmp_path: Path) -> None:
    conf = write_conf(tmp_path, line=TCP, web=HTTP)
    with collecting(conf, TIDEMARK_CRASH_AT=f"events-spooled:{passing}") as collector:
        senders, threads = sending(collector, 1)
        for thread in threads:
            thread.join()
        assert collector.wait() == -signal.SIGKILL
    found = Counter(payload for source in ("line", "web") for _, payload in spooled(tmp_path, source))
    acknowledged = {event for sender in senders for event in sender.acknowledged}
    assert set(found.values()) == {1}
    assert acknowledged < found.keys()  # what was on the disk when it died, nobody was told


def test_a_full_spool_refuses_requests_and_stops_connections_until_a_run_has_read_it(tmp_path: Path) -> None:
    bound = "max_spool_bytes: 1048576"
    lake = opened(load(write_conf(tmp_path, line=f"tcp: {{port: 0, {bound}}}", web=f"http: {{port: 0, {bound}}}")))
    event = b'{"event":"' + b"x" * 10_000 + b'"}'
    with collecting(tmp_path / "conf") as collector:
        accepted = 0
        while (status := collector.ask(event, source="web")[0]) == 202:
            accepted += 1
        assert (status, 90 < accepted < 110) == (429, True)
        with collector.connect("web") as connection:
            connection.sendall(b"POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}")
            assert b"\r\nretry-after: 5\r\n" in connection.recv(1000).lower()
        with collector.connect("line") as connection:
            sender = threading.Thread(target=connection.sendall, args=((event + b"\n") * 1000,))
            sender.start()
            number, size = 0, 0
            while number < 1000:
                numbers = connection.recv(1000).split()
                number = int(numbers[-1])
                size = max(size, sum(file.stat().st_size for file in segments(tmp_path / "lake/spool/line").values()))
                if not is_readable(connection, 0.3):
                    take_all(lake)
            sender.join()
        assert size < 1048576 + 600_000  # one group more than the bound
        take_all(lake)
        until(lambda: collector.ask(event, source="web")[0] == 202)
    take_all(lake)
    assert brought(lake) == {event: accepted + 1001}


def is_readable(connection: socket.socket, seconds: float) -> bool:
    connection.settimeout(seconds)
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except TimeoutError:
        return False
    finally:
        connection.settimeout(PATIENCE_SECONDS)


def test_a_full_disk_refuses_what_it_cannot_keep_and_goes_on_when_there_is_space(tmp_path: Path) -> None:
    """RLIMIT_FSIZE of the collector stands for the disk: without privileges there is no small one. A write fails in the middle."""
    conf = write_conf(tmp_path, line=TCP, web=HTTP)
    with collecting(conf) as collector:
        resource.prlimit(collector.process.pid, resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
        event = b'{"event":"' + b"x" * 9_000 + b'"}'
        statuses = [collector.ask(event, source="web")[0] for _ in range(8)]
        assert (statuses[:5], statuses[5:]) == ([202] * 5, [503] * 3)
        with collector.connect("line") as connection:
            connection.sendall(b"x" * 60_000 + b"\n")
            assert connection.recv(100) == b""
        resource.prlimit(collector.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until(lambda: collector.ask(b"[" + event + b"," + event + b"]", source="web")[0] == 202)
        with collector.connect("line") as connection:
            connection.sendall(b"y" * 60_000 + b"\n")
            assert connection.recv(100) == b"1\n"
    assert [payload for _, payload in spooled(tmp_path, "web")] == [event] * 7
    assert [payload for _, payload in spooled(tmp_path, "line")] == [b"y" * 60_000]
    assert any("the disk takes no more" in line for line in collector.log)


def test_what_waits_of_a_source_that_conf_no_longer_names_comes_to_bronze_too(tmp_path: Path) -> None:
    lake = opened(load(write_conf(tmp_path, line=TCP, web=HTTP)))
    remember(lake.conf)
    with collecting(tmp_path / "conf", "web") as collector:
        assert collector.ask(b"{}", source="web")[0] == 202
    lake = LakeStore(load(write_conf(tmp_path, line=TCP)))
    take(lake)
    assert brought(lake) == {b"{}": 1}


def test_a_source_changes_its_way_once_bronze_has_what_came_by_the_old_one(tmp_path: Path) -> None:
    lake = opened(load(write_conf(tmp_path, web=HTTP)))
    with collecting(tmp_path / "conf") as collector:
        assert collector.ask(b"{}", source="web")[0] == 202
    files = replaced(tmp_path, web="path: ./landing, settle_seconds: 0")
    with pytest.raises(TidemarkError, match=r"source web had another transport before .*, and .*spool/web holds events"):
        sources(files.conf)[0].latest_offset({})
    take(lake)
    land(tmp_path, "1.json", [b"1"])
    take(files)
    pushed = replaced(tmp_path, web=HTTP)
    assert take(pushed) is None
    files = replaced(tmp_path, web="path: ./landing, settle_seconds: 0")
    assert take(files) is None
    land(tmp_path, "2.json", [b"2"])
    (source,) = sources(files.conf)
    assert source.latest_offset({}) != {}  # claims the file, which bronze has not read yet
    with pytest.raises(TidemarkError, match="intake/web holds events"):
        sources(pushed.conf)[0].latest_offset({})
    take(files, source)
    assert (sources(pushed.conf)[0].name, brought(lake)) == ("web", {b"{}": 1, b"1": 1, b"2": 1})


def replaced(folder: Path, **ways: str) -> LakeStore:
    return LakeStore(load(write_conf(folder, **ways)))
