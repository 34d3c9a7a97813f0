"""How events come is said exactly once, with the settings that belong to it; a secret is a reference, and shown nowhere."""

import dataclasses
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.transport_settings import (
    ClientTlsSettings,
    DeltaSettings,
    HttpSettings,
    KafkaSettings,
    KinesisSettings,
    MqttSettings,
    S3Settings,
    TcpSettings,
    TlsSettings,
)
from orchestration.errors import TidemarkError
from orchestration.secrets import aws_keys, secret
from tests.collectors import write_conf
from tests.orchestration.conf.conftest import changed, mistakes_of

HINT = "write ${env:NAME} or ${file:PATH}, so that conf, logs and messages hold no secret"


def mqtt(settings: str) -> str:
    return f"mqtt: {{broker: 'b:1', {settings}}}"


REFUSED = {
    "files: '*'": "plant sets none of path, kafka, s3, delta, http, tcp, mqtt, kinesis; set one",
    "path: ./landing, http: {port: 1}": "plant sets path and http; keep one of them",
    "http: {port: 1}, tcp: {port: 2}": "plant sets http and tcp; keep one of them",
    "http: {}": "plant.http.port is missing; add for example `port: 8080`",
    "tcp: {port: 70000}": "plant.tcp.port is 70000; it must be at most 65535",
    "tcp: {port: 1}, files: '*.json'": "plant.files is for files, but events come by tcp; remove it",
    "http: {port: 1}, settle_seconds: 1": "plant.settle_seconds is for files, but events come by http; remove it",
    "http: {port: 1}, format: csv, header: true, columns: [device, ts, metric, value]": (
        "plant.header is for files, but events come by http; name the columns in plant.columns"
    ),
    "http: {port: 1}, zone: {file_name: '(.*)'}": "plant.zone.file_name is for files, but events come by http; take a field or a constant",
    "http: {port: 1, token: hunter2}": f"plant.http.token is a secret in plain text; {HINT}",
    "tcp: {port: 1, key: '${HUNTER2}'}": f"plant.tcp.key is a secret in plain text; {HINT}",
    "tcp: {port: 1, tls: {certificate: '${NOT_THERE_AT_ALL}/a', key: a}}": (
        "plant.tcp.tls.certificate names the variable NOT_THERE_AT_ALL, which is not set; set it, or write the path out"
    ),
    "tcp: {port: 1, tls: {certificate: a.crt}}": "plant.tcp.tls.key is missing; add for example `key: ./tls/server.key`",
    "tcp: {port: 1}, zone: {topic: 1}": "plant.zone.topic is for MQTT and Kafka, but events come by tcp; take a field or a constant",
    "path: ./a, zone: {topic: 1}": "plant.zone.topic is for MQTT and Kafka, but events come by path; take a field or a constant",
    "kafka: {servers: b, subscribe: [a]}, zone: {topic: 2}": "plant.zone.topic is 2, but a topic of Kafka has one level; write 1",
    mqtt("topics: [a/+, b]") + ", zone: {topic: 3}": (
        "plant.zone.topic is 3, but no topic of plant.mqtt.topics has more than 2; write 1 to 2"
    ),
    "mqtt: {topics: [a]}": "plant.mqtt.broker is missing; add for example `broker: broker-1:1883`",
    "mqtt: {broker: b, topics: [a]}": "plant.mqtt.broker is 'b'; write host:port, such as broker-1:1883",
    "mqtt: {broker: 'b:70000', topics: [a]}": "plant.mqtt.broker is 'b:70000'; a port is at most 65535",
    mqtt("topics: ['a/#/b']"): "plant.mqtt.topics names 'a/#/b'; # stands alone, as the last level",
    mqtt("topics: ['a#']"): "plant.mqtt.topics names 'a#'; # stands alone, as the last level",
    mqtt("topics: ['a/b+']"): "plant.mqtt.topics names 'a/b+'; + stands alone, as a whole level",
    mqtt("topics: ['$share/x/a']"): (
        "plant.mqtt.topics names '$share/x/a'; write the filter alone, and the name of the group as shared_group"
    ),
    mqtt("topics: [a], password: hunter2, username: b"): f"plant.mqtt.password is a secret in plain text; {HINT}",
    mqtt("topics: [a], password: '${env:A}'"): "plant.mqtt.password is set without a username; name the user",
    mqtt("topics: [a], shared_group: x"): (
        "plant.mqtt.shared_group is set without a client_id; give each collector of the group one of its own"
    ),
    mqtt("topics: [a], shared_group: x/y, client_id: z"): "plant.mqtt.shared_group is 'x/y'; write a name without /, + and #",
    mqtt("topics: [a], tls: {certificate: a.crt}"): "plant.mqtt.tls has one of certificate and key; set both",
    "kinesis: {stream: a, starting: never}": (
        "plant.kinesis.starting is 'never'; write earliest, latest or an instant such as 2026-01-05T00:00:00Z"
    ),
    "kinesis: {stream: a, access_key: '${env:A}'}": "plant.kinesis sets one of access_key and secret_key; set both, or none",
    "kinesis: {stream: a}, zone: {topic: 1}": (
        "plant.zone.topic is for MQTT and Kafka, but events come by kinesis; take a field or a constant"
    ),
    mqtt("topics: [a], version: v4"): "plant.mqtt.version is 'v4'; choose one of v5, v3.1.1",
}


@pytest.mark.parametrize("transport", REFUSED)
def test_what_does_not_fit_is_one_line(transport: str, tmp_path: Path) -> None:
    conf = write_conf(tmp_path, plant=transport)
    assert mistakes_of(conf) == [f"{conf}/sources.yml:2: {REFUSED[transport]}"]


def test_two_sources_cannot_listen_on_one_port(tmp_path: Path) -> None:
    conf = write_conf(tmp_path, plant="tcp: {port: 9000}", annex="http: {port: 9000}", free="http: {port: 0}", other="http: {port: 0}")
    (mistake,) = mistakes_of(conf)
    assert mistake.endswith("annex.http.port is 9000, on which plant listens too; choose another")


def test_endpoints_are_as_conf_says_and_hold_references_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_A_TEST", "hunter2")
    tls = "tls: {certificate: tls/a.crt, key: '${HOME}/a.key'}"
    made = load(write_conf(tmp_path, web=f"http: {{port: 1, token: '${{env:OF_A_TEST}}', {tls}}}", line="tcp: {port: 2, framing: length}"))
    assert made.sources["line"].transport == TcpSettings(port=2, framing="length")
    expected = HttpSettings(port=1, token="${env:OF_A_TEST}", tls=TlsSettings(tmp_path / "tls/a.crt", Path.home() / "a.key"))
    assert made.sources["web"].transport == expected
    assert "hunter2" not in str(made)


def test_a_broker_is_as_conf_says_and_has_a_client_id_of_its_own_for_each_source(tmp_path: Path) -> None:
    more = mqtt("topics: ['plant/+', '#'], tls: {ca: tls/ca.crt}, username: a, password: '${env:NOT_THERE}', client_id: c, version: v3.1.1")
    made = load(write_conf(tmp_path, hall="mqtt: {broker: '[::1]:1883', topics: [a]}", yard=more)).sources
    assert made["hall"].transport == MqttSettings(broker="[::1]:1883", topics=("a",), client_id="tidemark-test-hall")
    tls = ClientTlsSettings(tmp_path / "tls/ca.crt")
    expected = MqttSettings(
        broker="b:1",
        topics=("plant/+", "#"),
        client_id="c",
        version="v3.1.1",
        username="a",
        password="${env:NOT_THERE}",
        tls=tls,
    )
    assert made["yard"].transport == expected


def test_a_stream_is_as_conf_says(tmp_path: Path) -> None:
    made = load(write_conf(tmp_path, hall="kinesis: {stream: a, starting: '2026-01-05T00:00:00Z'}")).sources
    assert made["hall"].transport == KinesisSettings(stream="a", starting=datetime(2026, 1, 5, tzinfo=UTC))


def test_two_sources_cannot_be_one_client_of_a_broker(tmp_path: Path) -> None:
    (mistake,) = mistakes_of(write_conf(tmp_path, hall=mqtt("topics: [a], client_id: c"), yard=mqtt("topics: [b], client_id: c")))
    assert mistake.endswith("yard.mqtt.client_id is 'c', which hall has at this broker too; choose another")


def test_references_lead_to_a_variable_or_a_file_beside_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_A_TEST", "hunter2")
    (tmp_path / "token.txt").write_text("hunter3\n")
    keys = "access_key: '${env:OF_A_TEST}', secret_key: '${file:token.txt}'"
    transport = load(write_conf(tmp_path, hall=f"kinesis: {{stream: a, {keys}}}")).sources["hall"].transport
    assert isinstance(transport, KinesisSettings)
    assert aws_keys(transport) == {"aws_access_key_id": "hunter2", "aws_secret_access_key": "hunter3"}


@pytest.mark.parametrize("reference", ["env:NOT_THERE_AT_ALL", "file:not/there.txt", "file:binary", "file:empty"])
def test_a_reference_that_leads_nowhere_says_so_without_what_it_found(
    reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary").write_bytes(b"hunter2\xff")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(TidemarkError, match="is missing or empty; set it for this process") as found:
        secret(f"${{{reference}}}")
    assert "hunter2" not in str(found.value)


KAFKA = "kafka: {servers: 'localhost:9092', subscribe: [readings]}"
OF_FILES = 'path: ./landing\n    files: "*"'


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


CONTRADICTIONS = {
    "s3: {prefix: a}": "plant.s3.bucket is missing",
    "s3: {bucket: a, access_key: '${env:KEY}'}": "plant.s3 sets one of access_key and secret_key; set both, or none",
    "s3: {bucket: a, access_key: AKIA, secret_key: '${env:KEY}'}": "plant.s3.access_key",
    "s3: {bucket: a, endpoint: 'http://user:secret@localhost'}": "plant.s3.endpoint",
    "s3: {bucket: a}\n    path: ./landing": "plant sets path and s3; keep one of them",
}


def test_parquet_is_for_files_and_has_no_csv_settings(mistakes_after: Callable[..., list[str]]) -> None:
    changes = (("sources", OF_FILES, "tcp: {port: 9000}\n    separator: ','"), ("sources", "format: json", "format: parquet"))
    said = "\n".join(mistakes_after(*changes))
    assert "plant.format is parquet, which is for files and objects, but events come by tcp; choose another" in said
    assert "plant.separator is for csv, but plant.format is parquet; remove it" in said


def test_a_delta_table_is_read_as_json_and_lies_outside_of_the_lake(folder: Path, mistakes_after: Callable[..., list[str]]) -> None:
    changed(folder, "sources", OF_FILES, "delta: {table: ./warehouse/readings, starting_version: 3}")
    assert load(folder).sources["plant"].transport == DeltaSettings(table=Path.cwd() / "warehouse/readings", starting_version=3)
    (line,) = mistakes_after(("sources", "./warehouse", "./lake"))
    assert "plant.delta.table lies inside the folder of the lake; give each a folder of its own" in line


@pytest.mark.parametrize(("written", "text"), CONTRADICTIONS.items())
def test_a_contradiction_is_told(written: str, text: str, folder: Path, mistakes_after: Callable[..., list[str]]) -> None:
    lines = [line.split(": ", 1)[1] for line in mistakes_after(("sources", OF_FILES, written))]
    assert [line for line in lines if line.startswith(text)]


def test_objects_are_read_as_declared_and_named_as_files_are(folder: Path) -> None:
    keys = "access_key: '${env:A}', secret_key: '${file:b.txt}'"
    changed(folder, "sources", OF_FILES, f"s3: {{bucket: events, prefix: in/, files: '*.gz', endpoint: 'http://localhost:9000', {keys}}}")
    changed(folder, "sources", "device: {field: device}", "device: {file_name: '/([^/]+)@'}")
    assert mistakes_of(folder) == []
    secret = f"${{file:{Path.cwd()}/b.txt}}"
    assert load(folder).sources["plant"].transport == S3Settings(
        bucket="events",
        prefix="in/",
        files="*.gz",
        endpoint="http://localhost:9000",
        access_key="${env:A}",
        secret_key=secret,
    )
