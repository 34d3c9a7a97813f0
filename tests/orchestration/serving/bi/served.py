"""A small plant by conf alone, and a server of it as a real process."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from pyspark.sql import SparkSession

from orchestration.conf.starter import write_starter
from orchestration.engine.lake import Lake
from tests.lakes import land, run
from tests.rows import at
from tests.server_process import free_ports
from tests.waiting import PATIENCE_SECONDS, until

TIDEMARK = [sys.executable, "-c", "from orchestration.cli.app import main; main()", "--conf"]
START = at("2026-01-05T00:00:00")
"""Longer than any start."""
SECRET = "the plant's own secret"
GROUPS = """
groups:
  kitchen:
    metrics: [temperature, humidity]
    vector: {entity: device, features: [temperature, humidity], max_fill_seconds: 3600}
"""
DEVICES = "devices: {oven-01: {groups: [kitchen]}, fridge-01: {groups: [kitchen]}}\n"
ROWS = (
    "select snapshot_id from ops.this_snapshot",
    "select device_id, metric, cast(window_end as string) as ends, value, revision from gold.kitchen_aggregates order by 1, 2, 3",
    "select metric, count(*) as n, sum(value) as total from silver.readings join bronze.events using (bronze_batch, bronze_row) group by 1"
    " order by 1",
)


class Plant:
    """A folder with conf, landing and lake, and with a secret beside them."""

    def __init__(self, folder: Path) -> None:
        """Nothing has landed."""
        self.folder, self._files = folder, 0
        write_starter(folder / "conf")
        (folder / "conf" / "groups.yml").write_text(GROUPS)
        (folder / "conf" / "devices.yml").write_text(DEVICES)
        sources = folder / "conf" / "sources.yml"
        sources.write_text(sources.read_text().replace('    files: "*"\n', '    files: "*"\n    settle_seconds: 0\n'))
        pipeline = folder / "conf" / "pipeline.yml"
        pipeline.write_text(f"# {SECRET}\n{pipeline.read_text()}")
        (folder / "secret").write_text(SECRET)
        self.lake = folder / "lake"

    def opened(self, spark: SparkSession) -> Lake:
        """As tests read and write it."""
        return Lake(Lake.open(self.folder / "conf").conf, spark)

    def ingest(self, spark: SparkSession, files: int = 1) -> None:
        """Files, each up to its snapshot: half an hour of two devices, a row that comes twice, a broken one."""
        for _ in range(files):
            times = [START + timedelta(minutes=30 * self._files + minute) for minute in range(0, 30, 5)]
            rows = [
                line(device, metric, time)
                for time in times
                for device in ("oven-01", "fridge-01")
                for metric in ("temperature", "humidity")
            ]
            land(self.folder, f"{self._files:03d}.json", [*rows, rows[0], "{broken"])
            self._files += 1
            run(self.opened(spark).conf, spark)

    def digests(self) -> dict[str, str]:
        """What every file of the lake is, byte for byte."""
        files = [path for path in sorted(self.lake.rglob("*")) if path.is_file()]
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() + str(path.stat().st_mtime_ns) for path in files}


def line(device: str, metric: str, time: datetime) -> str:
    """An event in the form of the starter conf; values differ in every row."""
    value = 20 + time.minute / 10 + time.hour + len(device)
    return json.dumps({"device": device, "metric": metric, "value": value, "zone": "hall-1", "ts": time.isoformat()})


class Server:
    """`tidemark thrift-server` or `connect-server`."""

    def __init__(self, plant: Plant, command: str, *flags: str) -> None:
        """Comes back when clients are taken."""
        (self.port,) = free_ports(1)
        self._token_file = plant.folder / "token"
        call = [*TIDEMARK, str(plant.folder / "conf"), command, "--port", str(self.port), "--token-file", str(self._token_file)]
        surroundings = os.environ | {"SECRET": SECRET}
        self.process = subprocess.Popen([*call, "--memory", "1g", *flags], stderr=subprocess.PIPE, text=True, env=surroundings)
        self.said: list[str] = []
        self._listening = threading.Thread(target=self._listen)
        self._listening.start()
        until(self._serves, lambda: self.said)

    def _serves(self) -> bool:
        assert self.process.poll() is None, self.said
        return any("clients are served" in line for line in self.said)

    @property
    def token(self) -> str:
        """What clients say."""
        return self._token_file.read_text().strip()

    def family(self) -> list[int]:
        """Ids of all processes that it started."""
        processes = [self.process.pid]
        for process in processes:
            processes += [child for child, parent in parents().items() if parent == process]
        return processes[1:]

    def end(self, number: int) -> int:
        """Signal it; its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_SECONDS)
        self._listening.join()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stderr:
            self.said.extend(iter(stderr.readline, ""))


def parents() -> dict[int, int]:
    """Of every process that lives on this machine."""
    parent_of = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parent_of[int(stat.parent.name)] = int(parent)
    return parent_of


def are_gone(processes: list[int]) -> bool:
    """Returns once they are."""
    until(lambda: not set(processes) & set(parents()), lambda: processes)
    return True
