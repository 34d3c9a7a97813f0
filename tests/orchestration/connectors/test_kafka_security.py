"""Kafka over TLS, with and without a password, as a source and as a sink: what is right works, what is wrong is told without secrets."""

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from orchestration.conf.transport_settings import KafkaSettings
from orchestration.connectors.sources.kafka import Kafka
from tests.broker import PASSWORD, Broker, refusal
from tests.certificates import self_signed
from tests.orchestration.connectors.sinks.small_lake import AGGREGATES, SmallLake, windows

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate")
SASL = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "plant", "sasl.password": "${env:OF_KAFKA}"}
Way = Callable[[Path, str, str, Mapping[str, str]], int]
"""To read or write a topic of servers; how many messages that were."""


def by_source(folder: Path, servers: str, topic: str, options: dict[str, str]) -> int:
    of = Kafka("plant", KafkaSettings(servers, (topic,), options=options), 1 << 30)
    end = of.latest_offset({})
    return sum(len(table) for partition in of.partitions({}, end) for table in of.read(partition))


def by_sink(folder: Path, servers: str, topic: str, options: dict[str, str]) -> int:
    kafka = {"servers": servers, "topic": topic, "options": options}
    lake = SmallLake(folder / uuid4().hex, {"out": {"table": AGGREGATES, "kafka": kafka}})
    lake.write(AGGREGATES, [*windows(0, range(3))]).pin(0)
    sent = lake.step()
    return sent.rows if sent else 0


WAYS = pytest.mark.parametrize("way", [by_source, by_sink])


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_KAFKA", PASSWORD)


@WAYS
def test_the_right_authority_and_password_open_the_broker(tmp_path: Path, running: Broker, topic: str, way: Way) -> None:
    authority = {"ssl.ca.location": str(running.certificate)}
    running.send(topic, [b"1", b"2", b"3"])
    assert way(tmp_path, running.tls_servers, topic, {"security.protocol": "SSL"} | authority) == 3
    running.create(f"{topic}-sasl")
    running.send(f"{topic}-sasl", [b"1", b"2", b"3"])
    assert way(tmp_path / "sasl", running.secure_tls_servers, f"{topic}-sasl", SASL | authority) == 3


@WAYS
def test_what_is_wrong_with_tls_or_the_password_is_told_without_secrets(
    tmp_path: Path, running: Broker, topic: str, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG", f"{PASSWORD}-wrong")
    strange, _ = self_signed(tmp_path, "strange")
    right, servers = {"ssl.ca.location": str(running.certificate)}, running.secure_tls_servers
    wrong = [
        ("certificate verify failed", SASL | {"ssl.ca.location": str(strange)}),
        ("Authentication failed", SASL | right | {"sasl.username": "stranger"}),
        ("Authentication failed", SASL | right | {"sasl.password": "${env:WRONG}"}),
        ("ssl.ca.location failed", SASL | {"ssl.ca.location": str(tmp_path / "absent")}),
        ("they do not answer", SASL | {"security.protocol": "SASL_PLAINTEXT"}),
    ]

    for number, (said, options) in enumerate(wrong):
        text = str(refusal(partial(way, tmp_path / str(number), servers, topic, options), said).getrepr(chain=True))
        assert said in text
        assert servers in text
        assert PASSWORD not in text
