"""What a Kafka source hands over to bronze: all of it once, whatever is killed, gaps as rows, and no secret."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestration.conf.model import Source
from orchestration.conf.transport_settings import KafkaSettings
from orchestration.connectors import kafka_client
from orchestration.connectors.sources import kafka
from orchestration.connectors.sources.all import sources
from orchestration.connectors.sources.kafka import Kafka
from orchestration.connectors.sources.source import SourceDownError
from orchestration.jobs import bronze
from orchestration.jobs.bronze import PendingBatch, commit_batch, poll
from orchestration.storage.delta import log_of, version_of
from orchestration.storage.tables import LakeStore
from tests.broker import PASSWORD, Broker, impatient, refusal
from tests.lakes import SHAPE, conf, table
from tests.taking import opened, take_all


def lake_of(folder: Path, running: Broker, topic: str, *, is_secure: bool = False, **more: Any) -> LakeStore:
    """A lake that is fed by the topic."""
    servers = running.secure_servers if is_secure else running.servers
    return opened(conf(folder, sources={"plant": Source("plant", SHAPE, KafkaSettings(servers, (topic,), **more))}))


def take(lake: LakeStore, of: Any = None) -> None:
    """Until nothing is left, by default with a client that has just been started."""
    take_all(lake, of or sources(lake.conf)[0])


def ready_of(lake: LakeStore, of: Any) -> PendingBatch:
    """What it has, which is something."""
    ready = poll(lake, of)
    assert ready is not None
    return ready


def test_a_broker_that_is_killed_while_it_is_read_costs_and_doubles_nothing(
    running: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(tmp_path, running, topic)
    monkeypatch.setattr(kafka, "MAX_MESSAGES", 4_000)
    monkeypatch.setattr(kafka_client, "MESSAGES_AT_ONCE", 100)
    monkeypatch.setitem(kafka_client.READER, "queued.max.messages.kbytes", 1024)  # so that the client has not all 8 MB before the kill
    payloads = [b"%05d" % n + b"x" * 2_000 for n in range(10_000)]
    running.send(topic, payloads[:9_000])
    (of,) = sources(lake.conf)
    ready = ready_of(lake, of)
    commit_batch(lake, [ready], nullcontext())
    assert isinstance(of, Kafka)
    start = ready.end
    (part,) = of.partitions(start, of.latest_offset(start))
    pieces = of.read(part)
    next(pieces)
    running.kill()
    with impatient():
        with pytest.raises(SourceDownError, match="cannot be read from the brokers"):
            for _ in pieces:
                pass
        with pytest.raises(SourceDownError, match=f"source plant cannot be read from the brokers {running.servers}: "):
            poll(lake, of)
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
        commit_batch(lake, [ready], nullcontext())
    monkeypatch.undo()
    take(lake)
    columns = ["source", "topic", "partition", "first_offset", "last_offset", "bronze_batch"]
    assert table(lake.conf, "ops.gaps")[columns].to_numpy().tolist() == [["plant", topic, 0, 1, 2, 1]]
    assert sorted(table(lake.conf, "bronze.events")["payload"]) == [b"1", b"4"]


def refuse(*_: Any, **__: Any) -> None:
    raise OSError("the disk is full")


PLAIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "plant"}
FROM_VARIABLE = "${env:OF_KAFKA}"
REFUSED: dict[str, dict[str, str]] = {
    "Authentication failed": PLAIN | {"sasl.password": FROM_VARIABLE, "sasl.username": "stranger"},
    "security.protocol": {"security.protocol": FROM_VARIABLE},
    "ssl.certificate.pem": {"security.protocol": "SSL", "ssl.key.pem": FROM_VARIABLE, "ssl.certificate.pem": FROM_VARIABLE},
    "the brokers": {"client.id": FROM_VARIABLE},  # they ask for a password
    "for kafka.options.client.id, ${env:NOT_THERE}, which sources.yml names, is missing": {"client.id": "${env:NOT_THERE}"},
    "sasl.password, ${file:/not-there}, which": PLAIN | {"client.id": FROM_VARIABLE, "sasl.password": "${file:/not-there}"},
}


def test_a_secret_opens_the_broker_and_is_in_no_error_and_no_commit(
    running: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OF_KAFKA", PASSWORD)
    said = []
    for text, options in REFUSED.items():
        of = Kafka("plant", KafkaSettings(running.secure_servers, (topic,), options=options), 1)
        error = refusal(partial(of.latest_offset, {}), text)
        assert text in str(error.value)
        said.append(str(error.getrepr(chain=True)))
    running.send(topic, [b"1"])
    (tmp_path / "secret").write_text(f"{PASSWORD}\n")
    for n, reference in enumerate((FROM_VARIABLE, f"${{file:{tmp_path}/secret}}")):
        lake = lake_of(tmp_path / str(n), running, topic, is_secure=True, options=PLAIN | {"sasl.password": reference})
        take(lake)
        events = lake.tables["bronze.events"].location
        assert table(lake.conf, "bronze.events")["payload"].tolist() == [b"1"]
        said += [log_of(events, version).local.read_text() for version in range(version_of(events) + 1)]
        said += [repr(lake.conf), repr(sources(lake.conf))]
    assert [text for text in (*said, *capfd.readouterr()) if PASSWORD in text] == []
