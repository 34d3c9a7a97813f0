"""The sources of a run feed bronze: each is looked at in a thread of its own, so that one that is slow, or down, keeps no other from going
on. What is ready at the same time becomes one bronze batch: silver has one watermark for all sources, and of a long backlog it would turn
away what comes a batch after another source's events of the same time.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from orchestration.connectors.outages import Outages, note_odd
from orchestration.connectors.sources.landing_hosts import refuse_other_host
from orchestration.connectors.sources.source import Notice, Source, SourceDownError, own_fault
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import WriteBarrier
from orchestration.flow import Intake
from orchestration.jobs.bronze import EVENTS, CommittedBatch, PendingBatch, commit_batch, poll
from orchestration.jobs.repeated_messages import RepeatedMessages
from orchestration.storage.positions import is_begun_by_silver
from orchestration.supervisor.status import note_ends

PATIENCE_SECONDS = 0.2
"""For a source that has just been asked; after that the others go on without it."""
BROKEN_SECONDS = 60.0
"""A source that bronze could not read is not asked for so long: what was written for its batch is written in vain."""
SILENT_SECONDS = 120.0
"""A source that has not answered for so long is down, until it does."""
LEFT_OUT = ("file left out", "object left out", "file without events")

T = TypeVar("T")


class Feeds:
    """The feeds of one intake. `run_to_end` for a run that ends, `start` for one that goes on."""

    def __init__(self, lake: Lake, intake: Intake, barrier: WriteBarrier, progress: Progress) -> None:
        self._lake, self._intake, self._barrier, self._progress = lake, intake, barrier, progress
        refuse_other_host(lake.conf)
        self._repeats = RepeatedMessages(lake)
        self._sources = {source.name: source for source in intake.sources()}
        self._polls: dict[str, Future[PendingBatch | None]] = {}
        self._asked_at: dict[str, float] = {}
        self._kept: dict[str, PendingBatch] = {}
        """Batches that were read while silver was too slow to take them: they need not be read again."""
        self._down: dict[str, SourceDownError] = {}
        self._broken: dict[str, float] = {}
        """Sources that could be asked and not be read, and when they are asked again; until bronze has something of them they are down."""
        self._outages = Outages(lake.conf.lake, "source", progress.notice)
        self._odd: dict[str, Mapping[str, str]] = {}
        """Notes about each source that somebody has to look at."""
        self._following: Future[None] | None = None
        self.left_out: list[dict[str, str]] = []
        """Files and objects that were not read, or gave no event, with the reason."""
        self.has_come = threading.Event()
        """A source has something that bronze has not."""

    def run_to_end(self) -> None:
        """Take in what was there at first; what is half there gets the time to settle, once. A source that is down is left out."""
        sources, stop = [*self._sources.values()], self._barrier.stop
        self._down.clear()
        for source in sources:
            self._ask(source, source.stop_at_present)
        if seconds := max((unsettled.seconds for source in sources if (unsettled := self._ask(source, source.unsettled))), default=0.0):
            self.has_come.set()
            stop.wait(seconds)
        sources = [source for source in sources if source.name not in self._down]
        with ThreadPoolExecutor(max(1, len(sources)), "source") as threads:
            while not stop.is_set() and (ready := [of_source for of_source in threads.map(self._poll, sources) if of_source]):
                self._commit(ready)
                sources = [source for source in sources if source.name not in self._down]
        for source in self._sources.values():
            if unsettled := self._ask(source, source.unsettled):
                self._leave_out(unsettled.names)
        self._progress.ended(self._intake.name)

    def start(self, *, is_followed: bool) -> None:
        """Until the barrier is told to stop. `is_followed`: silver runs too."""
        self._following = ThreadPoolExecutor(1, "bronze").submit(self._follow, is_followed)

    def raise_if_broken(self) -> None:
        """Raise the error that ended a source, or the writing of bronze."""
        if self._following is not None and self._following.done():
            self._following.result()

    @property
    def down(self) -> list[SourceDownError]:
        """Errors of sources that could not be read when they were asked last."""
        return [*self._down.values()]

    def join(self) -> None:
        """Wait for the batch that is being written, and raise what ended one."""
        if self._following is not None:
            self._following.result()

    def _follow(self, is_followed: bool) -> None:
        """A batch of bronze is one of silver: where silver is slow, they grow."""
        last: CommittedBatch | None = None
        with ThreadPoolExecutor(max(1, len(self._sources)), "source") as threads:
            while not self._barrier.stop.is_set():
                begin = time.monotonic()
                ready = self._ready(threads)
                if ready and (last is None or not is_followed or is_begun_by_silver(self._lake, last.version)):
                    committed = self._commit(ready)
                    if committed and any(committed.rows.values()):  # silver never begins with a batch without rows
                        last = committed
                else:
                    self._kept = {of_source.source.name: of_source for of_source in ready if of_source.fetched is not None}
                self._barrier.stop.wait(max(0.0, begin + self._lake.conf.engine.trigger_seconds - time.monotonic()))

    def _ready(self, threads: ThreadPoolExecutor) -> list[PendingBatch]:
        """Collect the batches of sources that answer at once, or have answered since."""
        idle = self._sources.keys() - self._polls.keys() - self._kept.keys()
        asked = {name: threads.submit(self._poll, source) for name, source in self._sources.items() if name in idle}
        self._asked_at |= dict.fromkeys(asked, time.monotonic())
        wait(asked.values(), PATIENCE_SECONDS)
        self._polls |= asked
        answered = {name: answer for name, answer in self._polls.items() if answer.done()}
        for name in answered:
            del self._polls[name]
        for name in self._polls:
            if time.monotonic() - self._asked_at[name] > SILENT_SECONDS:
                self._outages.failed(name, f"source {name} has not answered for {SILENT_SECONDS:.0f} s")
        kept, self._kept = self._kept, {}
        return [*kept.values(), *(ready for answer in answered.values() if (ready := answer.result()))]

    def _poll(self, source: Source) -> PendingBatch | None:
        name = source.name
        if time.monotonic() < self._broken.get(name, 0.0):
            return None
        try:
            ready = poll(self._lake, source, self.has_come.set)
            with own_fault(name):
                odd, ends, notices = source.odd(), source.ends(), source.notices()
        except SourceDownError as error:
            self._fail(name, error)
            return None
        if ready is None or name not in self._broken:
            self._answered(name)
        if odd != self._odd.get(name):
            note_odd(self._lake.conf.lake, name, odd)
            self._odd[name] = odd
        if ends:
            note_ends(self._lake.conf.lake, name, ends)
        for notice in (*notices, *(ready.notices if ready else ())):
            self._progress.notice(notice)
            if notice.what in LEFT_OUT:
                file = notice.facts.get("file") or notice.facts["object"]
                self.left_out.append({"source": source.name, "left_out": file, "reason": notice.facts["reason"]})
        return ready

    def _ask(self, source: Source, question: Callable[[], T]) -> T | None:
        """Return the answer; None where the source is down by that."""
        try:
            with own_fault(source.name):
                return question()
        except SourceDownError as error:
            self._fail(source.name, error)
            return None

    def _fail(self, name: str, error: SourceDownError) -> None:
        self._down[name] = error
        self._outages.failed(name, str(error))

    def _answered(self, name: str) -> None:
        self._broken.pop(name, None)
        self._down.pop(name, None)
        self._outages.answered(name)

    def _commit(self, ready: list[PendingBatch]) -> CommittedBatch | None:
        """Commit what can be read; None where nothing can."""
        try:
            committed = commit_batch(self._lake, ready, self._barrier.hold(EVENTS), self._repeats)
        except SourceDownError as error:
            self._broken[error.source] = time.monotonic() + BROKEN_SECONDS
            self._fail(error.source, error)
            left = [of_source for of_source in ready if of_source.source.name != error.source]
            return self._commit(left) if left else None
        for of_source in ready:
            if of_source.source.name in self._broken:
                self._answered(of_source.source.name)
        for gap in committed.gaps:
            facts_of_gap = {name: "unknown" if value is None else str(value) for name, value in vars(gap).items() if name != "found_at"}
            self._progress.notice(Notice("gap", facts_of_gap | {"reason": "messages are gone that were never read"}))
        facts = {"batch": committed.bronze_batch, "at": committed.at.isoformat(timespec="milliseconds"), "sources": dict(committed.rows)}
        self._progress.handed_over(self._intake.name, sum(committed.rows.values()), committed.seconds, **facts)
        return committed

    def _leave_out(self, names: Sequence[str]) -> None:
        for name in names:
            self._progress.notice(Notice("file left out", {"file": name, "reason": "it is still being written; the next run reads it"}))
