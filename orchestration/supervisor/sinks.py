"""Sinks beside a run: each is sent to in a thread of its own, so that one that is slow, or down, keeps nothing else from going on."""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from orchestration.conf.model import Conf
from orchestration.connectors.sinks.all import sinks
from orchestration.connectors.sinks.sink import Sink
from orchestration.engine.progress import Progress
from orchestration.errors import TidemarkError
from orchestration.jobs.sinks import send
from orchestration.supervisor.outages import Outages

FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 60.0
"""After a failure, and each time twice as long."""
LOOK_SECONDS = 10.0
"""Marts are built by another process, which wakes nobody."""


class Deliveries:
    """Of one run, by sinks of its conf. `run_to_end` for a run that ends, `start` for one that goes on."""

    def __init__(self, conf: Conf, progress: Progress, stop: threading.Event, declared: Mapping[str, Sink] | None = None) -> None:
        """Nothing happens yet. `declared`: instead of those of the conf."""
        self._conf, self._progress, self._stop = conf, progress, stop
        self._outages = Outages(conf.lake, "sink", progress.notice)
        self._sinks = sinks(conf) if declared is None else declared
        self._wakes = {name: threading.Event() for name in self._sinks}
        self._threads = [threading.Thread(target=self._follow, args=[name], name=f"sink {name}", daemon=True) for name in self._sinks]

    def run_to_end(self) -> None:
        """Until every sink has the newest snapshot; then a TidemarkError if one is down."""
        with ThreadPoolExecutor(max(len(self._sinks), 1), "sink") as threads:
            down = [reason for reason in threads.map(self._attempt, self._sinks) if reason is not None]
        if down:
            hint = "Everything else is done; the next run sends what is missing."
            raise TidemarkError("\n  ".join([*down, hint]))

    def start(self) -> None:
        """Until the run is told to stop."""
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """There is a snapshot, or the run ends."""
        for event in self._wakes.values():
            event.set()

    def join(self, seconds: float | None = None) -> None:
        """Wait for the batches that are being sent; after so many seconds leave those that hang: they are sent again, as after a kill."""
        for thread in self._threads:
            if thread.is_alive():
                thread.join(seconds)

    def _follow(self, name: str) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stop.is_set():
            self._wakes[name].clear()
            if self._attempt(name) is None:
                pause = FIRST_PAUSE_SECONDS
                self._wakes[name].wait(LOOK_SECONDS)
            else:
                self._stop.wait(pause)
                pause = min(2 * pause, MAX_PAUSE_SECONDS)

    def _attempt(self, name: str) -> str | None:
        """Send all that there is; what is wrong, in a sentence, where that did not work."""
        try:
            while not self._stop.is_set() and (sent := send(self._conf, name, self._sinks[name], datetime.now(UTC))):
                self._outages.answered(name)
                if sent.rows:
                    self._progress.sent(name, sent.snapshot_id, sent.rows, sent.seconds)
            self._outages.answered(name)
        except Exception as error:
            reason = f"sink {name}: {error if isinstance(error, TidemarkError) else type(error).__name__}"
            self._outages.failed(name, reason)
            return reason
        return None
