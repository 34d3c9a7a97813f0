"""Work beside the streaming queries, in threads of their own."""

import threading
import time
from collections.abc import Callable

from orchestration.engine.progress import Progress
from orchestration.flow import Job


class BackgroundTask:
    """Something done in a thread. What it raises comes out of `finish`."""

    def __init__(self, name: str, run_job: Callable[[], object]) -> None:
        """It starts now."""
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._to_the_end, args=(run_job,), name=name)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """Whether it still works."""
        return self._thread.is_alive()

    def finish(self) -> None:
        """Wait for its end."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _to_the_end(self, run_job: Callable[[], object]) -> None:
        try:
            run_job()
        except BaseException as error:
            self._error = error


def run_job(job: Job, progress: Progress, stop: threading.Event) -> None:
    """A job until it has nothing left to do, or after `stop` until it is between two steps."""
    begin = time.monotonic()
    for rows in job.run():
        progress.worked(job.name, rows, time.monotonic() - begin)
        if stop.is_set():
            return
        begin = time.monotonic()
