"""Jobs at work: in threads beside the streaming queries, each ending after the step that it is in."""

import threading
import time

from orchestration.flows import Job
from orchestration.progress import Progress


class Work:
    """A job at work. What it raises comes out of `finish`."""

    def __init__(self, job: Job, progress: Progress, stop: threading.Event) -> None:
        """It starts now, and ends when nothing is left to do or after `stop`."""
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._to_the_end, args=(job, progress, stop), name=job.name)
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

    def _to_the_end(self, job: Job, progress: Progress, stop: threading.Event) -> None:
        begin = time.monotonic()
        try:
            for rows in job.run():
                progress.worked(job.name, rows, time.monotonic() - begin)
                if stop.is_set():
                    break
                begin = time.monotonic()
        except BaseException as error:
            self._error = error
