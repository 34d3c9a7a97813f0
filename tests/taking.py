"""What a run does before silver, without Spark: sources are brought to bronze, by this process, or by another one until it is killed."""

import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from orchestration.conf.model import Conf
from orchestration.connectors.sources.all import sources
from orchestration.connectors.sources.source import Source
from orchestration.jobs.bronze import CommittedBatch, commit_batch, poll
from orchestration.storage.tables import LakeStore, ensure


def opened(conf: Conf) -> LakeStore:
    lake = LakeStore(conf)
    ensure(lake.tables["bronze.events"])
    return lake


def take(lake: LakeStore, *chosen: Source) -> CommittedBatch | None:
    """What sources have, those of conf if none is named, in one batch."""
    ready = [batch for source in chosen or sources(lake.conf) if (batch := poll(lake, source))]
    return commit_batch(lake, ready, nullcontext()) if ready else None


def take_all(lake: LakeStore, *chosen: Source) -> None:
    """Until nothing is left."""
    chosen = chosen or tuple(sources(lake.conf))
    while take(lake, *chosen):
        pass


@contextmanager
def taking(conf: Conf) -> Iterator[None]:
    """A process that takes from all sources; it is killed with -9 behind it."""
    command = ["setpriv", "--pdeathsig=KILL", sys.executable, "-m", "tests.taking"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=Path(__file__).parents[1]) as process:
        try:
            assert process.stdin is not None
            process.stdin.write(pickle.dumps(conf))
            process.stdin.close()
            yield
            assert process.poll() is None
        finally:
            process.kill()


def take_until_killed(conf: Conf) -> None:
    lake, of_lake = LakeStore(conf), sources(conf)
    while True:
        for source in of_lake:
            if ready := poll(lake, source):
                commit_batch(lake, [ready], nullcontext())
        time.sleep(0.001)


if __name__ == "__main__":
    take_until_killed(pickle.load(sys.stdin.buffer))
