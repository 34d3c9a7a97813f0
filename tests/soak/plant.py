"""The plant of a soak: a conf with three sources and a sink, the servers that these need, and for root a disk for the lake alone."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from orchestration.conf.load import load
from orchestration.conf.model import Conf
from orchestration.conf.starter import write_starter
from tests.disk import Disk
from tests.object_store import ACCESS_KEY, SECRET_KEY, Store
from tests.orchestration.connectors.sinks.postgres_server import PostgresServer
from tests.server_process import free_ports

SINK_TABLE = "gold.kitchen_aggregates"
SHAPE = {
    "format": "json",
    "device": {"field": "device"},
    "time": {"field": "ts"},
    "metric": {"field": "metric"},
    "value": {"field": "value"},
}
OTHER_DEVICES = {"web": "web-01", "bucket": "store-01"}
"""By source: who speaks by HTTP, and who puts objects. All other devices are simulated and land files."""


@dataclass(frozen=True)
class Plant:
    """`store` and `database`: servers of the source `bucket` and of the sink `warehouse`. `port`: that of the collector."""

    folder: Path
    disk: Disk
    store: Store
    bucket: str
    database: PostgresServer
    port: int
    page: str

    @property
    def conf_folder(self) -> Path:
        return self.folder / "conf"

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    @property
    def conf(self) -> Conf:
        return load(self.conf_folder)

    @property
    def environment(self) -> Mapping[str, str]:
        """Of each process that runs the plant. What a killed Spark leaves behind goes away with the folder."""
        keys = {"S3_ACCESS_KEY": ACCESS_KEY, "S3_SECRET_KEY": SECRET_KEY}
        return {"PG_DSN": self.database.dsn, "SPARK_LOCAL_DIRS": str(self.folder / "scratch"), **keys}


@contextmanager
def plant(folder: Path) -> Iterator[Plant]:
    """All of its servers run; all is gone behind it."""
    with ExitStack() as stack:
        (folder / "store").mkdir()
        store = stack.enter_context(Store(folder / "store").running())
        database = stack.enter_context(PostgresServer().running())
        stack.callback(_continue, store)
        disk = Disk(folder / "lake")
        stack.callback(disk.close)
        port, page = free_ports(2)
        made = Plant(folder, disk, store, store.bucket(), database, port, f"http://127.0.0.1:{page}")
        _write_conf(made, page)
        (folder / "landing").mkdir()
        yield made


def _continue(store: Store) -> None:
    """A stopped one would not end."""
    if store.process is not None and store.process.poll() is None:
        os.kill(store.process.pid, signal.SIGCONT)


def _write_conf(plant: Plant, page: int) -> None:
    write_starter(plant.conf_folder)
    s3 = {"bucket": plant.bucket, "endpoint": plant.store.endpoint, "list_seconds": 2}
    s3 |= {"access_key": "${env:S3_ACCESS_KEY}", "secret_key": "${env:S3_SECRET_KEY}"}
    others = {"web": {"http": {"port": plant.port}, **SHAPE}, "bucket": {"s3": s3, **SHAPE}}
    _change(plant.conf_folder / "sources.yml", "sources", others)
    _change(plant.conf_folder / "devices.yml", "devices", {name: {"groups": ["kitchen"]} for name in OTHER_DEVICES.values()})
    pipeline = plant.conf_folder / "pipeline.yml"
    _change(pipeline, "engine", {"driver_memory": "1g", "trigger_seconds": 2})
    _change(pipeline, "maintenance", {"every_seconds": 120, "retain_seconds": 3600})
    _change(pipeline, "page", {"port": page})
    _change(pipeline, "sinks", {"warehouse": {"table": SINK_TABLE, "postgres": {"dsn": "${env:PG_DSN}", "table": "kitchen"}}})


def _change(file: Path, section: str, changes: Mapping[str, Any]) -> None:
    content = yaml.safe_load(file.read_text())
    content[section] |= changes
    file.write_text(yaml.safe_dump(content, sort_keys=False))
