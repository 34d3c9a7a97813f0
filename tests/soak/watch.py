"""`tidemark up` of a plant, and what it says of itself: in its journal, by `tidemark status`, on its page."""

import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil

from orchestration.location import Location
from orchestration.service.journal import lines
from orchestration.service.process import session_of
from orchestration.storage.snapshots import find_snapshot
from orchestration.supervisor.service_state import PartState, read_service
from tests.services import Up, rows
from tests.soak.plant import Plant
from tests.waiting import until

NOTICE_SECONDS = 240.0
"""In which `up` has said of a disturbance what it is, at the latest: of a store that is stopped it knows after two minutes (measured)."""
RECOVER_SECONDS = 300.0
"""In which all is as it was, and a new snapshot holds what has come meanwhile. A part that ends often waits a minute; Spark starts slowly
on two cores."""
TAKE_OVER_SECONDS = 30.0
"""In which an `up` runs all parts when the one before it was killed."""
LOOK_SECONDS = 0.5


class Watch:
    """`up`: the one that runs now. `heard`: seconds to what was waited for since `begin`, by what it was."""

    def __init__(self, plant: Plant) -> None:
        """Starts it."""
        self.plant, self.lake = plant, Location(plant.lake)
        self.up = Up(plant.conf_folder)
        self.begin()

    def begin(self) -> None:
        """What was said before is not looked at any more."""
        self._begun, self._known = time.monotonic(), len(self._journal())
        self.heard: dict[str, float] = {}

    def hears(self, pattern: str, seconds: float = NOTICE_SECONDS) -> None:
        """Until `up` has written such a line into the journal."""
        self._awaits(f"hears {pattern}", lambda: any(re.search(pattern, line) for line in self.journal()), seconds)

    def shows(self, pattern: str, seconds: float = NOTICE_SECONDS) -> None:
        """Until the page shows such a trouble."""
        self._awaits(f"shows {pattern}", lambda: any(re.search(pattern, line) for line in self.troubles() or ()), seconds)

    def lists(self, part: str, state: str, reason: str) -> None:
        """`tidemark status parts` says so now."""
        row = next(row for row in rows(self.plant.conf_folder, "status", "parts") if row["part"] == part)
        assert row["state"] == state and re.search(reason, str(row["reason"])), row

    def recovers(self) -> None:
        """Until all parts run, nothing critical is wrong, and a snapshot was taken since: simulated devices are silent at times."""
        before = self.snapshot()
        self._awaits("recovers", lambda: self.runs() and self.snapshot() > before and self.troubles("critical") == [], RECOVER_SECONDS)

    def takes_over(self) -> None:
        """Another `up` is started, as this one was killed: it runs all parts soon, and nothing of the one before is left."""
        before = self.processes()
        os.kill(self.up.process.pid, signal.SIGKILL)
        self.up.process.wait()
        begin = time.monotonic()
        self.up = Up(self.plant.conf_folder)
        self.heard["takes over"] = time.monotonic() - begin
        assert self.heard["takes over"] < TAKE_OVER_SECONDS, self.heard
        assert not [process for process in before if lives(process)]

    def kill(self, part: str) -> None:
        """And wait until `up` says so and has started it again; nothing of its session is left then."""
        before = [*session_of(self.pid(part))]
        self.up.kill(part)
        self.hears(f"{part}: waiting: it ended by SIGKILL")
        self.hears(f"{part}: running")
        assert not [process for process in before if lives(process)]

    def part(self, name: str) -> PartState:
        return self.up.part(name)

    def pid(self, name: str) -> int:
        """Of a part that runs."""
        pid = self.part(name).pid
        assert pid is not None, self.part(name)
        return pid

    def jvm(self) -> psutil.Process:
        """Of the streams; waited for, as Spark starts behind Python."""
        found: list[psutil.Process] = []

        def is_there() -> bool:
            found[:] = [process for process in session_of(self.pid("streams")) if process.name() == "java"]
            return bool(found)

        until(is_there)
        return found[0]

    def processes(self) -> list[psutil.Process]:
        """All that runs, without `up`."""
        return self.up.left()

    def restarts(self) -> dict[str, int]:
        """By part, since this `up` began."""
        service = read_service(self.lake)
        return {part.name: part.restarts for part in service.parts} if service else {}

    def runs(self) -> bool:
        """All parts do."""
        service = read_service(self.lake)
        return service is not None and all(part.state == "running" for part in service.parts)

    def snapshot(self) -> int:
        """The newest one; -1 before the first."""
        newest = find_snapshot(self.lake)
        return newest.snapshot_id if newest else -1

    def troubles(self, *severities: str) -> list[str] | None:
        """As the page shows them, all or those of these severities; None where it does not answer."""
        facts = self.overview()
        if facts is None:
            return None
        return [trouble["sentence"] for trouble in facts["problems"] if not severities or trouble["severity"] in severities]

    def overview(self) -> dict[str, Any] | None:
        """/api/overview."""
        try:
            with urllib.request.urlopen(f"{self.plant.page}/api/overview", timeout=60) as answer:
                facts: dict[str, Any] = json.load(answer)
                return facts
        except (OSError, ValueError):
            return None

    def journal(self) -> list[str]:
        """What `up` has said since `begin`."""
        return self._journal()[self._known :]

    def kill_all(self) -> None:
        """Whatever still runs, as a soak that has failed leaves it."""
        self.up.process.kill()
        self.up.process.wait()
        for process in self.processes():
            with suppress(psutil.Error):
                process.kill()

    def _journal(self) -> list[str]:
        return [line for line in lines(self.lake, "up", follow=False) if " up " in line[:40]]

    def _awaits(self, what: str, holds: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        until(lambda: holds() or time.monotonic() > end, pause_seconds=LOOK_SECONDS)
        told = json.dumps({"journal": self.journal()[-20:], "page": self.troubles(), "heard": self.heard}, indent=1)
        assert holds(), f"not in {seconds:.0f} s: {what}\n{told}\n{self.up.said[-2000:]}"
        self.heard[what] = round(time.monotonic() - self._begun, 1)


def lives(process: psutil.Process) -> bool:
    """It has not ended, and does not wait to be asked how."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
