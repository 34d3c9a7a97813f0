"""Sources feed bronze side by side: one that is slow, down or broken keeps no other from going on."""

import ast
import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from rich.console import Console

from orchestration.conf.transport_settings import DeltaSettings
from orchestration.connectors.outages import begin_outage, current_outage
from orchestration.connectors.sources.delta import DELETED, GONE, REWRITTEN, Delta
from orchestration.connectors.sources.source import Notice, Offset, Source
from orchestration.engine.lake import Lake
from orchestration.engine.progress import Progress
from orchestration.engine.queries import WriteBarrier
from orchestration.flow import Intake
from orchestration.jobs.bronze import EVENTS
from orchestration.storage.tables import ensure
from orchestration.supervisor import feeds
from orchestration.supervisor.feeds import Feeds
from tests.lakes import conf, multiset, table
from tests.number_source import Numbers
from tests.rows import at
from tests.waiting import PATIENCE_SECONDS, until


@dataclass
class Slow(Numbers):
    """Answers only once it is `free`."""

    free: threading.Event = field(default_factory=threading.Event)

    def latest_offset(self, start: Offset) -> Offset:
        self.free.wait(PATIENCE_SECONDS)
        return super().latest_offset(start)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Without a session, which no source needs."""
    opened = Lake(conf(tmp_path))
    ensure(opened.tables[EVENTS])
    return opened


def feeds_of(lake: Lake, *sources: Source) -> tuple[Feeds, threading.Event]:
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
    told, back = warnings(capsys)
    assert told == {"warning": "source is down", "source": "down", "since": told["since"], "reason": "down is not there"}
    assert back == {"warning": "source is up again", "source": "down", "down_since": told["since"]}


def test_an_outage_outlives_the_process_and_the_next_one_tells_since_when_it_lasts(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    begin_outage(lake.conf.lake, "source", "down", "it was not there before", at("2026-01-05T00:00"))
    down = Numbers("down", 2, is_down=True)
    for _ in range(2):
        of_run, _ = feeds_of(lake, down)
        of_run.run_to_end()
    down.is_down = False
    of_run.run_to_end()
    told = {"warning": "source is down", "source": "down", "since": "2026-01-05T00:00:00Z", "reason": "it was not there before"}
    assert warnings(capsys) == [told, told, {"warning": "source is up again", "source": "down", "down_since": "2026-01-05T00:00:00Z"}]
    assert current_outage(lake.conf.lake, "source", "down") is None


def test_a_run_that_ends_takes_in_what_the_others_have_and_then_says_who_was_down(lake: Lake) -> None:
    of_run, _ = feeds_of(lake, Numbers("down", 2, is_down=True), Numbers("other", 3))
    of_run.run_to_end()
    assert counts(lake) == {"other": 3}
    assert ["down is not there" in str(error) for error in of_run.down] == [True]


def test_a_run_that_ends_takes_in_what_was_there_when_it_began_though_events_keep_coming(lake: Lake) -> None:
    endless = Numbers("endless", 3)
    of_run, _ = feeds_of(lake, endless)
    of_run.run_to_end()
    assert of_run.down == []
    assert (counts(lake), endless.left) == ({"endless": 3}, 4)


def test_what_becomes_of_a_table_of_others_is_told_and_other_sources_go_on(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 34: a column more, another name for one, rows deleted and changed, a file lost and one damaged, all rows replaced."""
    path, told = tmp_path / "a table", []

    def written(minute: int, mode: Literal["append", "overwrite"] = "append", **columns: float) -> Path:
        """The file of one row."""
        of = {"device": ["oven-01"], "ts": [f"2026-03-02T08:0{minute}:00Z"], **{name: [value] for name, value in columns.items()}}
        write_deltalake(path, pa.table(of), mode=mode, schema_mode="overwrite" if mode == "overwrite" else "merge")
        return max(path.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)

    steps: list[Callable[[], object]] = [
        lambda: written(0, temperature=181),
        lambda: written(1, temperature=182, humidity=11.5),
        lambda: written(2, temperature_c=183.25, humidity=11.6),
        lambda: DeltaTable(path).delete("ts = '2026-03-02T08:00:00Z'"),
        lambda: DeltaTable(path).update({"humidity": "12.0"}, predicate="ts = '2026-03-02T08:01:00Z'"),
        lambda: written(3, temperature=183).unlink(),
        lambda: written(4, temperature=184).write_bytes(b"no Parquet"),
        lambda: written(5, "overwrite", temperature=184.75, humidity=11.7),
    ]
    for n, step in enumerate(steps):
        step()
        of_run, _ = feeds_of(lake, Delta("warehouse", DeltaSettings(table=path), 1_000_000), Numbers("other", n + 1))
        of_run.run_to_end()
        assert of_run.down == []
        told.append([f"{line['warning']}: {line['reason'].partition(' (')[0]}" for line in warnings(capsys)])
    took, rewrote, lost = (f"table changed: {reason}" for reason in (DELETED, REWRITTEN, GONE))
    gap = "gap: messages are gone that were never read"
    assert told == [[], [], [], [took], [rewrote], [lost, gap], ["table changed: the file cannot be read", gap], [rewrote]]
    assert counts(lake) == {"warehouse": 3, "other": len(steps)}


@pytest.mark.parametrize("is_terminal", [True, False])
def test_every_notice_that_anybody_makes_can_be_shown(*, is_terminal: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever its facts are called: those in the code, and names that a function of Progress might have."""
    calls = [
        call
        for file in (Path(__file__).parents[3] / "orchestration").rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Notice"
    ]
    names = {key.value for call in calls for key in ast.walk(call.args[1]) if isinstance(key, ast.Constant)}
    facts = {str(name): "x" for name in ("self", "what", "facts", "flow", "rows", *names)}
    shown = io.StringIO()
    Progress([], Console(file=shown, force_terminal=is_terminal)).notice(Notice("table changed", facts))
    assert {"what", "reason"} < names
    assert (
        shown.getvalue().startswith("table changed: x, x") if is_terminal else warnings(capsys) == [{"warning": "table changed", **facts}]
    )


def test_an_outage_is_told_also_where_it_cannot_be_written_down(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    (lake.conf.lake.local / "outages/source/down.json.draft").mkdir(parents=True)
    of_run, _ = feeds_of(lake, Numbers("down", 2, is_down=True), Numbers("other", 1))
    of_run.run_to_end()
    (told,) = warnings(capsys)
    assert (told["warning"], told["source"], counts(lake)) == ("source is down", "down", {"other": 1})
    assert told["reason"].startswith("down is not there [Errno ")


def test_without_a_source_as_when_all_are_paused_a_run_goes_on_and_ends(lake: Lake) -> None:
    of_run, _ = feeds_of(lake)
    of_run.run_to_end()
    with running(lake):
        pass
    assert counts(lake) == {}


def test_what_silver_is_too_slow_to_take_is_kept_and_not_read_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    is_behind, looks = threading.Event(), list[bool]()

    def is_begun(*_: object) -> bool:
        looks.append(is_behind.is_set())
        return not is_behind.is_set()

    monkeypatch.setattr(feeds, "is_begun_by_silver", is_begun)
    remote, local = Numbers("remote", 1, is_remote=True), Numbers("local", 1)
    with running(lake, remote, local, is_followed=True):
        until(lambda: counts(lake) == {"remote": 1, "local": 1})
        is_behind.set()
        remote.left = local.left = 2
        until(lambda: len(remote.reads) == 2)
        remote.left = local.left = 5
        before = len(looks)
        until(lambda: len(looks) >= before + 5)
        assert (counts(lake), remote.reads[1:], local.reads[1:]) == ({"remote": 1, "local": 1}, [range(1, 2)], [])
        is_behind.clear()
        until(lambda: counts(lake) == {"remote": 5, "local": 5})
    assert remote.reads == [range(1), range(1, 2), range(2, 5)]


def test_of_a_backlog_the_sources_come_in_step_and_each_batch_has_a_part_of_each(lake: Lake) -> None:
    of_run, _ = feeds_of(lake, Numbers("one", left=5, most=2), Numbers("other", left=2, most=1))
    of_run.run_to_end()
    batches = multiset(table(lake.conf, EVENTS), ["bronze_batch", "source"])
    assert batches == {("0", "one"): 2, ("0", "other"): 1, ("1", "one"): 2, ("1", "other"): 1, ("2", "one"): 1}


def test_a_source_that_does_not_answer_keeps_no_other_from_going_on_and_comes_in_once_it_does(lake: Lake) -> None:
    quick, slow = Numbers("quick", left=1), Slow("slow", left=3)
    with running(lake, slow, quick):
        for left in (1, 2, 3):
            quick.left = left
            until(lambda left=left: counts(lake) == {"quick": left})  # type: ignore[misc]
        slow.free.set()
        until(lambda: counts(lake) == {"quick": 3, "slow": 3})


def test_a_source_that_does_not_answer_for_long_is_told_as_down_until_it_does(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(feeds, "SILENT_SECONDS", 1.0)
    slow = Slow("slow", left=3)
    with running(lake, slow):
        until(lambda: current_outage(lake.conf.lake, "source", "slow") is not None)
        slow.free.set()
        until(lambda: counts(lake) == {"slow": 3})
    told, back = warnings(capsys)
    assert (told["warning"], told["reason"]) == ("source is down", "source slow has not answered for 1 s")
    assert back["warning"] == "source is up again"


def test_a_source_that_cannot_be_read_is_down_until_it_can_be_and_others_go_on(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "BROKEN_SECONDS", 0.1)
    broken = Numbers("other", left=2, is_broken=True)
    with running(lake, Numbers("one", left=2), broken):
        until(lambda: counts(lake) == {"one": 2})
        outage = current_outage(lake.conf.lake, "source", "other")
        assert outage is not None and outage.reason == "source other cannot be read: OSError."
        broken.is_broken = False
        until(lambda: counts(lake) == {"one": 2, "other": 2} and current_outage(lake.conf.lake, "source", "other") is None)
