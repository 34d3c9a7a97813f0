"""Older messages of a topic come to bronze once, whatever the source has read, or reads later, and whatever is killed."""

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from orchestration.cli.app import exit_code
from orchestration.conf.load import load
from orchestration.connectors.sources import kafka
from orchestration.jobs.backfill import carry_out, kafka_source, plan, summary
from orchestration.jobs.bronze import commit_batch, poll
from orchestration.storage.lease import sole_writer
from orchestration.storage.tables import LakeStore
from tests.broker import Broker
from tests.collectors import PROGRAM, ROOT, write_conf
from tests.lakes import table
from tests.taking import opened, take_all


def conf_of(folder: Path, running: Broker, topics: str, more: str = "starting: latest") -> Path:
    return write_conf(folder, fleet=f"kafka: {{servers: '{running.servers}', {topics}, {more}}}")


def lake_of(conf: Path) -> LakeStore:
    return opened(load(conf))


def take(lake: LakeStore) -> None:
    """What a run does."""
    take_all(lake, kafka_source(lake, "fleet"))


def backfill(conf: Path, begin: str = "earliest", end: str = "latest") -> int:
    return exit_code(["--conf", str(conf), "backfill", "fleet", "--from", begin, "--to", end, "--format", "json"])


def positions(lake: LakeStore) -> list[int]:
    """Offsets in bronze, of partition 0."""
    found = [position.split("/") for position in table(lake.conf, "bronze.events")["position"]]
    return sorted(int(offset) for _, partition, offset in found if partition == "0")


def numbers(first: int, end: int) -> list[bytes]:
    return [b'{"device": "oven", "metric": "temperature", "value": %d, "ts": "2026-01-05T00:00:00Z"}' % n for n in range(first, end)]


def test_what_lies_before_the_beginning_of_a_source_comes_and_never_twice(
    tmp_path: Path, running: Broker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    running.send(topic, numbers(0, 10))
    conf = conf_of(tmp_path, running, f"subscribe: [{topic}]")
    lake = lake_of(conf)
    take(lake)
    running.send(topic, numbers(10, 15))
    take(lake)
    running.send(topic, numbers(15, 20))  # the source has not read these yet
    assert positions(lake) == [*range(10, 15)]
    offsets = [json.dumps({topic: {"0": offset}}) for offset in (4, 7, 18)]
    assert backfill(conf, offsets[0], offsets[1]) == 0
    assert positions(lake) == [*range(4, 7), *range(10, 15)]
    capsys.readouterr()
    assert backfill(conf, "earliest", offsets[2]) == 0
    out, told = capsys.readouterr()
    parts = {"to_read": "0-3, 7-9", "in_bronze": "4-6, 10-14", "left_to_source": "15-17", "gone": ""}
    assert json.loads(out) == [{"topic": topic, "partition": 0, "from": 0, "to": 18} | parts]
    assert "7 events of fleet came to bronze" in told
    assert positions(lake) == [*range(15)]
    for _ in range(2):
        assert backfill(conf) == 0
        take(lake)
        assert positions(lake) == [*range(20)]


def test_instants_bound_it_and_what_the_brokers_have_no_longer_is_told(
    tmp_path: Path, running: Broker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in range(1, 7):
        running.send(topic, numbers(day, day + 1), timestamp=int(datetime(2026, 1, day, tzinfo=UTC).timestamp() * 1000))
    conf = conf_of(tmp_path, running, f"subscribe: [{topic}]")
    lake = lake_of(conf)
    take(lake)
    running.forget(topic, 0, 1)
    assert backfill(conf, json.dumps({topic: {"0": 0}}), "2026-01-04T00:00:00Z") == 0
    assert json.loads(capsys.readouterr().out)[0] | {"topic": ""} == {
        "topic": "",
        "partition": 0,
        "from": 0,
        "to": 3,
        "to_read": "1-2",
        "in_bronze": "",
        "left_to_source": "",
        "gone": "0-0",
    }
    assert positions(lake) == [1, 2]
    assert backfill(conf, "2026-01-05", "2030-01-01") == 0
    assert positions(lake) == [1, 2, 4, 5]


def test_partitions_and_batches_and_transactions_are_whole(
    tmp_path: Path, running: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.grow(topic, 2)
    running.transact(topic, numbers(0, 30), commit=True)
    running.transact(topic, numbers(0, 5), commit=False)
    running.send(topic, numbers(0, 40), 1)
    conf = conf_of(tmp_path, running, f"subscribe: [{topic}]")
    lake = lake_of(conf)
    take(lake)
    monkeypatch.setattr(kafka, "MAX_MESSAGES", 10)
    source = kafka_source(lake, "fleet")
    committed = [*carry_out(lake, source, plan(lake, source, "earliest", "latest"))]
    assert (len(committed) > 3, sum(of.rows["fleet"] for of in committed)) == (True, 70)
    events = table(lake.conf, "bronze.events")
    assert events["position"].is_unique
    assert positions(lake) == [*range(30)]
    (row,) = (row for row in summary(plan(lake, source, "earliest", "latest")) if row["partition"] == 0)
    assert (row["to_read"], row["in_bronze"]) == ("", "0-36")


def test_a_topic_that_was_made_anew_is_left_to_the_source(tmp_path: Path, running: Broker, topic: str) -> None:
    running.send(topic, numbers(0, 3))
    conf = conf_of(tmp_path, running, f"subscribe: [{topic}]")
    lake = lake_of(conf)
    take(lake)
    running.delete(topic)
    assert backfill(conf) == 0
    running.create(topic)
    running.send(topic, numbers(0, 4))
    assert backfill(conf) == 0
    assert positions(lake) == []
    take(lake)
    assert backfill(conf) == 0
    assert positions(lake) == [*range(4)]


def test_of_assigned_partitions_no_other_is_touched(tmp_path: Path, running: Broker, topic: str) -> None:
    running.grow(topic, 2)
    for partition in range(2):
        running.send(topic, numbers(0, 3), partition)
    conf = conf_of(tmp_path, running, f"assign: {{{topic}: [0]}}")
    lake = lake_of(conf)
    take(lake)
    source = kafka_source(lake, "fleet")
    assert [part.partition_id for part in plan(lake, source, "earliest", "latest")] == [(topic, 0)]
    assert backfill(conf) == 0
    assert table(lake.conf, "bronze.events")["position"].tolist() == [f"{topic}/0/{n}" for n in range(3)]


def test_an_offset_that_does_not_tell_what_was_read_counts_as_all_that_lies_before(tmp_path: Path, running: Broker, topic: str) -> None:
    running.send(topic, numbers(0, 4))
    conf = conf_of(tmp_path, running, f"subscribe: [{topic}]", "starting: earliest")
    lake = lake_of(conf)
    source = kafka_source(lake, "fleet")
    ready = poll(lake, source)
    assert ready is not None
    del (older := json.loads(json.dumps(ready.end)))["topics"][topic]["read"]
    commit_batch(lake, [type(ready)(source, {}, older)], nullcontext())
    assert backfill(conf) == 0
    running.send(topic, numbers(4, 6))
    take(lake)
    assert backfill(conf) == 0
    assert positions(lake) == [*range(6)]


def test_what_cannot_be_done_is_one_sentence(tmp_path: Path, running: Broker, topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    running.send(topic, numbers(0, 3))
    conf = conf_of(tmp_path, running, f"subscribe: [{topic}]")
    lake = lake_of(conf)
    assert backfill(conf) == 4
    said = capsys.readouterr().err
    assert "source fleet has not been read yet, so it is not known which messages are older; run `tidemark run --once` first" in said
    take(lake)
    for begin in ("erliest", "{}x", '{"a": {"0": -1}}', '{"a": 1}'):
        assert backfill(conf, begin) == 2
        assert "is not a position in a topic; write earliest, latest, an instant such as" in capsys.readouterr().err
    assert backfill(conf, json.dumps({topic: {"7": 0}})) == 4
    assert f"source fleet does not read {topic}/7; it reads {topic}/0." in capsys.readouterr().err
    with sole_writer(lake.conf.lake):
        assert backfill(conf) == 3
    assert "writes the lake at" in capsys.readouterr().err
    assert exit_code(["--conf", str(conf), "backfill", "flet", "--from", "earliest"]) == 2
    assert "flet is not a Kafka source; a backfill reads only Kafka sources, and the conf has fleet." in capsys.readouterr().err
    (conf / "sources.yml").write_text((conf / "sources.yml").read_text().replace("format: json", "format: json, paused: true"))
    assert backfill(conf) == 2
    assert "source fleet is paused, so bronze reads nothing of it" in capsys.readouterr().err
    assert positions(lake) == []


KILLED = "from orchestration.connectors.sources import kafka; kafka.MAX_MESSAGES = 100; " + PROGRAM


def test_killed_again_and_again_it_is_exact_in_the_end(tmp_path: Path, running: Broker, topic: str) -> None:
    running.send(topic, numbers(0, 3_000))
    conf = conf_of(tmp_path, running, f"subscribe: [{topic}]")
    lake = lake_of(conf)
    take(lake)
    had = [0]
    for _ in range(2):
        process = start(conf)
        assert process.stderr is not None
        for _ in range(3):
            process.stderr.readline()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        had.append(len(positions(lake)))
    process = start(conf)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert had == sorted(set(had))
    assert 0 < had[-1] < 3_000
    assert positions(lake) == [*range(3_000)]


def start(conf: Path) -> "subprocess.Popen[Any]":
    command = [sys.executable, "-c", KILLED, "--conf", str(conf), "backfill", "fleet", "--from", "earliest"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
