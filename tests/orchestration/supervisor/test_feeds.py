"""Sources feed bronze side by side: one that is slow keeps no other from going on, one that breaks ends the run."""

import io
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console

from orchestration.connectors.sources.source import Offset, Source
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import WriteBarrier
from orchestration.flow import Intake
from orchestration.jobs.bronze import EVENTS
from orchestration.storage.tables import ensure
from orchestration.supervisor.feeds import Feeds
from tests.lakes import conf, multiset, table
from tests.number_source import Numbers


@dataclass
class Slow(Numbers):
    """Answers only once it is `free`."""

    free: threading.Event = field(default_factory=threading.Event)

    def latest_offset(self, start: Offset) -> Offset:
        self.free.wait(60)
        return super().latest_offset(start)


def feeds(lake: Lake, sources: Sequence[Source], stop: threading.Event) -> Feeds:
    table = lake.tables[EVENTS]
    ensure(table)
    intake = Intake(EVENTS, (table,), lambda: sources)
    return Feeds(lake, intake, WriteBarrier(stop), Progress([EVENTS], Console(file=io.StringIO())))


def until(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_done():
        assert time.monotonic() < end, "not done within a minute"
        time.sleep(0.05)


def counts(lake: Lake) -> dict[object, int]:
    return dict(multiset(table(lake.conf, EVENTS), ["source"]))


def test_of_a_backlog_the_sources_come_in_step_and_each_batch_has_a_part_of_each(tmp_path: Path) -> None:
    lake = Lake(conf(tmp_path))
    feeds(lake, [Numbers("one", left=5, most=2), Numbers("other", left=2, most=1)], threading.Event()).run_to_end()
    batches = multiset(table(lake.conf, EVENTS), ["bronze_batch", "source"])
    assert batches == {("0", "one"): 2, ("0", "other"): 1, ("1", "one"): 2, ("1", "other"): 1, ("2", "one"): 1}


def test_a_source_that_does_not_answer_keeps_no_other_from_going_on_and_comes_in_once_it_does(tmp_path: Path) -> None:
    lake, stop = Lake(conf(tmp_path)), threading.Event()
    quick, slow = Numbers("quick", left=1), Slow("slow", left=3)
    running = feeds(lake, [slow, quick], stop)
    running.start(is_followed=False)
    for left in (1, 2, 3):
        quick.left = left
        until(lambda left=left: counts(lake) == {("quick",): left})  # type: ignore[misc]
    slow.free.set()
    until(lambda: counts(lake) == {("quick",): 3, ("slow",): 3})
    stop.set()
    running.join()


def test_what_breaks_a_source_is_raised_and_what_others_had_is_there_or_is_read_again(tmp_path: Path) -> None:
    lake, stop = Lake(conf(tmp_path)), threading.Event()
    running = feeds(lake, [Numbers("one", left=2), Numbers("other", left=2, is_broken=True)], stop)
    running.start(is_followed=False)

    def is_broken() -> bool:
        try:
            running.raise_if_broken()
        except OSError:
            return True
        return False

    until(is_broken)
    with pytest.raises(OSError, match="gone"):
        running.join()
    feeds(lake, [Numbers("one", left=2), Numbers("other", left=2)], threading.Event()).run_to_end()
    assert counts(lake) == {("one",): 2, ("other",): 2}
