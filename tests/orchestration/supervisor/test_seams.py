"""Whatever throws in a source, sink, channel, suite, mart or schedule stops only itself: the run goes on, and the list of problems has it.

79 places throw. Sources, sinks and channels are those of the lake, whose other methods answer without a server.
"""

import importlib
import io
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from orchestration.conf.load import load
from orchestration.conf.model import Conf, GateMode, Quality, Source
from orchestration.conf.transport_settings import DeltaSettings, HttpSettings, KafkaSettings, LandingFolder, S3Settings
from orchestration.connectors.channels import alertmanager, apprise, webhook
from orchestration.connectors.channels import kafka as kafka_channel
from orchestration.connectors.sinks import files as file_sink
from orchestration.connectors.sinks import kafka as kafka_sink
from orchestration.connectors.sinks import postgres, python
from orchestration.connectors.sinks import webhook as webhook_sink
from orchestration.connectors.sources import delta, files, kafka, s3, spool
from orchestration.connectors.sources.all import sources
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import WriteBarrier
from orchestration.errors import TidemarkError
from orchestration.flow import Intake
from orchestration.jobs.bronze import EVENTS
from orchestration.service.jobs import Jobs
from orchestration.storage.commit import create
from orchestration.storage.ops_tables import LEDGER, LEDGER_SCHEMA
from orchestration.storage.payload_formats import remember
from orchestration.storage.tables import ensure
from orchestration.supervisor import status
from orchestration.supervisor.feeds import Feeds
from orchestration.supervisor.health import problems
from orchestration.supervisor.quality_gate import GateClosedError, QualityGate
from orchestration.supervisor.sinks import ChannelSender, SinkSender
from tests.collectors import write_conf
from tests.lakes import SHAPE, bare_conf, conf, land, table, write
from tests.orchestration.alerts.alert_lake import AlertLake, changed
from tests.orchestration.connectors.sinks.small_lake import AGGREGATES, NOW, SmallLake, windows
from tests.rows import INGESTED_AT, at

ERRORS = cycle((OSError, ValueError, RuntimeError, KeyError, TidemarkError, pa.ArrowInvalid, RecursionError, AssertionError))
OF_SOURCE = ("init", "latest_offset", "partitions", "read", "gaps", "ends", "odd", "notices", "unsettled", "stop_at_present")
OF_SINK, OF_CHANNEL = ("init", "last", "write"), ("init", "send")
SOURCES: Mapping[str, tuple[type[Any], Callable[[Path], Any]]] = {
    "files": (files.Files, lambda folder: LandingFolder(folder / "odd")),
    "delta": (delta.Delta, lambda folder: DeltaSettings(table=folder / "table")),
    "kafka": (kafka.Kafka, lambda _: KafkaSettings("127.0.0.1:1", ("t",))),
    "s3": (s3.S3, lambda _: S3Settings(bucket="plant")),
    "http": (spool.Spool, lambda _: HttpSettings(port=1)),
}
TARGETS: Mapping[str, tuple[type[Any], dict[str, Any]]] = {
    "postgres": (postgres.PostgresSink, {"dsn": "${env:ABSENT}", "table": "t"}),
    "kafka": (kafka_sink.KafkaSink, {"servers": "127.0.0.1:1", "topic": "t"}),
    "files": (file_sink.FileSink, {"path": "./export"}),
    "webhook": (webhook_sink.WebhookSink, {"url": "http://127.0.0.1:1"}),
    "python": (python.PythonSink, "a:b"),  # type: ignore[dict-item]
}
CHANNELS: Mapping[str, tuple[type[Any], Any]] = {
    "webhook": (webhook.WebhookChannel, {"url": "http://127.0.0.1:1"}),
    "kafka": (kafka_channel.KafkaChannel, {"servers": "127.0.0.1:1", "topic": "t"}),
    "alertmanager": (alertmanager.AlertmanagerChannel, {"url": "http://127.0.0.1:1"}),
    "apprise": (apprise.AppriseChannel, "${env:ABSENT}"),
}
PROGRESS = Progress([], Console(file=io.StringIO()))


def throwing(seam: str) -> Exception:
    """An error of some kind, another one for each place."""
    error: Exception = next(ERRORS)(f"thrown by {seam}")
    return error


def subjects(conf: Conf) -> set[str]:
    return {problem.subject for problem in problems(conf, at("12:00:00"))}


def rig(patched: pytest.MonkeyPatch, kind: type[Any], answers: Mapping[str, Any], seam_of: Callable[..., str | None]) -> None:
    """Let the methods of an odd object answer, but for the one that is its seam, which throws.

    `seam_of`: None for objects that are not odd. It gets the object, and what its constructor gets.
    """

    def rigged(method: str, answer: Any, original: Callable[..., Any]) -> Callable[..., Any]:
        def asked(made: Any, *arguments: Any) -> Any:
            if (seam := seam_of(made, *arguments)) is None or (method == "__init__" and seam != "init"):
                return original(made, *arguments)
            if seam in {method, method.strip("_")}:
                raise throwing(seam)
            return answer(*arguments) if callable(answer) else answer

        return asked

    for name, answer in {"__init__": None, **answers}.items():
        patched.setattr(kind, name, rigged(name, answer, getattr(kind, name)))


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_that_throws_anywhere_is_down_and_what_the_others_have_comes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, transport = SOURCES[name]
    odd = {f"odd_{seam}": Source(f"odd_{seam}", SHAPE, transport(tmp_path)) for seam in OF_SOURCE}
    good = Source("good", SHAPE, LandingFolder(tmp_path / "good", settle_seconds=0.0))
    lake = Lake(conf(tmp_path, sources={**odd, "good": good}))
    remember(lake.conf)
    ensure(lake.tables[EVENTS])
    land(tmp_path, "1.json", ["{}"], "good")
    answers = {
        "latest_offset": lambda _: {"n": 1},
        "partitions": lambda *_: [0],
        "read": lambda _: iter(()),
        "gaps": lambda *_: [],
        "ends": {},
        "odd": {},
        "notices": [],
        "unsettled": None,
        "stop_at_present": None,
    }

    def seam_of(made: Any, of_conf: object = None, *_: object) -> str | None:
        name = getattr(made, "name", of_conf)
        return name.removeprefix("odd_") if isinstance(name, str) and name in odd else None

    rig(monkeypatch, kind, answers, seam_of)
    monkeypatch.setattr("orchestration.connectors.sources.all._check_left", lambda *_: None)
    intake = Intake(EVENTS, (lake.tables[EVENTS],), sources=lambda: sources(lake.conf))
    Feeds(lake, intake, WriteBarrier(threading.Event()), PROGRESS).run_to_end()
    assert table(lake.conf, EVENTS).source.tolist() == ["good"]
    assert subjects(lake.conf) & {f"source {source}" for source in (*odd, "good")} == {f"source {source}" for source in odd}


def seam_by_thread(monkeypatch: pytest.MonkeyPatch, make: str) -> Callable[..., str | None]:
    """Note for which sink or channel a thread makes an object; returns the seam of an object, or of the one that is being made."""
    making, seams = threading.local(), dict[int, str]()
    module, name = make.rsplit(".", 1)
    original = getattr(importlib.import_module(module), name)

    def made(conf: Conf, target: str) -> Any:
        making.seam = target.rpartition("_")[2]
        one = original(conf, target)
        seams[id(one)] = making.seam
        return one

    monkeypatch.setattr(make, made)
    return lambda one, *_: seams.get(id(one), making.seam)


def test_a_sink_that_throws_anywhere_is_down_and_the_others_get_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = {
        f"{name}_{seam}": {"table": AGGREGATES, name: settings} for name, (_, settings) in TARGETS.items() for seam in (*OF_SINK, "good")
    }
    lake = SmallLake(tmp_path, declared)
    lake.write(AGGREGATES, [*windows(0, range(3))]).pin(0)
    seam_of = seam_by_thread(monkeypatch, "orchestration.supervisor.sinks.sink_of")
    for kind, _ in TARGETS.values():
        rig(monkeypatch, kind, {"last": lambda remembered: remembered, "write": lambda _, rows: bool(list(rows))}, seam_of)
    with pytest.raises(TidemarkError, match="Everything else is done"):
        SinkSender(lake.conf, PROGRESS, threading.Event()).run_to_end()
    assert {subject for subject in subjects(lake.conf) if subject.startswith("sink ")} == {
        f"sink {name}_{seam}" for name in TARGETS for seam in OF_SINK
    }
    assert [row["sink"] for row in status.sink_status(lake.conf, NOW) if row["snapshot"] is not None] == [
        f"{name}_good" for name in TARGETS
    ]


def test_a_channel_that_throws_anywhere_is_down_and_the_others_get_their_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = {f"{name}_{seam}": {name: settings} for name, (_, settings) in CHANNELS.items() for seam in (*OF_CHANNEL, "good")}
    lake = AlertLake(tmp_path, channels=declared).write(changed(0, "firing"))
    seam_of = seam_by_thread(monkeypatch, "orchestration.supervisor.sinks.channel_of")
    sent = list[object]()
    for kind, _ in CHANNELS.values():
        rig(monkeypatch, kind, {"send": sent.append}, seam_of)
    with pytest.raises(TidemarkError, match="Everything else is done"):
        ChannelSender(lake.conf, PROGRESS, threading.Event()).run_to_end()
    assert {subject for subject in subjects(lake.conf) if subject.startswith("channel ")} == {
        f"channel {name}_{seam}" for name in CHANNELS for seam in OF_CHANNEL
    }
    assert len(sent) == len(CHANNELS)


@pytest.mark.parametrize("seam", ["check.evaluate", "store.create_view"])
def test_a_suite_that_throws_closes_its_gate_and_ends_no_run(seam: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, told = Lake(bare_conf(tmp_path, quality=Quality(gates={"silver.readings": GateMode.HOLD}))), list[str]()
    create(lake.table_path(LEDGER), LEDGER_SCHEMA)
    write(lake, "silver.late")
    row = {"device_id": "oven", "metric": "temperature", "event_time": at("11:59:00"), "value": 1.0, "ingested_at": INGESTED_AT}
    write(lake, "silver.readings", row | {"bronze_batch": 0})

    def throw(*_: object) -> None:
        raise throwing(seam)

    gate = QualityGate(lake, threading.Event(), told.append)
    with monkeypatch.context() as patched:
        patched.setattr(f"orchestration.quality.{seam}", throw)
        assert not gate.is_open()
    assert (len(told), subjects(lake.conf) & {"gate silver.readings"}) == (1, {"gate silver.readings"})
    with pytest.raises(GateClosedError, match=r"silver\.readings cannot be checked, so gold is not updated"):
        gate.refuse_closed()
    gate.is_open()
    assert [problem for problem in problems(lake.conf, NOW) if "cannot be checked" in problem.sentence] == []


@pytest.mark.parametrize("seam", ["orchestration.jobs.sinks.pinned_table", "orchestration.supervisor.status.newest_table"])
def test_a_mart_that_throws_is_of_its_sink_alone(seam: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = SmallLake(
        tmp_path, {name: {"table": table, "files": {"path": name}} for name, table in (("odd", "marts.a"), ("good", AGGREGATES))}
    )
    lake.write(AGGREGATES, [*windows(0, range(3))]).pin(0)
    module, name = seam.rsplit(".", 1)
    original = getattr(importlib.import_module(module), name)

    def throw(conf: Conf, named: str, *more: Any) -> Any:
        if named in {"marts.a", "odd"}:
            raise throwing(seam)
        return original(conf, named, *more)

    monkeypatch.setattr(seam, throw)
    with suppress(TidemarkError):
        SinkSender(lake.conf, PROGRESS, threading.Event()).run_to_end()
    assert subjects(lake.conf) & {"sink odd", "sink good"} == {"sink odd"}
    assert {row["sink"]: row["snapshot"] for row in status.sink_status(lake.conf, NOW)} == {"odd": None, "good": 0}


@pytest.mark.parametrize("seam", ["orchestration.service.jobs.Command", "orchestration.storage.snapshots.find_snapshot"])
def test_a_schedule_that_throws_before_it_begins_broke_and_others_begin(seam: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_conf(tmp_path, plant="path: ./landing")
    with (folder / "pipeline.yml").open("a") as file:
        file.write('schedules: {odd: {cron: "0 * * * *", command: verify}, other: {cron: "0 * * * *", command: ledger}}\n')
    made, said = load(folder), list[str]()
    jobs = Jobs(made, lambda _, line: said.append(line))
    jobs.look(at("11:50:00"))
    monkeypatch.setattr(seam, lambda *_: (_ for _ in ()).throw(throwing(seam)))
    jobs.look(at("12:00:00"))
    assert subjects(made) >= {"job odd", "job other"}
    assert {line.partition(":")[0] for line in said if "broke before it began" in line} == {"odd", "other"}
