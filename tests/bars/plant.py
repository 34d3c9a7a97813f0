"""The plant of the bars: a source of each kind, a simulator, devices that do as a fault says, and who receives messages."""

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from botocore.exceptions import BotoCoreError, ClientError
from confluent_kafka import Producer

from orchestration.conf.load import load
from orchestration.connectors.simulator.landing import Landing, at_rate
from orchestration.connectors.simulator.plan import WITHOUT_END, Odds, plan
from tests.broker import Broker
from tests.disk import Disk
from tests.http_server import Receiver, receiving
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.server_process import free_ports
from tests.services import status_of

ROUND_SECONDS = 0.5
NAMES = {"device": {"field": "device"}, "time": {"field": "ts"}}
LONG = {"format": "json", **NAMES, "metric": {"field": "metric"}, "value": {"field": "value"}}
UNITS = {**LONG, "unit": {"field": "unit"}}
WIDE = {"format": "json", **NAMES, "metrics": {"temperature": "t", "humidity": "h"}}
SOURCE_OF = {
    **dict.fromkeys(("press-1", "press-2", "press-3", "PMP-11"), "line"),
    "probe": "probes",
    "oven": "lost",
    "scale": "units",
    "tape": "archive",
    "bus": "fleet",
    "store": "bucket",
    **dict.fromkeys(("web-1", "web-2"), "web"),
}
"""By device: PMP-11 is not declared. The devices of the simulator are all others."""
SIMULATED = ("sim-1", "sim-2", "sim-3", "sim-4")
Line = dict[str, object]


@dataclass
class Devices:
    """How the hand-made devices speak now; a fault changes it, and its end changes it back."""

    silent: set[str] = field(default_factory=lambda: {"PMP-11"})
    shift: dict[str, timedelta] = field(default_factory=lambda: {"probe": timedelta(hours=-3)})
    is_stuck: bool = False
    names: dict[str, str] = field(default_factory=lambda: {"humidity": "h", "unit": "unit"})
    spike: float | None = None
    _number: int = 0

    def lines(self, device: str) -> list[Line]:
        """The events of a round. A stuck probe speaks twenty times as fast as time goes, so that nobody waits for five minutes."""
        if device in self.silent:
            return []
        self._number += 1
        at = datetime.now(UTC) + self.shift.get(device, timedelta())
        count = 20 if SOURCE_OF[device] in ("probes", "units") else 2
        moments = [at + timedelta(milliseconds=n * ROUND_SECONDS * 1000 / count) for n in range(count)]
        if device == "probe" and self.is_stuck:
            self.shift[device] = self.shift.get(device, timedelta()) + timedelta(seconds=20 * ROUND_SECONDS)
        return [self._line(device, moment, n) for n, moment in enumerate(moments)]

    def _line(self, device: str, at: datetime, number: int) -> Line:
        ts, value = at.isoformat(timespec="milliseconds"), 20.0 + (self._number + number) % 7
        if SOURCE_OF[device] == "line":
            return {"device": device, "ts": ts, "t": value, self.names["humidity"]: 2 * value}
        value = 21.5 if device == "probe" and self.is_stuck else value
        if device == "tape" and self.spike is not None:
            value, self.spike = self.spike, None
        line: Line = {"device": device, "ts": ts, "metric": "temperature", "value": value}
        return line | {self.names["unit"]: "degC"} if SOURCE_OF[device] == "units" else line


@dataclass
class Plant:
    """`folder`: of conf, lake and landing folders. `warehouse`: the sink. `on_call`, `pager`: channels; the latter is put out of order."""

    folder: Path
    broker: Broker
    store: Store
    bucket: str
    disk: Disk
    on_call: Receiver
    pager: Receiver
    warehouse: Receiver
    port: int
    page: str
    devices: Devices = field(default_factory=Devices)
    is_asleep: set[str] = field(default_factory=set)
    """Sources that nobody sends to: their server is gone."""
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def conf(self) -> Path:
        return self.folder / "conf"

    @contextmanager
    def fed(self) -> Iterator[None]:
        """Until the block ends; an error of a feed is raised there."""
        with ThreadPoolExecutor(2, "feed") as threads:
            running = [threads.submit(feed) for feed in (self._simulate, self._feed)]
            try:
                yield
            finally:
                self.stop.set()
        for feed in running:
            feed.result()

    def _simulate(self) -> None:
        conf = load(self.conf)
        odds = Odds(late=0, malformed=0, future=0, offline=0)  # of these the quiet hour tells
        devices = [conf.devices[name] for name in SIMULATED]
        made = plan(conf, devices, events=WITHOUT_END, seed=1, start=datetime.now(UTC), interval_seconds=1.0, shape="long", odds=odds)
        at_rate(made, Landing(self.folder / "plant", made), self.stop, lambda _: None)

    def _feed(self) -> None:
        producer, number = Producer({"bootstrap.servers": self.broker.servers, "log_level": 0}), 0
        while not self.stop.wait(ROUND_SECONDS):
            number += 1
            by_source = defaultdict[str, list[Line]](list)
            for device, source in SOURCE_OF.items():
                by_source[source] += self.devices.lines(device)
            for source, lines in by_source.items():
                if lines and source not in self.is_asleep:
                    self._send(source, number, "".join(json.dumps(line) + "\n" for line in lines).encode(), producer)

    def _send(self, source: str, number: int, content: bytes, producer: Producer) -> None:
        if source == "fleet":
            for line in content.splitlines():
                producer.produce("fleet", line)
            producer.poll(0)
        elif source == "bucket":
            with suppress(BotoCoreError, ClientError):  # it may go at this very moment
                self.store.put(self.bucket, {f"{number:06}.jsonl": content})
        elif source == "web":
            status_of(f"http://127.0.0.1:{self.port}/events", content)
        elif (landing := self.folder / source).exists():
            hidden = landing / f".{number}"
            hidden.write_bytes(content)
            hidden.rename(landing / f"{number:06}.jsonl")


@contextmanager
def plant(folder: Path) -> Iterator[Plant]:
    """All of its servers run; all is gone behind it."""
    with ExitStack() as stack:
        for name in ("kafka", "s3"):
            (folder / name).mkdir()
        broker = stack.enter_context(Broker(folder / "kafka").running())
        store = stack.enter_context(Store(folder / "s3").running())
        broker.create("fleet")
        disk = Disk(folder / "lake")
        stack.callback(disk.close)
        on_call, pager, warehouse = (stack.enter_context(receiving()) for _ in range(3))
        port, page = free_ports(2)
        made = Plant(folder, broker, store, store.bucket(), disk, on_call, pager, warehouse, port, f"http://127.0.0.1:{page}")
        _write_conf(made, page)
        yield made


def _write_conf(made: Plant, page: int) -> None:
    s3 = {"bucket": made.bucket, "endpoint": made.store.endpoint, "list_seconds": 1}
    s3 |= {"access_key": "${env:S3_ACCESS_KEY}", "secret_key": "${env:S3_SECRET_KEY}"}
    folders = {"plant": UNITS, "line": WIDE, "probes": LONG, "lost": LONG, "units": UNITS, "archive": LONG}
    others = {"fleet": {"kafka": {"servers": made.broker.servers, "subscribe": ["fleet"]}, **LONG}}
    others |= {"bucket": {"s3": s3, **LONG}, "web": {"http": {"port": made.port}, **LONG}}
    metrics = {"temperature": {"unit": "degC"}, "humidity": {"unit": "%"}}
    suite = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "value", "max_value": 900}, "severity": "critical"}
    webhooks = {name: {"url": receiver.url} for name, receiver in (("on_call", made.on_call), ("pager", made.pager))}
    files = {
        "pipeline": {
            "pipeline": "bars",
            "lake": "./lake",
            "policy": {"lateness_seconds": 14_400, "max_future_seconds": 3_600 - 1},
            "engine": {"driver_memory": "1g", "trigger_seconds": 1},
            "page": {"port": page},
            "sinks": {"warehouse": {"table": "silver.readings", "webhook": {"url": made.warehouse.url}}},
            "quality": {"gates": {"silver.readings": "hold"}},
        },
        "metrics": {"metrics": {name: {**unit, "aggregation": "average", "step_seconds": 60} for name, unit in metrics.items()}},
        "devices": {"devices": {name: {"groups": ["all"]} for name in (*SIMULATED, *SOURCE_OF) if name != "PMP-11"}},
        "groups": {"groups": {"all": {"metrics": [*metrics]}}},
        "rules": {"rules": {}},
        "sources": {"sources": {name: {"path": f"./{name}", "settle_seconds": 0.5, **shape} for name, shape in folders.items()} | others},
        "alerts": {"channels": {name: {"webhook": url, "problems": True} for name, url in webhooks.items()}, "alerts": {}},
        "expectations/limits": {"table": "silver.readings", "expectations": [{**suite, "description": "No reading is above 900."}]},
    }
    for name, content in files.items():
        file = made.conf / f"{name}.yml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(content, sort_keys=False))
    for name in folders:
        (made.folder / name).mkdir()


def environment(made: Plant) -> dict[str, str]:
    return {"S3_ACCESS_KEY": ACCESS_KEY, "S3_SECRET_KEY": SECRET_KEY, "SPARK_LOCAL_DIRS": str(made.folder / "scratch")}
