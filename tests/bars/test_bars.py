"""`tidemark up` of a whole plant, put to each fault once: it is the problem that it should be, wherever the list is shown, and there is no
other one; when the fault has ended, so has the problem.

`make bars` puts the plant to one fault after the other, each of which has to be seen, and has to be over, within 30 s. The default run puts
it to many at once, and waits as long as the machine takes.
"""

import json
import os
import random
import re
import shlex
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import pytest

from tests.bars.faults import DEAD_LETTERS, DEVICES, DISK, EXPECTATION, GATE, HELD_BACK, REACHED, REFUSED, UNREPLAYED, Fault, change
from tests.bars.plant import Plant, environment, plant
from tests.services import Up, tidemark
from tests.waiting import until

pytestmark = [pytest.mark.bars, pytest.mark.processes, pytest.mark.spark]
LIMIT_SECONDS = 30.0
PAUSE_SECONDS = 0.5
OF_THE_MACHINE = {"lake memory"}
"""Who tests beside this one may take memory."""
Problem = dict[str, Any]


class Bars:
    """`seconds`: by fault, until it was shown and until it was over. `others`: problems that no fault explains."""

    def __init__(self, made: Plant) -> None:
        self.plant, self.up = made, Up(made.conf)
        self.seconds: dict[str, list[float]] = {}
        self.others: dict[str, str] = {}
        self._explained: set[str] = set()

    def listed(self) -> dict[str, Problem]:
        """As the page shows them now; all that lasts is explained by some fault."""
        with suppress(URLError, ConnectionError), urlopen(f"{self.plant.page}/api/overview", timeout=60) as answer:
            problems = {f"{problem['subject']}: {problem['sentence']}": problem for problem in json.load(answer)["problems"]}
            known = {key: problem for key, problem in problems.items() if problem["subject"] not in OF_THE_MACHINE}
            self.others |= {key: problem["severity"] for key, problem in known.items() if problem["subject"] not in self._explained}
            return known
        return {"page": {"subject": "page", "sentence": "does not answer"}}

    def put_to(self, faults: Sequence[Fault]) -> None:
        """All at once; each is seen everywhere, and is over everywhere when it has ended."""
        self._explained |= {fault.subject for fault in faults} | {"device press-1"}
        begin = time.monotonic()
        for fault in faults:
            fault.begin(self.plant)
        shown = self._wait(faults, begin, are_shown=True)
        self._shown_everywhere(faults, shown)
        for fault in faults:
            fault.end(self.plant)
            if fault.is_command:
                command = shown[fault.name]["command"]
                assert tidemark(self.plant.conf, *shlex.split(command)[3:]).returncode == 0, command
        lasting = [fault for fault in faults if not fault.lasts]
        self._wait(lasting, time.monotonic(), are_shown=False)
        self._explained -= {fault.subject for fault in lasting}

    def _wait(self, faults: Sequence[Fault], begin: float, *, are_shown: bool) -> dict[str, Problem]:
        """Until the page shows them and a channel has heard of them, or of their ends; the problems, by fault."""
        reached: dict[str, Problem] = {}

        def all_are() -> bool:
            problems = self.listed()
            for fault in faults:
                problem = _problem_of(fault, problems)
                is_told = self._is_firing(fault.subject) or problem.get("severity") == "notice"  # notices are for the page
                if fault.name not in reached and bool(problem) is is_told is are_shown:
                    reached[fault.name] = problem
                    self.seconds.setdefault(fault.name, []).append(round(time.monotonic() - begin, 1))
            return len(reached) == len(faults)

        def missing() -> object:
            names, messages = {fault.name for fault in faults} - reached.keys(), self.plant.on_call.documents[-9:]
            return names, self.listed(), messages, self.up.said[-3000:]

        until(all_are, missing, PAUSE_SECONDS)
        return reached

    def _shown_everywhere(self, faults: Sequence[Fault], shown: dict[str, Problem]) -> None:
        """By `status`, also where the conf that is written has mistakes, and by metrics."""
        status = tidemark(self.plant.conf, "status", "problems", "--format", "json")
        is_bad = REFUSED in faults or any(problem["severity"] == "critical" for problem in shown.values())
        assert status.returncode == int(is_bad), status.stderr
        assert {problem["subject"] for problem in shown.values()} <= {row["subject"] for row in json.loads(status.stdout)}
        with urlopen(f"{self.plant.page}/metrics", timeout=60) as answer:
            metrics = answer.read().decode()
        for problem in shown.values():
            about = problem["subject"].partition(" ")[0]
            assert re.search(f'tidemark_problems{{about="{about}",severity="{problem["severity"]}"}} [1-9]', metrics), problem

    def _is_firing(self, subject: str) -> bool:
        """Whether that is the last message about it."""
        states = [body["state"] for body in self.plant.on_call.documents if subject in body["entities"]]
        return states[-1:] == ["firing"]


def _problem_of(fault: Fault, problems: dict[str, Problem]) -> Problem:
    matching = (problem for problem in problems.values() if problem["subject"] == fault.subject)
    return next((problem for problem in matching if re.search(fault.sentence, problem["sentence"])), {})


@pytest.fixture
def bars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bars]:
    """A plant of which everything is well, and has been for some time."""
    with plant(tmp_path) as made:
        for name, value in environment(made).items():
            monkeypatch.setenv(name, value)
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # who ends the test by it ends the plant too
        try:
            with made.fed():
                running = Bars(made)
                try:
                    until(lambda: _is_usual(running), lambda: (running.listed(), running.up.said[-3000:]), PAUSE_SECONDS)
                    running.others.clear()
                    yield running
                finally:
                    kill(running.up)
        finally:
            signal.signal(signal.SIGTERM, before)


def kill(up: Up) -> None:
    """Leave nothing of it, whatever it is at; nothing to do where the test has ended it."""
    up.process.kill()
    up.process.wait()
    for process in up.left():
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _is_usual(running: Bars) -> bool:
    """Each device has come often enough to be missed."""
    file = running.plant.folder / "lake" / "devices.json"
    watched = json.loads(file.read_text())["devices"] if file.exists() else {}
    counts = [device["arrivals"]["count"] for device in watched.values()]
    readings = [metric["readings"] for name, device in watched.items() if name == "probe" for metric in device["metrics"].values()]
    return len(counts) == 15 and min(counts) >= 6 and min(readings) > 120 and not running.listed()


def end_and_start(bars: Bars) -> None:
    """A killed `up` is told by `status`, as its page is gone too. Then an undeclared device is declared, and what it sent is admitted."""
    os.kill(bars.up.process.pid, signal.SIGKILL)
    bars.up.process.wait()
    until(lambda: not bars.up.left(), bars.up.left)
    status = tidemark(bars.plant.conf, "status", "problems", "--format", "json")
    (worst, *_) = json.loads(status.stdout)
    assert (status.returncode, worst["subject"], worst["severity"]) == (1, "lake", "critical")
    assert "Nothing runs: `tidemark up` is gone without a word" in worst["sentence"]
    change(bars.plant, "devices", lambda content: content["devices"].update({"PMP-11": {"groups": ["all"]}}))
    bars.up = Up(bars.plant.conf)
    until(lambda: {problem["subject"] for problem in bars.listed().values()} == {"device PMP-11"}, bars.listed, PAUSE_SECONDS)
    retried = tidemark(bars.plant.conf, "quarantine", "retry", "--rule", "device_is_known")
    assert retried.returncode == 0, retried.stderr
    until(lambda: not bars.listed(), bars.listed, PAUSE_SECONDS)


def test_each_fault_is_one_problem_wherever_the_list_is_shown_and_ends_with_it(bars: Bars) -> None:
    for faults in ((*REACHED, *DEVICES, *_of_disk(bars.plant), REFUSED), (GATE, DEAD_LETTERS, EXPECTATION)):
        bars.put_to(faults)
    end_and_start(bars)
    print(bars.seconds)
    assert bars.others == {}
    bars.plant.stop.set()
    assert bars.up.end() == 0
    for command in ("ledger", "verify"):
        ended = tidemark(bars.plant.conf, command)
        assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.slow
def test_one_fault_after_the_other_is_told_within_30_seconds_and_is_over_within_30_seconds(bars: Bars, seed: int | None) -> None:
    faults = [*REACHED, *DEVICES, *_of_disk(bars.plant), GATE, DEAD_LETTERS]
    random.Random(seed or 1).shuffle(faults)
    for fault in (UNREPLAYED, *faults, REFUSED, HELD_BACK, EXPECTATION):
        bars.put_to((fault,))
    print(bars.seconds)
    slow = {fault.name: bars.seconds[fault.name] for fault in faults if max(_late(fault, bars.seconds[fault.name])) > LIMIT_SECONDS}
    assert slow == {}
    end_and_start(bars)
    assert bars.others == {}


def _of_disk(made: Plant) -> tuple[Fault, ...]:
    return (DISK,) if made.disk.is_own else ()


def _late(fault: Fault, seconds: Sequence[float]) -> Iterator[float]:
    """Seconds behind the instant from which it is one, and behind its end."""
    shown, *over = seconds
    yield shown - fault.seconds
    yield from over
