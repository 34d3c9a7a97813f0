"""Five sources at once: a broker that is killed, or a pause, holds up no other; `tidemark status` says what is down, and since when."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestration.cli.app import exit_code
from orchestration.conf.load import load
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import WriteBarrier
from orchestration.flows import bronze_events
from orchestration.jobs.bronze import EVENTS
from orchestration.storage.tables import ensure
from orchestration.supervisor.feeds import Feeds
from tests.broker import Broker, impatient
from tests.collectors import Collector, collecting, spooled, write_conf
from tests.lakes import land, table
from tests.mosquitto import Mosquitto, mosquitto
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.services import status_of
from tests.waiting import until

OTHERS = ("plant", "web", "hall", "archive")
"""Files, HTTP, MQTT and objects, beside Kafka in `fleet`."""


@dataclass
class Servers:
    """Where events are sent to, but for those of Kafka."""

    collector: Collector
    broker: Mosquitto
    store: Store
    bucket: str


@pytest.fixture
def servers(tmp_path: Path, running: Broker, topic: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    monkeypatch.setenv("KEY_OF_S3", ACCESS_KEY)
    monkeypatch.setenv("SECRET_OF_S3", SECRET_KEY)
    bucket = store.bucket()
    keys = "access_key: '${env:KEY_OF_S3}', secret_key: '${env:SECRET_OF_S3}'"
    with mosquitto(tmp_path / "broker") as broker:
        made = write_conf(
            tmp_path,
            plant="path: ./landing, settle_seconds: 0",
            web="http: {port: 0}",
            hall=f"mqtt: {{broker: '{broker.address}', topics: [hall]}}",
            archive=f"s3: {{bucket: {bucket}, endpoint: '{store.endpoint}', list_seconds: 0, {keys}}}",
            fleet=f"kafka: {{servers: '{running.servers}', subscribe: [{topic}]}}",
        )
        with (made / "pipeline.yml").open("a") as pipeline:
            pipeline.write("engine: {trigger_seconds: 0.2}\n")
        with collecting(made) as collector:
            collector.says("messages come from mqtt")
            yield Servers(collector, broker, store, bucket)


def post(collector: Collector, event: bytes) -> None:
    assert status_of(f"http://127.0.0.1:{collector.ports['web']}/events", event, {"Content-Type": "application/json"}) == 202


@dataclass
class Plant:
    """Bronze fed by a file, a request, a message and an object for each event. `told`: what the run has said."""

    servers: Servers
    lake: Lake
    sent: int = 0
    told: list[str] = field(default_factory=list)

    def send(self, count: int) -> None:
        of = self.servers
        events = {f"{number}.json": b'{"n": %d}' % number for number in range(self.sent, self.sent + count)}
        for name, event in events.items():
            land(of.collector.folder, name, [event])
            post(of.collector, event)
        of.broker.publish([("hall", event) for event in events.values()])
        of.store.put(of.bucket, events)
        self.sent += count

    def has(self, of_fleet: int) -> bool:
        """Whether bronze has all that was sent, and so many messages."""
        counts = table(self.lake.conf, EVENTS)["source"].value_counts().to_dict()
        return bool(counts == dict.fromkeys(OTHERS, self.sent) | {"fleet": of_fleet})

    def sources(self, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
        """By `tidemark status`."""
        capsys.readouterr()
        code = exit_code(["--conf", str(self.lake.conf.folder), "status", "sources", "--format", "json"])
        rows = {row["source"]: row for row in json.loads(capsys.readouterr().out)}
        assert code == int(any(row["state"] == "down" for row in rows.values()))
        return rows


@pytest.fixture
def plant(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plant]:
    """While its sources are followed."""
    made, stop, progress = Plant(servers, Lake(load(servers.collector.folder / "conf"))), threading.Event(), Progress([EVENTS])
    ensure(made.lake.tables[EVENTS])
    monkeypatch.setattr(progress, "notice", lambda notice: made.told.append(notice.what))
    feeds = Feeds(made.lake, bronze_events(made.lake), WriteBarrier(stop), progress)
    feeds.start(is_followed=False)
    yield made
    stop.set()
    feeds.join()


@pytest.mark.mosquitto
def test_with_the_broker_killed_four_other_sources_go_on_and_status_says_what_is_down(
    plant: Plant, running: Broker, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    running.send(topic, [b'{"n": 0}'])
    plant.send(3)
    until(lambda: plant.has(1))
    assert {row["state"] for row in plant.sources(capsys).values()} == {"up"}
    with impatient():
        running.kill()
        until(lambda: plant.told == ["source is down"])
        for _ in range(5):
            plant.send(2)
            until(lambda: plant.has(1))
        rows = plant.sources(capsys)
    kinds = {name: (row["kind"], row["state"]) for name, row in rows.items()}
    kinds_of_others = dict(zip(OTHERS, ("files", "http", "mqtt", "s3"), strict=True))
    assert kinds == {name: (kind, "up") for name, kind in kinds_of_others.items()} | {"fleet": ("kafka", "down")}
    assert rows["fleet"]["down_since"] is not None
    assert rows["fleet"]["reason"].startswith(f"source fleet cannot be read from the brokers {running.servers}: ")
    assert (rows["fleet"]["offset"], rows["plant"]["rows_last_hour"]) == (f"{topic}/0 1", 13)
    running.start()
    running.send(topic, [b'{"n": 1}'])
    until(lambda: plant.has(2) and plant.told == ["source is down", "source is up again"])
    assert {row["state"] for row in plant.sources(capsys).values()} == {"up"}


def test_while_a_source_is_paused_its_collector_goes_on_to_acknowledge_and_spool(tmp_path: Path) -> None:
    with collecting(write_conf(tmp_path, web="http: {port: 0}, paused: true")) as collector:
        post(collector, b'{"n": 1}')
    assert [payload for _, payload in spooled(tmp_path, "web")] == [b'{"n": 1}']
