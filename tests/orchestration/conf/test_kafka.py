"""A source that reads Kafka: what its settings mean, and that a secret is nowhere in a conf."""

import dataclasses
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.transport_settings import KafkaSettings
from tests.orchestration.conf.conftest import changed, mistakes_of

KAFKA = "    kafka: {servers: 'localhost:9092', subscribe: [readings]}\n"
OF_FILES = '    path: ./landing\n    files: "*"\n'


def test_topics_are_read_as_declared(folder: Path) -> None:
    options = "{security.protocol: SASL_SSL, sasl.password: '${file:secret.txt}', sasl.username: '${env:USER_OF_KAFKA}'}"
    more = f"starting: 2026-01-05T00:00:00Z, starting_offsets: {{readings: {{0: 12}}}}, options: {options}"
    changed(folder, "sources", OF_FILES, KAFKA.replace("}", f", {more}}}"))
    assert mistakes_of(folder) == []
    assert load(folder).sources["plant"].transport == KafkaSettings(
        "localhost:9092",
        subscribe=("readings",),
        starting=datetime(2026, 1, 5, tzinfo=UTC),
        starting_offsets={"readings": {"0": 12}},
        options={
            "security.protocol": "SASL_SSL",
            "sasl.password": f"${{file:{Path.cwd() / 'secret.txt'}}}",
            "sasl.username": "${env:USER_OF_KAFKA}",
        },
    )


@pytest.mark.parametrize("number", [0, 1], ids=["Kafka", "Event Hubs"])
def test_the_examples_of_the_page_are_sources(folder: Path, number: int) -> None:
    page = (Path(__file__).parents[3] / "bronze/README.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    (folder / "sources.yml").write_text(blocks[number])
    assert mistakes_of(folder) == []


def test_a_secret_is_in_no_conf(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "canary-4711")
    changed(folder, "sources", OF_FILES, KAFKA.replace("}", ", options: {sasl.password: '${env:KAFKA_PASSWORD}'}}"))
    conf = load(folder)
    assert "canary-4711" not in repr(conf) + repr(dataclasses.asdict(conf))
