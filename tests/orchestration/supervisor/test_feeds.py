"""How sources feed bronze in a run: one that is down is told and asked again, and keeps no other from going on."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from bronze.events import ARRIVED
from orchestration.connectors.sources.source import Gap, Notice, Offset, SourceDownError, Unsettled
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import WriteBarrier
from orchestration.flow import Intake
from orchestration.jobs.bronze import EVENTS
from orchestration.storage.tables import ensure
from orchestration.supervisor import feeds
from orchestration.supervisor.feeds import Feeds
from tests.lakes import conf, table

NOW = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass
class Numbers:
    """Whole numbers, `left` of which have come. `reads`: how often some were read."""

    name: str
    left: int = 0
    is_remote: bool = True
    is_down: bool = False
    end: int | None = None
    reads: list[range] = field(default_factory=list)

    def stop_at_present(self) -> None:
        self.end = self.left

    def latest_offset(self, start: Offset) -> Offset:
        if self.is_down:
            raise SourceDownError(f"{self.name} is not there")
        left = min(self.left, self.left if self.end is None else self.end)
        return {"read": left} if left else start

    def partitions(self, start: Offset, end: Offset) -> Sequence[range]:
        return [range(int(start.get("read", 0)), int(end["read"]))]

    def read(self, partition: range) -> Iterator[pa.Table]:
        self.reads.append(partition)
        rows = [{"payload": b"%d" % n, "source": self.name, "position": str(n), "received_at": NOW} for n in partition]
        yield pa.Table.from_pylist(rows, ARRIVED)
        self.left += self.end is not None  # events keep coming

    def gaps(self, start: Offset, end: Offset) -> Sequence[Gap]:
        return []

    def unsettled(self) -> Unsettled | None:
        return None

    def notices(self) -> Sequence[Notice]:
        return []


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Without a session, which no source needs."""
    opened = Lake(conf(tmp_path))
    ensure(opened.tables[EVENTS])
    return opened


def feeds_of(lake: Lake, *sources: Numbers) -> tuple[Feeds, threading.Event]:
    """And what stops them."""
    stop = threading.Event()
    intake = Intake(EVENTS, (lake.tables[EVENTS],), sources=lambda: sources)
    return Feeds(lake, intake, WriteBarrier(stop), Progress([EVENTS])), stop


@contextmanager
def running(lake: Lake, *sources: Numbers, is_followed: bool = False) -> Iterator[None]:
    """A run that goes on."""
    of_run, stop = feeds_of(lake, *sources)
    of_run.start(is_followed=is_followed)
    try:
        yield
    finally:
        stop.set()
        of_run.join()


def counts(lake: Lake) -> dict[str, int]:
    """Rows in bronze by source."""
    return {str(name): int(count) for name, count in table(lake.conf, EVENTS)["source"].value_counts().items()}


def until(is_true: Callable[[], bool]) -> None:
    for _ in range(200):
        if is_true():
            return
        time.sleep(0.05)
    raise AssertionError("it never became true")


def warnings(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    return [line for line in lines if "warning" in line]


def test_a_source_that_is_down_is_told_once_and_asked_again_and_others_go_on(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    down, other = Numbers("down", 2, is_down=True), Numbers("other", 1)
    with running(lake, down, other):
        for left in (1, 2, 3):
            other.left = left
            until(lambda left=left: counts(lake) == {"other": left})  # type: ignore[misc]
        down.is_down = False
        until(lambda: counts(lake) == {"down": 2, "other": 3})
    assert warnings(capsys) == [
        {"warning": "source is down", "source": "down", "reason": "down is not there"},
        {"warning": "source is back", "source": "down"},
    ]


def test_a_run_that_ends_takes_in_what_the_others_have_and_then_says_who_was_down(lake: Lake) -> None:
    of_run, _ = feeds_of(lake, Numbers("down", 2, is_down=True), Numbers("other", 3))
    of_run.run_to_end()
    assert counts(lake) == {"other": 3}
    with pytest.raises(SourceDownError, match="down is not there"):
        of_run.raise_if_down()


def test_a_run_that_ends_takes_in_what_was_there_when_it_began_though_events_keep_coming(lake: Lake) -> None:
    endless = Numbers("endless", 3)
    of_run, _ = feeds_of(lake, endless)
    of_run.run_to_end()
    of_run.raise_if_down()
    assert (counts(lake), endless.left) == ({"endless": 3}, 4)


def test_what_silver_is_too_slow_to_take_is_kept_and_not_read_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    is_behind = threading.Event()
    monkeypatch.setattr(feeds, "is_begun_by_silver", lambda *_: not is_behind.is_set())
    remote, local = Numbers("remote", 1), Numbers("local", 1, is_remote=False)
    with running(lake, remote, local, is_followed=True):
        until(lambda: counts(lake) == {"remote": 1, "local": 1})
        is_behind.set()
        remote.left = local.left = 2
        until(lambda: len(remote.reads) == 2)
        remote.left = local.left = 5
        time.sleep(1)
        assert (counts(lake), remote.reads[1:], local.reads[1:]) == ({"remote": 1, "local": 1}, [range(1, 2)], [])
        is_behind.clear()
        until(lambda: counts(lake) == {"remote": 5, "local": 5})
    assert remote.reads == [range(1), range(1, 2), range(2, 5)]
