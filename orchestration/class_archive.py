"""A class-data archive: the classes of Spark and Delta as the JVM left them after a small run, mapped into memory at the next start.

Made once on a machine by `make install` (measured: a small run takes 6 s less). The JVM checks that the archive fits its own
version and every jar, and does without it otherwise; so does Tidemark where there is none.
"""

import io
import json
import os
import shutil
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path

from rich.console import Console

from orchestration.jars import cache

MAKING = "TIDEMARK_CLASS_ARCHIVE"
"""Names the file that the JVM of this process is to leave its classes in."""
QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def archive() -> Path:
    """Where the archive is, whether it exists or not."""
    return cache() / "classes.jsa"


def class_archive_option() -> str:
    """What to tell the JVM: to leave an archive at its end, to use the one there is, or nothing."""
    if made := os.environ.get(MAKING):
        return f"{QUIET} -XX:ArchiveClassesAtExit={made}"
    return f"{QUIET} -XX:SharedArchiveFile={archive()}" if archive().exists() else ""


def make() -> None:
    """Run the starter conf over a few made-up events in a scratch folder and keep the classes of that run."""
    from pyspark import SparkContext

    from orchestration.flows import flows
    from orchestration.lake import Lake
    from orchestration.progress import Progress
    from orchestration.runner import run_once

    draft = archive().with_suffix(f".{os.getpid()}")
    os.environ[MAKING] = str(draft)
    with tempfile.TemporaryDirectory(prefix="tidemark-") as scratch, as_file(files("conf")) as starter:
        shutil.copytree(starter, Path(scratch) / "conf")
        _land(Path(scratch) / "landing")
        lake = Lake.open(Path(scratch) / "conf")
        with Progress([flow.name for flow in flows(lake)], Console(file=io.StringIO())) as progress:
            run_once(lake, flows(lake), progress, threading.Event())
        # The JVM writes the archive when it ends, and it ends when its input does.
        SparkContext._gateway.shutdown_callback_server()  # type: ignore[union-attr]
        jvm = SparkContext._gateway.proc  # type: ignore[union-attr]
        jvm.stdin.close()
        jvm.wait()
    draft.replace(archive())


def _land(folder: Path) -> None:
    """Five hours of one device: enough to close windows of every step."""
    folder.mkdir()
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = [(start + timedelta(minutes=n)).isoformat() for n in range(300)]
    events = [{"device": "oven-01", "metric": metric, "value": 1, "ts": time} for time in times for metric in ("temperature", "power")]
    (folder / "events.json").write_text("".join(json.dumps(event) + "\n" for event in events))


if __name__ == "__main__":
    if not archive().exists():
        make()
