"""Sinks and channels beside a run: one that is slow or down holds no other up, is told once, and gets what it lacks when it is up again."""

import io
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console

from orchestration.connectors.channels.channel import Channel, Message, RefusedError
from orchestration.connectors.sinks.sink import Batch, Sink
from orchestration.engine.progress import Progress
from orchestration.errors import TidemarkError, exit_code_of
from orchestration.supervisor import sinks
from orchestration.supervisor.sinks import ChannelSender, SinkSender
from orchestration.supervisor.status import sink_status
from tests.orchestration.alerts.alert_lake import AlertLake, Recorder, changed
from tests.orchestration.connectors.sinks.small_lake import AGGREGATES, START, SmallLake, windows
from tests.waiting import PATIENCE_SECONDS, until


@dataclass
class Receiver(Sink):
    """A sink that does as it is told."""

    is_down: bool = False
    rows: list[int] = field(default_factory=list)
    tries: int = 0

    def write(self, batch: Batch, rows: Iterator[pa.Table]) -> bool:
        self.tries += 1
        if self.is_down:
            raise TidemarkError("the target is away.")
        self.rows.append(sum(map(len, rows)))
        return True


@dataclass
class HangingSink(Receiver):
    begun: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def write(self, batch: Batch, rows: Iterator[pa.Table]) -> bool:
        self.begun.set()
        return self.over.wait(PATIENCE_SECONDS)


@dataclass
class HangingChannel(Channel):
    over: threading.Event = field(default_factory=threading.Event)

    def send(self, messages: Sequence[Message]) -> None:
        self.over.wait(PATIENCE_SECONDS)


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    made = SmallLake(tmp_path, {name: {"table": AGGREGATES, "python": "module:function"} for name in ("one", "other")})
    made.write(AGGREGATES, [*windows(0, range(5))]).pin(0)
    return made


@pytest.fixture
def alerts(tmp_path: Path) -> AlertLake:
    return AlertLake(tmp_path).write(changed_now("firing"))


def changed_now(state: str, entity: str = "oven") -> dict[str, object]:
    return changed(0, state, entity) | dict.fromkeys(("changed_at", "since", "known_at"), datetime.now(UTC))


def to_sinks(lake: SmallLake, declared: Mapping[str, Sink], stop: threading.Event | None = None) -> SinkSender:
    return SinkSender(lake.conf, Progress([], Console(file=io.StringIO())), stop or threading.Event(), declared)


def to_channels(lake: AlertLake, stop: threading.Event | None = None, **channels: Channel) -> ChannelSender:
    return ChannelSender(lake.conf, Progress([], Console(file=io.StringIO())), stop or threading.Event(), channels)


def said(capsys: pytest.CaptureFixture[str], key: str) -> list[dict[str, object]]:
    return [line for line in map(json.loads, capsys.readouterr().err.splitlines()) if key in line]


def warnings(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [f"{line['channel']}: {line['warning']}" for line in said(capsys, "channel")]


def test_a_run_that_ends_sends_to_all_sinks_and_then_tells_of_those_that_are_down(
    lake: SmallLake, capsys: pytest.CaptureFixture[str]
) -> None:
    up, down = Receiver(), Receiver(is_down=True)
    with pytest.raises(TidemarkError, match=r"^sink other: the target is away.\n  Everything else is done; the next run sends") as raised:
        to_sinks(lake, {"one": up, "other": down}).run_to_end()
    assert exit_code_of(raised.value) == 4
    assert up.rows == [5]
    (warning,) = said(capsys, "warning")
    assert (warning["warning"], warning["sink"], warning["reason"]) == ("sink is down", "other", "sink other: the target is away.")


def test_a_run_that_ends_sends_to_all_channels_and_the_next_one_to_those_that_were_down(
    alerts: AlertLake, capsys: pytest.CaptureFixture[str]
) -> None:
    up, down = Recorder(), Recorder([TidemarkError("it is away.")])
    with pytest.raises(TidemarkError, match=r"^channel down: it is away.\n  Everything else is done"):
        to_channels(alerts, up=up, down=down).run_to_end()
    assert up.states() == ["firing oven"]
    assert warnings(capsys) == ["down: channel is down"]
    to_channels(alerts, up=up, down=down).run_to_end()
    assert up.states() == down.states() == ["firing oven"]
    assert warnings(capsys) == ["down: channel is up again"]


def test_a_sink_that_is_down_is_told_once_holds_no_other_up_and_goes_on_where_it_was(
    lake: SmallLake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "FIRST_PAUSE_SECONDS", 0.05)
    up, down, stop = Receiver(), Receiver(is_down=True), threading.Event()
    running = to_sinks(lake, {"one": up, "other": down}, stop)
    running.start()
    until(lambda: up.rows == [5] and down.tries >= 3)
    lake.write(AGGREGATES, [*windows(1, range(5, 8))]).pin(1)
    running.wake()
    until(lambda: up.rows == [5, 3])
    (row,) = [row for row in sink_status(lake.conf, START + timedelta(days=1, seconds=60)) if row["sink"] == "other"]
    assert (row["snapshot"], row["snapshots_behind"], row["rows_behind"], row["lag_seconds"]) == (None, 2, 8, 60.0)
    assert (row["down_since"] is not None, row["reason"]) == (True, "sink other: the target is away.")
    down.is_down = False
    until(lambda: sum(down.rows) == 8)
    stop.set()
    running.wake()
    running.join()
    lines = said(capsys, "sink")
    assert [line["warning"] for line in lines if "warning" in line] == ["sink is down", "sink is up again"]
    assert [(line["sink"], line["rows"]) for line in lines if line["sink"] == "one"] == [("one", 5), ("one", 3)]
    assert {row["down_since"] for row in sink_status(lake.conf, datetime.now(UTC))} == {None}


def test_a_channel_that_hangs_and_one_that_is_down_hold_no_other_up(
    alerts: AlertLake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "FIRST_PAUSE_SECONDS", 0.05)
    stop, up, down, hanging = threading.Event(), Recorder(), Recorder([TidemarkError("it is away.")] * 3), HangingChannel()
    running = to_channels(alerts, stop, up=up, down=down, hanging=hanging)
    running.start()
    until(lambda: up.states() == ["firing oven"])
    alerts.write(changed_now("firing", "fridge"))
    running.wake()
    until(lambda: up.states() == ["firing oven", "firing fridge"] == down.states())
    stop.set()
    running.wake()
    running.join(0.1)
    hanging.over.set()
    running.join()
    assert warnings(capsys) == ["down: channel is down", "down: channel is up again"]


def test_a_message_that_is_refused_is_told_and_is_no_outage(alerts: AlertLake, capsys: pytest.CaptureFixture[str]) -> None:
    to_channels(alerts, pager=Recorder([RefusedError("answered 400.")])).run_to_end()
    assert warnings(capsys) == ["pager: messages are in ops.dead_letters; `tidemark alerts resend` sends them again"]


def test_a_sink_that_has_everything_is_not_behind(lake: SmallLake) -> None:
    to_sinks(lake, {"one": Receiver(), "other": Receiver()}).run_to_end()
    row = sink_status(lake.conf, datetime.now(UTC))[0]
    assert (row["sink"], row["table"], row["target"]) == ("one", AGGREGATES, "python module:function")
    assert (row["snapshot"], row["snapshots_behind"], row["rows_behind"], row["lag_seconds"]) == (0, 0, 0, 0.0)
    assert row["sent_at"] is not None


def test_a_sink_that_hangs_does_not_keep_the_process_from_ending(lake: SmallLake) -> None:
    hanging, stop = HangingSink(), threading.Event()
    running = to_sinks(lake, {"one": hanging}, stop)
    running.start()
    hanging.begun.wait(PATIENCE_SECONDS)
    stop.set()
    running.wake()
    running.join(0.1)
    assert sink_status(lake.conf, datetime.now(UTC))[0]["snapshot"] is None
    hanging.over.set()
    running.join()


def test_pauses_grow_up_to_twenty_seconds(lake: SmallLake) -> None:
    pauses: list[float] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0.0)
            if len(pauses) == 8:
                self.set()
            return False

    running = to_sinks(lake, {"one": Receiver(is_down=True)}, Stop())
    running.start()
    running.join()
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0, 20.0]
