"""Section `sinks` of pipeline.yml: what it cannot mean is one line each, with the way out, and no secret is shown."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.secrets import HINT, has_password
from orchestration.conf.sink_settings import PostgresSettings, SinkSettings
from tests.orchestration.conf.conftest import changed

OLD = "sinks: {}"
FILES = "files: {path: ./export}"
TO = "servers: 'b:9092', topic: t"
REFUSED = {
    "{table: silver.readings}": "x sets none of postgres, kafka, files, webhook, python; set one",
    f"{{table: silver.readings, {FILES}, python: 'a:b'}}": "x sets files and python; keep one of them",
    f"{{table: silver.reading, {FILES}}}": "x.table is 'silver.reading', which cannot be sent; did you mean 'silver.readings'?",
    f"{{table: gold.kitchen_vector, {FILES}}}": (
        "x.table is 'gold.kitchen_vector', which cannot be sent; did you mean 'gold.kitchen_vectors'?"
    ),
    f"{{table: bronze.events, {FILES}}}": (
        "x.table is 'bronze.events', which cannot be sent; name a table of silver, gold or marts, such as silver.readings"
    ),
    "{table: silver.quarantine, files: {path: ./export, format: csv}}": (
        "x.files is of CSV, which cannot hold the bytes of payload; set `binary: base64`, or `format: parquet`"
    ),
    "{table: silver.readings, files: {path: ./export, binary: base64}}": (
        "x.files.binary is for csv: Parquet has bytes as they are; remove it, or set `format: csv`"
    ),
    "{table: silver.readings, python: 'module.function'}": "x.python is 'module.function'; write module:function",
    "{table: silver.readings, files: {path: ./landing/export}}": (
        "sinks.x.files.path lies inside the folder of source plant; give each a folder of its own"
    ),
    "{table: silver.readings, files: {path: ./export, format: xml}}": "x.files.format is 'xml'; choose one of parquet, csv",
    "{table: silver.readings, postgres: {dsn: host=h, table: A.b}}": (
        "x.postgres.table is 'A.b'; write table or schema.table in lower case"
    ),
    "{table: silver.readings, webhook: {url: 'ftp://h/x'}}": (
        "x.webhook.url is not an address that begins with https:// or http://; write one"
    ),
    "{table: silver.readings, postgres: {dsn: '${PG}', table: b}}": f"x.postgres.dsn is a reference that cannot be followed; {HINT}",
    f"{{table: marts.daily, kafka: {{{TO}}}}}": "x.kafka has no key; name the columns that tell rows of the mart apart",
    f"{{table: silver.readings, kafka: {{{TO}, key: [part]}}}}": "x.kafka.key is for marts; remove it",
    f"{{table: silver.readings, kafka: {{{TO}, registry: {{url: 'http://r'}}}}}}": (
        "x.kafka.registry is for avro, but format is json; remove it, or set `format: avro`"
    ),
    f"{{table: silver.readings, kafka: {{{TO}, options: {{group.id: a}}}}}}": (
        "x.kafka.options.group.id is no option that may be set; what may be set is how to connect, such as security.protocol, "
        "sasl.username or ssl.ca.location"
    ),
    "{table: silver.readings, kafka: {servers: 'b:9092', topic: 'a b'}}": "x.kafka.topic is 'a b'; use letters, digits, dots, - and _",
}
SECRETS = [
    "postgres: {dsn: 'host=h password=canary', table: t}",
    "postgres: {dsn: 'host=h PASSWORD = canary', table: t}",
    "postgres: {dsn: 'postgresql://u:canary@h/db', table: t}",
    "postgres: {dsn: 'postgresql://h/db?user=u&password=canary', table: t}",
    "postgres: {dsn: 'postgresql://u:canary@[h/db', table: t}",
    "webhook: {url: 'https://u:canary@h/x'}",
    "kafka: {servers: h, topic: t, format: avro, registry: {url: 'https://u:canary@h/x'}}",
    "webhook: {url: 'https://h/x', token: canary}",
    'postgres: {dsn: "host=h\\npassword=canary", table: t}',
]


@pytest.mark.parametrize("sink", REFUSED)
def test_a_section_that_cannot_be_meant_is_one_line(sink: str, mistakes_after: Callable[..., list[str]]) -> None:
    (line,) = mistakes_after(("pipeline", OLD, f"sinks: {{x: {sink}}}"))
    assert line.split(": ", 1)[1].removeprefix("sinks.") == REFUSED[sink].removeprefix("sinks.")


def test_a_flow_and_alerts_can_be_sent_but_not_pairs(folder: Path, mistakes_after: Callable[..., list[str]]) -> None:
    pairs = "{join: {left: vibration, right: power, from_seconds: 0, until_seconds: 9}}"
    (folder / "flows.yml").write_text(f"flows:\n  heating: {{sessions: {{metric: power, gap_seconds: 120}}}}\n  answered: {pairs}\n")
    (folder / "alerts.yml").write_text("alerts: {hot: {reading: temperature, when: value > 1}}\n")
    sinks = ", ".join(f"{name}: {{table: gold.{name}, files: {{path: ./{name}}}}}" for name in ("heating", "alerts", "answered"))
    (line,) = mistakes_after(("pipeline", OLD, f"sinks: {{{sinks}}}"))
    assert "answered.table is 'gold.answered', which cannot be sent" in line


def test_the_example_of_the_page_has_no_mistake(folder: Path) -> None:
    page = (Path(__file__).parents[3] / "orchestration" / "connectors" / "sinks" / "README.md").read_text(encoding="utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0]
    changed(folder, "pipeline", OLD, example)
    assert [sink.target for sink in load(folder).sinks.values()] == [
        *("postgres public.kitchen", "kafka kitchen", "parquet files ./export", "webhook", "python plant_export:receive")
    ]


@pytest.mark.parametrize("target", SECRETS)
def test_a_secret_in_plain_text_is_refused_and_not_shown(target: str, mistakes_after: Callable[..., list[str]]) -> None:
    (line,) = mistakes_after(("pipeline", OLD, f"sinks: {{x: {{table: silver.readings, {target}}}}}"))
    assert "in plain text; write" in line
    assert "canary" not in line


@pytest.mark.parametrize("secret", ["options: {sasl.password: canary}", "format: avro, registry: {url: 'http://r', password: canary}"])
def test_a_secret_of_kafka_is_a_reference(secret: str, mistakes_after: Callable[..., list[str]]) -> None:
    (line,) = mistakes_after(("pipeline", OLD, f"sinks: {{x: {{table: silver.readings, kafka: {{{TO}, {secret}}}}}}}"))
    assert "write ${env:NAME} or ${file:PATH}" in line
    assert "canary" not in line


@pytest.mark.parametrize("dsn", ["host=h user=u passfile=/p", "postgresql://u@h:5432/db?sslmode=require", "service=plant"])
def test_a_connection_string_without_a_password_may_be_written_out(dsn: str) -> None:
    assert not has_password(dsn)


def test_a_reference_is_kept_as_it_is_written(folder: Path) -> None:
    changed(folder, "pipeline", OLD, "sinks: {w: {table: marts.daily, postgres: {dsn: '${env:PG_DSN}', table: public.daily}}}")
    assert load(folder).sinks == {
        "w": SinkSettings(table="marts.daily", postgres=PostgresSettings(dsn="${env:PG_DSN}", table="public.daily"))
    }
