"""The first run of an installation: a small one, whose classes every later run starts with (measured: 6 s less)."""

import io
import json
import os
import shutil
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path

from pyspark import SparkContext
from rich.console import Console

from orchestration.engine.java import MAKING, archive
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.flows import flows
from orchestration.supervisor.run import run_once


def make() -> None:
    """Run the starter conf over a few made-up events in a scratch folder and keep the classes of that run."""
    draft = archive().with_suffix(f".{os.getpid()}")
    os.environ[MAKING] = str(draft)
    with tempfile.TemporaryDirectory(prefix="tidemark-") as scratch, as_file(files("conf")) as starter:
        shutil.copytree(starter, Path(scratch) / "conf")
        _land(Path(scratch) / "landing")
        lake = Lake.open(Path(scratch) / "conf")
        with Progress([flow.name for flow in flows(lake)], Console(file=io.StringIO())) as progress:
            run_once(lake, flows(lake), progress, threading.Event())
        # The JVM writes the archive when it ends, and it ends when its input does.
        jvm = SparkContext._gateway.proc  # type: ignore[union-attr]
        jvm.stdin.close()
        jvm.wait(timeout=120)
    draft.replace(archive())


def _land(folder: Path) -> None:
    """Five hours of one device: enough to close windows of every step."""
    folder.mkdir()
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = [(start + timedelta(minutes=n)).isoformat() for n in range(300)]
    events = [{"device": "oven-01", "metric": metric, "value": 1, "ts": time} for time in times for metric in ("temperature", "power")]
    (folder / "events.json").write_text("".join(json.dumps(event) + "\n" for event in events))


if __name__ == "__main__":
    make()
