"""The sources of a run feed bronze, each in a thread of its own: one that is slow, or down, keeps no other from going on."""

import time
from concurrent.futures import Future, ThreadPoolExecutor

from orchestration.connectors.sources.source import Notice, Source
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import WriteBarrier
from orchestration.flow import Intake
from orchestration.jobs.bronze import EVENTS, HandOver, hand_over
from orchestration.storage.positions import is_begun_by_silver


class Feeds:
    """Of one intake. `run_to_end` for a run that ends, `start` for one that goes on."""

    def __init__(self, lake: Lake, intake: Intake, barrier: WriteBarrier, progress: Progress) -> None:
        """Nothing happens yet."""
        self._lake, self._intake, self._barrier, self._progress = lake, intake, barrier, progress
        self._running: list[Future[None]] = []
        self._is_followed = False

    def run_to_end(self) -> None:
        """Until no source has more; what is half there gets the time to settle, once."""
        sources = self._intake.sources()
        with ThreadPoolExecutor(len(sources), "source") as threads:
            self._running = [threads.submit(self._drain, source) for source in sources]
        self.join()
        self._progress.ended(self._intake.name)

    def start(self, *, is_followed: bool) -> None:
        """Until the barrier is told to stop. `is_followed`: silver runs too."""
        sources, self._is_followed = self._intake.sources(), is_followed
        threads = ThreadPoolExecutor(len(sources), "source")
        self._running = [threads.submit(self._follow, source) for source in sources]

    def raise_if_broken(self) -> None:
        """What ended a source."""
        for feed in self._running:
            if feed.done():
                feed.result()

    def join(self) -> None:
        """Wait for what they are at, and raise what ended one."""
        for feed in self._running:
            feed.result()

    def _drain(self, source: Source) -> None:
        if unsettled := source.unsettled():
            self._barrier.stop.wait(unsettled.seconds)
        while not self._barrier.stop.is_set() and self._hand_over(source) is not None:
            pass
        if unsettled := source.unsettled():
            for name in unsettled.names:
                reason = "it is still being written; the next run reads it"
                self._progress.notice(Notice("file left out", {"file": name, "reason": reason}))

    def _follow(self, source: Source) -> None:
        """A batch of bronze is one of silver: where silver is slow, they grow."""
        last: HandOver | None = None
        pause = self._lake.conf.engine.trigger_seconds
        while not self._barrier.stop.is_set():
            begin = time.monotonic()
            is_welcome = last is None or not self._is_followed or is_begun_by_silver(self._lake, last.version)
            handed = self._hand_over(source, is_welcome=is_welcome)
            last = handed if handed and handed.rows else last  # silver never begins with a batch without rows
            self._barrier.stop.wait(max(0.0, begin + pause - time.monotonic()))

    def _hand_over(self, source: Source, *, is_welcome: bool = True) -> HandOver | None:
        handed = hand_over(self._lake, source, self._barrier.hold(EVENTS), is_welcome=is_welcome)
        for notice in source.notices():
            self._progress.notice(notice)
        if handed is not None:
            facts = {"source": source.name, "batch": handed.bronze_batch, "at": handed.at.isoformat(timespec="milliseconds")}
            self._progress.handed_over(self._intake.name, handed.rows, handed.seconds, **facts)
        return handed
