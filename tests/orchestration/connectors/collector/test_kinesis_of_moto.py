"""Kinesis, as moto mocks it: what a stream has comes to the spool, and how far it is read is known after a kill."""

import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestration.connectors.sources.spool import Spool
from orchestration.location import Location
from orchestration.storage.state_file import StateFile
from tests.collectors import Collector, collecting, spooled, write_conf
from tests.kinesis import Moto
from tests.orchestration.connectors.collector.test_mqtt import payloads
from tests.waiting import until

UP, DOWN = "records come from stream plant", "is down since"
SECRETS = {"KEY": "AKIA4711", "SECRET": "canary-4711"}
KEYS = [f"press-{n}" for n in range(7)]


@pytest.fixture
def server() -> Iterator[Moto]:
    with Moto().running() as running:
        yield running


def source(server: Moto, more: str = "") -> str:
    return f"kinesis: {{{server.setting}{more and ', ' + more}}}"


def numbered(count: int, first: int = 0) -> list[tuple[str, bytes]]:
    return [(KEYS[n % len(KEYS)], b'{"n": %d}' % n) for n in range(first, first + count)]


def all_of(records: list[tuple[str, bytes]]) -> set[bytes]:
    return {data for _, data in records}


def keyed(folder: Path) -> list[tuple[str, bytes]]:
    """Keys and payloads as bronze gets them."""
    spool = Spool("hall", folder / "lake/spool/hall", 1 << 40)
    tables = [table for part in spool.partitions({}, spool.latest_offset({})) for table in spool.read(part)]
    return [
        (key.decode(), data) for table in tables for key, data in zip(table["key"].to_pylist(), table["payload"].to_pylist(), strict=True)
    ]


def collected(folder: Path, records: list[tuple[str, bytes]]) -> None:
    until(lambda: payloads(folder).keys() >= all_of(records))


def test_records_of_moto_come_once_with_shard_sequence_and_key_also_those_that_came_while_nobody_collected(
    server: Moto, tmp_path: Path
) -> None:
    conf, sent = write_conf(tmp_path, hall=source(server)), numbered(1500)
    server.put(sent[:500])
    with collecting(conf, **SECRETS) as collector:
        collector.says(UP)
        server.put(sent[500:1000])
        collected(tmp_path, sent[:1000])
    server.put(sent[1000:])
    with collecting(conf, **SECRETS):
        collected(tmp_path, sent)
    assert keyed(tmp_path) == sent
    assert [position for position, _ in spooled(tmp_path, "hall")] == [f"shardId-000000000000/{n}" for n in range(1, 1501)]
    assert not any(secret in line for line in collector.log for secret in SECRETS.values())


def test_a_collector_of_moto_killed_between_the_disk_and_its_note_repeats_and_loses_nothing(server: Moto, tmp_path: Path) -> None:
    conf, sent = write_conf(tmp_path, hall=source(server)), numbered(200)
    with collecting(conf, **SECRETS, TIDEMARK_CRASH_AT="events-spooled:2") as collector:
        collector.says(UP)
        for n in range(0, 200, 50):
            server.put(sent[n : n + 50])
            until(lambda expected=n: len(payloads(tmp_path)) > expected or collector.process.poll() is not None)  # type: ignore[misc]
        assert collector.wait() == -signal.SIGKILL
    with collecting(conf, **SECRETS):
        collected(tmp_path, sent)
    assert sum(payloads(tmp_path).values()) > len(sent)


def test_the_latest_of_moto_are_those_since_the_first_start_however_it_ended(server: Moto, tmp_path: Path) -> None:
    conf, sent = write_conf(tmp_path, hall=source(server, "starting: latest")), numbered(30)
    server.put(sent[:10])
    collector = Collector(conf, **SECRETS)
    collector.says(UP)
    collector.kill()
    server.put(sent[10:])
    with collecting(conf, **SECRETS):
        collected(tmp_path, sent[10:])
    assert payloads(tmp_path).keys() == all_of(sent[10:])


def test_a_moto_that_is_down_is_told_and_a_stream_that_was_made_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    server = Moto()
    conf = write_conf(tmp_path, hall=source(server))
    with collecting(conf, **SECRETS) as collector:
        assert "Could not connect" in collector.says(DOWN)
        server.start()
        collector.says(UP)
        server.put(numbered(10))
        collected(tmp_path, numbered(10))
        server.kill()
        collector.says(DOWN)
        server.start()
        server.put(numbered(10, first=10))
        assert "was made anew" in collector.says("is gone")
        collected(tmp_path, numbered(20))
    server.kill()


def test_what_moto_no_longer_keeps_is_told(server: Moto, tmp_path: Path) -> None:
    conf = write_conf(tmp_path, hall=source(server))
    note = StateFile(Location(tmp_path / "lake/spool/hall/kinesis.json"), dict[str, Any], "")
    with collecting(conf, **SECRETS) as collector:
        collector.says(UP)
    content = note.read() or {}
    note.write({**content, "at": (datetime.now(UTC) - timedelta(hours=25)).isoformat(), "read": {"shardId-000000000009": "5"}})
    with collecting(conf, **SECRETS) as collector:
        assert "but keeps records for 24 hours; those before are gone" in collector.says("it was not read since")
        assert "shardId-000000000009 is gone before it was read to its end" in collector.says("shard ")
        collector.says(UP)
