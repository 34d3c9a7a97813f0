"""`tidemark status` of sources: how far each is, whether it is up, and what waits, from what the lake remembers."""

import json
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestration.cli.app import exit_code
from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.connectors.outages import begin_outage
from orchestration.connectors.sources.all import source_of, sources
from orchestration.connectors.sources.spool_records import encoded, segment_file
from orchestration.jobs.bronze import EVENTS, commit_batch, poll
from orchestration.storage.delta import version_of
from orchestration.storage.source_offsets import source_offsets
from orchestration.storage.tables import LakeStore, ensure
from orchestration.supervisor.status import SOURCE_COLUMNS, note_ends, source_status
from tests.collectors import write_conf
from tests.lakes import commit_at, land, table

NOW = datetime.now(UTC)
MARK = b"12345678"
KAFKA = "kafka: {servers: '127.0.0.1:1', subscribe: [readings]}"


def made(folder: Path, **declared: str) -> Conf:
    """A lake of these sources."""
    conf = load(write_conf(folder, **declared))
    ensure(LakeStore(conf).tables[EVENTS])
    return conf


def take(conf: Conf) -> None:
    """What sources have, once."""
    lake = LakeStore(conf)
    commit_batch(lake, [ready for source in sources(conf) if not source.is_remote and (ready := poll(lake, source))], nullcontext())


def spool(conf: Conf, source: str, number: int, *payloads: bytes, seconds_ago: float = 60) -> int:
    """A segment with a record; returns the length of the record."""
    folder = conf.lake.local / "spool" / source
    folder.mkdir(parents=True, exist_ok=True)
    record = encoded(MARK, int((NOW.timestamp() - seconds_ago) * 1_000_000), "request/a", 1, payloads)
    segment_file(folder, number).write_bytes(MARK + record)
    return len(record)


def of(conf: Conf, source: str, now: datetime = NOW) -> dict[str, Any]:
    return next(row for row in source_status(conf, now) if row["source"] == source)


def test_a_source_that_was_never_read_is_new_and_has_nothing_to_say(tmp_path: Path) -> None:
    conf = load(write_conf(tmp_path, plant="path: ./landing", web="http: {port: 0}", fleet=KAFKA))
    rows = [tuple(row[name] for name in SOURCE_COLUMNS) for row in source_status(conf, NOW)]
    nothing = (None, None, None, 0, None, None, None, None)
    assert rows == [("plant", "files", "new", *nothing), ("web", "http", "new", *nothing), ("fleet", "kafka", "new", *nothing)]
    assert not (tmp_path / "lake").exists()


def test_each_source_says_how_far_it_is_in_its_own_words(tmp_path: Path) -> None:
    conf = made(tmp_path, plant="path: ./landing, settle_seconds: 0", web="http: {port: 0}")
    land(tmp_path, "1.json", [b"{}", b"{}"])
    length = spool(conf, "web", 0, b"{}", b"{}", b"{}")
    take(conf)
    told = [(row["state"], row["offset"], row["rows_last_hour"], row["waiting_bytes"]) for row in source_status(conf, NOW)]
    assert told == [("up", "claim 0", 2, None), ("up", f"segment 0, byte {8 + length}", 3, 0)]
    assert of(conf, "plant")["last_received_at"] == "2023-11-14T22:13:21Z"


def test_what_is_spooled_and_not_read_waits_since_it_came(tmp_path: Path) -> None:
    conf = made(tmp_path, web="http: {port: 0}")
    spool(conf, "web", 0, b"{}")
    take(conf)
    lengths = [spool(conf, "web", number, b"{}", b"{}", seconds_ago=60 - number) for number in (1, 2)]
    row = of(conf, "web")
    assert (row["waiting_bytes"], row["lag_seconds"]) == (sum(lengths), 59.0)


def test_of_kafka_messages_wait_that_a_run_has_seen_and_bronze_does_not_have(tmp_path: Path) -> None:
    conf = made(tmp_path, fleet=KAFKA)
    assert of(conf, "fleet")["waiting_messages"] is None
    note_ends(conf.lake, "fleet", {"readings/0": 120, "readings/1": 30})
    assert of(conf, "fleet")["waiting_messages"] == 150
    fleet = source_of(conf, "fleet")
    offset = {"topics": {"readings": {"id": "x", "next": {"0": 100, "1": 31}}}}
    assert fleet.waiting(offset, {"readings/0": 120, "readings/1": 30}) == 20


def test_the_rows_of_the_last_hour_are_those_of_commits_within_it(tmp_path: Path) -> None:
    conf = made(tmp_path, plant="path: ./landing, settle_seconds: 0", web="http: {port: 0}")
    events = LakeStore(conf).table_path(EVENTS)
    for number in range(3):
        land(tmp_path, f"{number}.json", [b"{}"] * 10**number)
        take(conf)
    for version, minutes in enumerate((90, 80, 50, 1)):
        commit_at(events, version, NOW - timedelta(minutes=minutes))
    assert (version_of(events), of(conf, "plant")["rows_last_hour"], of(conf, "web")["rows_last_hour"]) == (3, 110, 0)
    assert of(conf, "plant", NOW + timedelta(minutes=30))["rows_last_hour"] == 100
    assert source_offsets(events)["plant"].rows == len(table(conf, EVENTS)) == 111


def test_a_source_that_is_down_says_since_when_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conf = made(tmp_path, fleet=KAFKA)
    begin_outage(conf.lake, "source", "fleet", "source fleet cannot be read", NOW)
    row, since = of(conf, "fleet"), f"{NOW:%Y-%m-%dT%H:%M:%SZ}"
    assert (row["state"], row["down_since"], row["reason"]) == ("down", since, "source fleet cannot be read")
    assert exit_code(["--conf", str(conf.folder), "status"]) == 1
    first = capsys.readouterr().err.splitlines()[0]
    assert first == f"critical: source fleet is down: source fleet cannot be read (since {since})"


def test_a_paused_source_is_not_read_and_says_so_and_goes_on_where_it_was(tmp_path: Path) -> None:
    before = made(tmp_path, plant="path: ./landing, settle_seconds: 0", web="http: {port: 0}")
    land(tmp_path, "1.json", [b"1"])
    take(before)
    paused = made(tmp_path, plant="path: ./landing, settle_seconds: 0, paused: true", web="http: {port: 0}, paused: true", fleet=KAFKA)
    land(tmp_path, "2.json", [b"2"])
    spool(paused, "web", 0, b"3")
    assert [source.name for source in sources(paused)] == ["fleet"]
    assert [(row["state"], row["offset"]) for row in source_status(paused, NOW)] == [("paused", "claim 0"), ("paused", None), ("new", None)]
    assert of(paused, "web")["waiting_bytes"] > 0
    take(made(tmp_path, plant="path: ./landing, settle_seconds: 0", web="http: {port: 0}"))
    assert sorted(table(before, EVENTS)["payload"]) == [b"1", b"2", b"3"]


@pytest.mark.parametrize(("arguments", "keys"), [([], {"flow"}), (["flows"], {"flow"}), (["sources"], {"source"})])
def test_json_holds_the_flows_unless_sources_are_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], keys: set[str]
) -> None:
    folder = write_conf(tmp_path, plant="path: ./landing")
    assert exit_code(["--conf", str(folder), "status", *arguments, "--format", "json"]) == 0
    assert {next(iter(row)) for row in json.loads(capsys.readouterr().out)} == keys


def test_a_table_shows_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["--conf", str(write_conf(tmp_path, plant="path: ./landing")), "status"]) == 0
    headings = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.split()[:1] in (["source"], ["flow"])]
    assert headings == ["source", "flow"]
