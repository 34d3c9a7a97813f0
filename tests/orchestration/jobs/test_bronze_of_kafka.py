"""What a Kafka source hands over to bronze: all of it once, whatever is killed, gaps as rows, and no secret."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from orchestration.conf.model import KafkaTopics, Source
from orchestration.connectors.sources import kafka, kafka_client
from orchestration.connectors.sources.all import sources
from orchestration.connectors.sources.kafka import Kafka
from orchestration.connectors.sources.source import SourceDownError
from orchestration.jobs import bronze
from orchestration.jobs.bronze import Ready, hand_over, look
from orchestration.storage.delta import log_of, version_of
from orchestration.storage.tables import LakeStore, ensure
from tests.broker import Broker
from tests.lakes import SHAPE, conf, table


def lake_of(folder: Path, running: Broker, topic: str, **more: Any) -> LakeStore:
    """A lake that is fed by the topic."""
    lake = LakeStore(conf(folder, sources={"plant": Source("plant", SHAPE, KafkaTopics(running.servers, subscribe=(topic,), **more))}))
    ensure(lake.tables["bronze.events"])
    return lake


def take(lake: LakeStore, of: Any = None) -> None:
    """Until nothing is left, by default with a client that has just been started."""
    of = of or sources(lake.conf)[0]
    while ready := look(lake, of):
        hand_over(lake, [ready], nullcontext())


def ready_of(lake: LakeStore, of: Any) -> Ready:
    """What it has, which is something."""
    ready = look(lake, of)
    assert ready is not None
    return ready


def test_a_broker_that_is_killed_while_it_is_read_costs_and_doubles_nothing(
    running: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(tmp_path, running, topic)
    monkeypatch.setattr(kafka, "MAX_MESSAGES", 4_000)
    monkeypatch.setattr(kafka_client, "MESSAGES_AT_ONCE", 100)
    monkeypatch.setattr(kafka_client, "PATIENCE_SECONDS", 1.0)
    payloads = [b"%05d" % n + b"x" * 2_000 for n in range(10_000)]
    running.send(topic, payloads[:9_000])
    (of,) = sources(lake.conf)
    ready = ready_of(lake, of)
    hand_over(lake, [ready], nullcontext())
    assert isinstance(of, Kafka)
    start = ready.end
    (part,) = of.partitions(start, of.latest_offset(start))
    pieces = of.read(part)
    next(pieces)
    running.kill()
    with pytest.raises(SourceDownError, match="cannot be read from the brokers"):
        for _ in pieces:
            pass
    with pytest.raises(SourceDownError, match=f"source plant cannot be read from the brokers {running.servers}: "):
        look(lake, of)
    running.start()
    running.send(topic, payloads[9_000:])
    take(lake, of)
    take(lake)
    found = table(lake.conf, "bronze.events").sort_values(["bronze_batch", "bronze_row"])
    assert found["payload"].tolist() == payloads
    assert found["position"].tolist() == [f"{topic}/0/{n}" for n in range(10_000)]


def test_a_gap_is_a_row_that_is_written_once(running: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of(tmp_path, running, topic)
    running.send(topic, [b"1"])
    take(lake)
    running.send(topic, [b"2", b"3", b"4"])
    running.forget(topic, 0, 3)
    (of,) = sources(lake.conf)
    ready = ready_of(lake, of)
    monkeypatch.setattr(bronze, "append_pieces", refuse)
    with pytest.raises(OSError, match="full"):
        hand_over(lake, [ready], nullcontext())
    monkeypatch.undo()
    take(lake)
    columns = ["source", "topic", "partition", "first_offset", "last_offset", "bronze_batch"]
    assert table(lake.conf, "ops.gaps")[columns].to_numpy().tolist() == [["plant", topic, 0, 1, 2, 1]]
    assert sorted(table(lake.conf, "bronze.events")["payload"]) == [b"1", b"4"]


def refuse(*_: Any, **__: Any) -> None:
    raise OSError("the disk is full")


CANARY = "canary-4711"


def test_a_secret_is_in_no_error_no_notice_and_no_commit(
    running: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kafka_client, "PATIENCE_SECONDS", 1.0)
    monkeypatch.setenv("OF_KAFKA", CANARY)
    (tmp_path / "secret").write_text(f"{CANARY}\n")
    security = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "plant"}
    refused = [
        security | {"sasl.password": "${env:OF_KAFKA}"},
        security | {"sasl.password": f"${{file:{tmp_path}/secret}}"},
        {"security.protocol": "${env:OF_KAFKA}"},
        {"security.protocol": "SSL", "ssl.key.pem": "${env:OF_KAFKA}", "ssl.certificate.pem": "${env:OF_KAFKA}"},
        {"client.id": "${env:NOT_THERE}"},
        {"client.id": f"${{file:{tmp_path}/not-there}}"},
    ]
    said = []
    for options in refused:
        with pytest.raises(SourceDownError) as error:
            Kafka("plant", KafkaTopics(running.servers, (topic,), options=options), 1).latest_offset({})
        said.append(f"{error.value}{error.getrepr(chain=True)}")
    assert "needs the variable NOT_THERE for kafka.options.client.id, and it is not there; set it" in said[-2]
    running.send(topic, [b"1"])
    lake = lake_of(tmp_path, running, topic, options={"client.id": "${env:OF_KAFKA}"})
    take(lake)
    events = lake.tables["bronze.events"].location
    said += [log_of(events, version).local.read_text() for version in range(version_of(events) + 1)]
    said += [repr(sources(lake.conf)), *capfd.readouterr()]
    assert [text for text in said if CANARY in text] == []
