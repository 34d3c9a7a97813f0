"""Check section `sinks` of pipeline.yml: tables that can be sent, one target each, and no secret in plain text."""

import re
from collections.abc import Iterator, Mapping

from expectations.settings import Step
from expectations.wording import hint, quoted
from orchestration.conf.kafka_options import OF_SINK, check_options
from orchestration.conf.names import Declared
from orchestration.conf.sink_settings import SinkSettings, TopicSettings
from orchestration.conf.structure import Finding

SILVER = ("silver.readings", "silver.quarantine", "silver.late", "silver.duplicates")
MART = re.compile("marts[.][a-z_][a-z0-9_]*")


def check_sinks(sinks: Mapping[str, SinkSettings], declared: Declared) -> Iterator[Finding]:
    for name, sink in sinks.items():
        path: tuple[Step, ...] = ("sinks", name)
        yield from _check_table((*path, "table"), sink.table, declared)
        if sink.kafka:
            yield from _check_topic((*path, "kafka"), sink.kafka, is_mart=MART.fullmatch(sink.table) is not None)


def _check_table(path: tuple[Step, ...], table: str, declared: Declared) -> Iterator[Finding]:
    names = [*SILVER, *declared.of_gold, *declared.of_flows]
    is_readable = None not in (declared.entries["groups"], declared.entries["flows"])
    if table not in names and not MART.fullmatch(table) and (is_readable or not table.startswith("gold.")):
        remedy = hint(table, names, "name a table of silver, gold or marts, such as silver.readings")
        yield Finding.of(path, f"is {quoted(table)}, which cannot be sent; {remedy}")


def _check_topic(path: tuple[Step, ...], kafka: TopicSettings, *, is_mart: bool) -> Iterator[Finding]:
    yield from check_options((*path, "options"), kafka.options, OF_SINK)
    if is_mart != bool(kafka.key):
        problem = "has no key; name the columns that tell rows of the mart apart" if is_mart else "is for marts; remove it"
        yield Finding.of(path if is_mart else (*path, "key"), problem)
    if kafka.registry and kafka.format == "json":
        yield Finding.of((*path, "registry"), "is for avro, but format is json; remove it, or set `format: avro`")
