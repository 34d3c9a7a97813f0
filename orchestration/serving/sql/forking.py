"""The process that forks the workers, with what they import already there. It starts while whoever needs them loads the rest."""

import multiprocessing
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext


def forking() -> ForkServerContext:
    """Where workers are started, each in a few milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "orchestration.serving.sql.workers", "orchestration.conf.place", "pyarrow.compute"])
    return context


def start() -> None:
    """Begin, and do not wait for it."""
    forking()
    forkserver.ensure_running()
