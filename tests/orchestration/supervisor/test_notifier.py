"""Channels beside a run: one that is slow or down holds no other up, is told once, and gets what it lacks when it is up again."""

import io
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from orchestration.connectors.channels.channel import Channel, Message, RefusedError
from orchestration.engine.progress import Progress
from orchestration.errors import TidemarkError
from orchestration.supervisor import sinks
from orchestration.supervisor.sinks import ChannelSender
from tests.orchestration.connectors.channels.alert_lake import AlertLake, Recorder, changed
from tests.waiting import PATIENCE_SECONDS, until


@pytest.fixture
def lake(tmp_path: Path) -> AlertLake:
    return AlertLake(tmp_path).write(changed_now("firing"))


def changed_now(state: str, entity: str = "oven") -> dict[str, object]:
    return changed(0, state, entity) | dict.fromkeys(("changed_at", "since", "known_at"), datetime.now(UTC))


def notifier(lake: AlertLake, stop: threading.Event, **channels: Channel) -> ChannelSender:
    return ChannelSender(lake.conf, Progress([], Console(file=io.StringIO())), stop, channels)


def warnings(capsys: pytest.CaptureFixture[str]) -> list[str]:
    lines = map(json.loads, capsys.readouterr().err.splitlines())
    return [f"{line['channel']}: {line['warning']}" for line in lines if "channel" in line]


@dataclass
class Hanging(Channel):
    over: threading.Event = field(default_factory=threading.Event)

    def send(self, messages: Sequence[Message]) -> None:
        self.over.wait(PATIENCE_SECONDS)


def test_a_run_that_ends_sends_to_all_and_then_tells_of_those_that_are_down(lake: AlertLake, capsys: pytest.CaptureFixture[str]) -> None:
    up, down = Recorder(), Recorder([TidemarkError("it is away.")])
    with pytest.raises(TidemarkError, match=r"^channel down: it is away.\n  Everything else is done"):
        notifier(lake, threading.Event(), up=up, down=down).run_to_end()
    assert up.states() == ["firing oven"]
    assert warnings(capsys) == ["down: channel is down"]
    notifier(lake, threading.Event(), up=up, down=down).run_to_end()
    assert up.states() == down.states() == ["firing oven"]
    assert warnings(capsys) == ["down: channel is up again"]


def test_one_that_hangs_and_one_that_is_down_hold_no_other_up(
    lake: AlertLake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "FIRST_PAUSE_SECONDS", 0.05)
    stop, up, down, hanging = threading.Event(), Recorder(), Recorder([TidemarkError("it is away.")] * 3), Hanging()
    running = notifier(lake, stop, up=up, down=down, hanging=hanging)
    running.start()
    until(lambda: up.states() == ["firing oven"])
    lake.write(changed_now("firing", "fridge"))
    running.wake()
    until(lambda: up.states() == ["firing oven", "firing fridge"] == down.states())
    stop.set()
    running.wake()
    running.join(0.1)
    hanging.over.set()
    running.join()
    assert warnings(capsys) == ["down: channel is down", "down: channel is up again"]


def test_a_refusal_is_told_and_is_no_outage(lake: AlertLake, capsys: pytest.CaptureFixture[str]) -> None:
    notifier(lake, threading.Event(), pager=Recorder([RefusedError("answered 400.")])).run_to_end()
    assert warnings(capsys) == ["pager: messages are in ops.dead_letters; `tidemark alerts resend` sends them again"]
