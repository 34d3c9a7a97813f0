"""Payloads of Avro, Protobuf and Sparkplug B through all layers; the registry stands in for a real one, which test_schemas has."""

import io
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from orchestration.conf.model import Conf, Source
from orchestration.conf.transport_settings import HttpSettings
from orchestration.connectors.sources.source import SourceDownError
from orchestration.connectors.sources.spool_records import encoded, segment_file
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.jobs.account.retry import Chosen
from orchestration.jobs.gold.amendments import NAME
from orchestration.storage.lake_layout import spool_folder
from orchestration.supervisor.run import retry_quarantine
from silver.decoders.sparkplug_b import Payload
from silver.spec import DECLARED, Origin, PayloadFormat, Registry, Time
from tests.binary_formats import READING, avro, files, framed, message_class
from tests.lakes import KITCHEN, conf, minutes, run, run_until, table
from tests.orchestration.test_kafka_flows import account_of
from tests.registry import StandIn, stand_in
from tests.rows import at

START = at("2026-01-05T00:00:00")
LONG: dict[str, Any] = {"metric": Origin(field="metric"), "value": "value"}
MARK = b"\x01mark\xff\n\x00"


@pytest.fixture
def registry() -> Iterator[StandIn]:
    with stand_in() as running:
        running.schemas[1] = {"schema": json.dumps(READING)}
        yield running


@pytest.fixture
def made(tmp_path: Path, registry: StandIn) -> Conf:
    """Three sources, one of each format; their events are in spools."""
    shapes = {
        "fleet": PayloadFormat("avro", Origin(field="device"), Time("ts", "epoch_ms"), registry=Registry(registry.url), **LONG),
        "line": PayloadFormat(
            "protobuf", Origin(field="device"), Time("ts"), message="plant.Reading", schemas={DECLARED: files("plant")}, **LONG
        ),
        "edge": PayloadFormat(
            "sparkplug_b",
            Origin(constant="press"),
            Time("each.timestamp", "epoch_ms"),
            metric=Origin(field="each.name"),
            value=Origin("each.value"),
            each="metrics",
        ),
    }
    return conf(
        tmp_path, sources={name: Source(name, shape, HttpSettings(port=0)) for name, shape in shapes.items()}, groups={"kitchen": KITCHEN}
    )


def push(made: Conf, source: str, payloads: Sequence[bytes]) -> None:
    """As a collector has them on the disk."""
    folder = spool_folder(made.lake, source).local
    folder.mkdir(parents=True, exist_ok=True)
    number = len(list(folder.iterdir()))
    segment_file(folder, number).write_bytes(MARK + encoded(MARK, 1_767_571_200_000_000, f"request/{number}-1", 1, list(payloads)))


def of_avro(schema: int, times: Sequence[datetime]) -> list[bytes]:
    rows = [{"device": "oven", "metric": "temperature", "value": float(n), "ts": _millis(time)} for n, time in enumerate(times)]
    return [framed(schema, avro(READING, row)) for row in rows]


def of_protobuf(times: Sequence[datetime]) -> list[bytes]:
    messages = [message_class("plant", "Reading")(device="fridge", metric=1, value=float(n)) for n in range(len(times))]
    for message, time in zip(messages, times, strict=True):
        message.ts.FromDatetime(time)
    return [message.SerializeToString() for message in messages]


def of_sparkplug(times: Sequence[datetime]) -> bytes:
    payload: Any = Payload()
    for n, time in enumerate(times):
        payload.metrics.add(name="vibration", timestamp=_millis(time), datatype=10, double_value=float(n))
    payload.metrics.add(alias=3, timestamp=_millis(times[0]), double_value=1.0)
    content: bytes = payload.SerializeToString()
    return content


def _millis(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def test_events_of_three_formats_are_accounted_for_and_verified_and_need_no_registry_later(
    spark: SparkSession, made: Conf, registry: StandIn
) -> None:
    push(made, "fleet", [*of_avro(1, minutes(START, 31)), *of_avro(99, minutes(START, 2)), b"", b"\0\0", b"\1rubbish", b"\0\0\0\0\1\xff"])
    push(made, "line", [*of_protobuf(minutes(START, 31)), b"\xff"])
    push(made, "edge", [of_sparkplug(minutes(START, 31)), b"STATE"])
    run(made, spark)
    expected = {"fleet": (37, 31, 5, 0, 0), "line": (32, 31, 1, 0, 0), "edge": (2, 31, 2, 0, 0)}
    assert account_of(made) == expected
    reasons = (
        table(made, "silver.quarantine").groupby("source")["broken_rules"].apply(lambda rules: sorted({one for of in rules for one in of}))
    )
    assert reasons["fleet"] == ["payload_is_readable", "something_is_measured"]
    assert reasons["edge"] == ["metric_is_present", "payload_is_readable"]
    assert sorted(registry.asked) == ["/schemas/ids/1", "/schemas/ids/99"]

    # What nobody knows waits for the registry, and keeps no other source waiting; the account and verify need none.
    registry.answer = 503, {}
    push(made, "fleet", of_avro(3, minutes(at("2026-01-05T00:31:00"), 2)))
    push(made, "line", of_protobuf(minutes(at("2026-01-05T00:31:00"), 1)))
    with pytest.raises(
        SourceDownError, match=r"source fleet cannot be read, as its registry at http://127.* tells no schemas: it answers 503"
    ):
        run(made, spark)
    assert account_of(made) == expected | {"line": (33, 32, 1, 0, 0)}
    registry.answer = None
    registry.schemas |= {3: registry.schemas[1], 99: registry.schemas[1]}
    run(made, spark)
    assert account_of(made) == expected | {"line": (33, 32, 1, 0, 0), "fleet": (39, 33, 5, 0, 0)}

    # A retry asks again for what the registry did not know: the first of the two is a duplicate.
    with Progress([NAME], Console(file=io.StringIO())) as progress:
        (row,) = [row for row in retry_quarantine(Lake(made, spark), Chosen(), progress) if row["source"] == "fleet"]
    assert (row["events"], row["readmitted"], row["duplicates"], row["quarantined"]) == (6, 0, 2, 4)
    assert account_of(made)["fleet"] == (39, 33, 3, 0, 2)


@pytest.mark.slow
def test_an_id_that_comes_up_while_a_run_goes_on_is_read_at_once(spark: SparkSession, made: Conf, registry: StandIn) -> None:
    push(made, "fleet", of_avro(1, minutes(START, 3)))

    def is_done() -> bool:
        location = made.lake.local / "silver" / "readings"
        count = len(table(made, "silver.readings")) if (location / "_delta_log" / "00000000000000000000.json").exists() else 0
        if count == 3 and 2 not in registry.schemas:
            registry.schemas[2] = {"schema": json.dumps({**READING, "fields": [*READING["fields"], {"name": "more", "type": "int"}]})}
            later = [
                {"device": "oven", "metric": "temperature", "value": 1.0, "ts": _millis(time), "more": 5}
                for time in minutes(at("2026-01-05T00:05:00"), 2)
            ]
            push(made, "fleet", [framed(2, avro(json.loads(registry.schemas[2]["schema"]), row)) for row in later])
        return count >= 5

    run_until(made, spark, is_done)
    run(made, spark)
    assert account_of(made) == {"fleet": (5, 5, 0, 0, 0)}
