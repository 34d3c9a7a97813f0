"""A source that reads Kafka: what its settings mean, and that a secret is nowhere in a conf."""

import dataclasses
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.transport_settings import KafkaSettings
from tests.orchestration.conf.conftest import changed, mistakes_of

KAFKA = "    kafka: {servers: 'localhost:9092', subscribe: [readings]}\n"
OF_FILES = '    path: ./landing\n    files: "*"\n'
CASES = [
    pytest.param(
        "",
        "plant does not say how its events come; set path (a landing folder), kafka, s3, delta, http, tcp, mqtt or kinesis",
        7,
        id="neither",
    ),
    pytest.param(OF_FILES + KAFKA, "plant sets path and kafka; keep one of them", 10, id="both"),
    pytest.param(KAFKA + '    files: "*"\n', "plant.files is for files, but events come by kafka; remove it", 9, id="glob on files"),
    pytest.param(
        KAFKA + "    settle_seconds: 2\n",
        "plant.settle_seconds is for files, but events come by kafka; remove it",
        9,
        id="files that settle",
    ),
    pytest.param(
        "    kafka: {subscribe: [readings]}\n",
        "plant.kafka.servers is missing; add for example `servers: broker-1:9092,broker-2:9092`",
        8,
        id="no servers",
    ),
    pytest.param(
        "    kafka: {servers: 'localhost:9092'}\n",
        "plant.kafka names no topic; set one of subscribe, subscribe_pattern, assign",
        8,
        id="no topic",
    ),
    pytest.param(
        "    kafka: {servers: 'localhost:9092', subscribe: [a], assign: {a: [0]}}\n",
        "plant.kafka sets subscribe and assign; keep one of them",
        8,
        id="topics in two ways",
    ),
    pytest.param(
        "    kafka: {servers: 'localhost:9092', subscribe_pattern: 'plant-['}\n",
        "plant.kafka.subscribe_pattern is 'plant-[', which is no regular expression (unterminated character set at position 6); correct it",
        8,
        id="pattern that is none",
    ),
    pytest.param(
        KAFKA.replace("}", ", starting: erliest}"), "plant.kafka.starting is 'erliest'; did you mean 'earliest'?", 8, id="unknown start"
    ),
    pytest.param(
        KAFKA.replace("}", ", starting_offsets: {readings: {first: 3}}}"),
        "'first' cannot be a name here; write the number of a partition",
        8,
        id="partition that is no number",
    ),
    pytest.param(
        KAFKA.replace("}", ", options: {isolation.level: read_uncommitted}}"),
        (
            "plant.kafka.options.isolation.level is no option that may be set; what may be set is how to connect, such as "
            "security.protocol, sasl.username or ssl.ca.location"
        ),
        8,
        id="option that decides what is read",
    ),
    pytest.param(
        KAFKA.replace("}", ", options: {sasl.mechansm: PLAIN}}"),
        "plant.kafka.options.sasl.mechansm is no option that may be set; did you mean 'sasl.mechanism'?",
        8,
        id="option with a slip",
    ),
    pytest.param(
        KAFKA.replace("}", ", options: {sasl.password: geheim}}"),
        ("plant.kafka.options.sasl.password is a secret, which must not stand in a file of the conf; write ${env:NAME} or ${file:PATH}"),
        8,
        id="secret in the file",
    ),
    pytest.param(
        KAFKA.replace("}", ", options: {client.id: 'a${env:B}'}}"),
        "plant.kafka.options.client.id holds a $ that names nothing; write ${env:NAME} or ${file:PATH} and nothing beside it",
        8,
        id="reference with more beside it",
    ),
]


@pytest.mark.parametrize(("written", "text", "line"), CASES)
def test_a_contradiction_is_told_on_its_line(written: str, text: str, line: int, mistakes_after: Callable[..., list[str]]) -> None:
    assert mistakes_after(("sources", OF_FILES, written)) == [f"conf/sources.yml:{line}: {text}"]


def test_what_only_files_have_is_refused(mistakes_after: Callable[..., list[str]]) -> None:
    changes = (("sources", OF_FILES, KAFKA), ("sources", "device: {field: device}", "device: {file_name: '^(.+)$'}"))
    assert mistakes_after(*changes) == [
        "conf/sources.yml:10: plant.device.file_name is for files, but events come by kafka; take a field or a constant"
    ]


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
