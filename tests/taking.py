"""Sources that a process of its own brings to bronze until it is killed; what a run does before silver, without Spark."""

import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from orchestration.conf.model import Conf
from orchestration.connectors.sources.all import sources
from orchestration.jobs.bronze import commit_batch, poll
from orchestration.storage.tables import LakeStore


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
