"""`tidemark up`: start the parts that the conf asks for, keep them running, restart them when the conf changes, end all of them.

Each part is a process (process.py). This one needs no Spark, and asks the lake only whether it can go on with a conf.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from orchestration.conf.load import ACCEPTED, read_conf
from orchestration.conf.model import Conf
from orchestration.end_signals import end_by_signals
from orchestration.errors import ConfError, describe
from orchestration.service.jobs import Jobs
from orchestration.service.journal import Journal
from orchestration.service.parts import COLLECTOR, STREAMS, concern_of, parts_of
from orchestration.service.process import DRAIN_SECONDS, Process, end_session
from orchestration.service.refusal import Refusal
from orchestration.storage.confs import files_in, held_back, keep_files, refusal
from orchestration.storage.disk import Room, room
from orchestration.storage.lease import sole_writer
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.service_state import (
    PartState,
    ServiceState,
    folder_of,
    keep_reserve,
    last_beat,
    read_service,
    write_service,
)

LOOK_SECONDS = 0.2
CONF_SECONDS = 2.0
PAUSE_SECONDS = 60.0
LEFTOVERS_SECONDS = 20.0
"""How long to wait for the processes of a killed `up`, which end by themselves after their batch."""
TRIGGERS = 3
LEAST_SILENCE_SECONDS, START_SECONDS = 30.0, 180.0
"""Streams without a heartbeat for so long count as hanging; `START_SECONDS` holds until the first one, as they read state first."""


class Service:
    """The service of one lake, in one process."""

    def __init__(self, folder: Path, tell: Callable[[str], None], names: Sequence[str] = ()) -> None:
        """`folder`: the conf. `tell`: prints a line of the journal on the terminal. `names`: the parts to run; all parts if empty."""
        self._folder, self._tell, self._names = folder, tell, names
        self.conf = read_conf(folder)
        names_of_parts = [part.name for part in parts_of(self.conf)]
        if odd := sorted({*names} - {*names_of_parts}):
            raise ConfError(f"there is no part {odd[0]}; the parts of this conf are {', '.join(names_of_parts)}")
        self.stop = threading.Event()
        self._processes: dict[str, Process] = {}
        self._jobs, self._jobs_from = Jobs(self.conf, self._write), 0.0
        self._written: ServiceState | None = None
        self._refusal = Refusal(folder, self._write)
        self._waiting: Conf | None = None
        """A conf without mistakes that the lake may refuse; after a replay it does not any more."""
        self._stamp = self._seen = _stamp(folder)

    def run(self) -> None:
        """Run until SIGTERM or Ctrl-C; raise HeldError if another `up` runs this lake."""
        lake = self.conf.lake
        doing = f"runs the lake at {lake} by `tidemark up`"
        with sole_writer(folder_of(lake), self._tell, doing):
            end_by_signals(self.stop)
            self._journal = Journal(lake)
            self._end_leftovers()
            self._refusal.lift(self.conf)  # as an `up` that was killed left it
            os.environ[ACCEPTED] = str(files_in(lake))
            self._begin()
            self._follow_conf()
            next_look = 0.0
            try:
                while not self.stop.wait(LOOK_SECONDS):
                    self._look()
                    if time.monotonic() >= next_look:
                        next_look = time.monotonic() + CONF_SECONDS
                        self._follow_changes()
            finally:
                self._end()

    def _begin(self) -> None:
        """Begin with the conf that was taken up last where the lake refuses the one that is written now; ConfError where none was."""
        if self._refusal.is_refused(self.conf, self.conf):
            accepted = files_in(self.conf.lake)
            if not accepted.is_dir():
                raise refusal(LakeStore(self.conf), self._folder, held_back(LakeStore(self.conf)))
            self._waiting, self.conf = self.conf, read_conf(self._folder, accepted)
            self._jobs.follow(self.conf)
        else:
            keep_files(self.conf)

    def _end_leftovers(self) -> None:
        """End the processes of an `up` that was killed: they would hold the lake, or its ports."""
        before = read_service(self.conf.lake)
        end = time.monotonic() + LEFTOVERS_SECONDS
        for part in before.parts if before else ():
            if part.pid is not None:
                end_session(part.pid, part.started, max(end - time.monotonic(), 0.1))

    def _follow_conf(self) -> None:
        """Make a process for each part that the conf asks for; end those of other parts."""
        parts = {part.name: part for part in parts_of(self.conf) if not self._names or part.name in self._names}
        for name in [name for name, process in self._processes.items() if process.part != parts.get(name)]:
            self._processes.pop(name).end()
        for name, part in parts.items():
            if name not in self._processes:
                self._processes[name] = Process(part, self._folder, self._write)

    def _follow_changes(self) -> None:
        """If the conf has changed, has no mistakes and the lake can go on with it, restart the parts that the change concerns."""
        before, self._seen = self._seen, _stamp(self._folder)
        if self._seen != self._stamp and self._seen == before:  # files are often saved one after another
            self._stamp = self._seen
            self._waiting = self._refusal.read_conf(self.conf)
        if self._waiting is not None and not self._refusal.is_refused(self._waiting, self.conf):
            conf, self._waiting = self._waiting, None
            self._refusal.lift(conf)
            self._take_up(conf)

    def _take_up(self, conf: Conf) -> None:
        before_change, self.conf = self.conf, conf
        keep_files(conf)
        self._follow_conf()
        for name, process in self._processes.items():
            if concern_of(name, conf) != concern_of(name, before_change) or process.state.state == "stopped":
                process.start_again("conf has changed")
        self._jobs.follow(conf)

    def _look(self) -> None:
        is_full = room(self.conf.lake.local, self.conf.maintenance.least_free_bytes)[0] is Room.FULL
        for process in self._processes.values():
            if not _waits_for_room(process.state, is_full=is_full):
                process.look()
        if (streams := self._processes.get(STREAMS)) is not None:
            self._watch(streams)
        if not is_full and not self._names and time.monotonic() >= self._jobs_from:
            self._look_at_jobs()
        self._note(is_full)

    def _look_at_jobs(self) -> None:
        """Start the scheduled jobs that are due. An error is written to the journal, and the parts go on."""
        try:
            self._jobs.look(datetime.now(UTC))
        except Exception as error:
            self._jobs_from = time.monotonic() + PAUSE_SECONDS
            self._write("up", f"schedules: {describe(error)}; they are looked at again in {PAUSE_SECONDS:.0f} s")

    def _watch(self, streams: Process) -> None:
        """Mark streams as hanging, or end them, if their heartbeat is too old: a stopped process reports no error itself."""
        if streams.state.started is None or streams.is_draining:
            return
        beat = last_beat(self.conf.lake)
        started = streams.state.started
        silence = time.time() - max(beat or 0.0, started)
        patience = max(TRIGGERS * self.conf.engine.trigger_seconds, LEAST_SILENCE_SECONDS)
        if beat is None or beat < started:
            patience = START_SECONDS
        streams.hangs(f"it has said nothing for {silence:.0f} s" if silence > patience else None)
        if silence > max(2 * patience, START_SECONDS):  # a switch of generations takes its time too
            streams.break_off(f"it said nothing for {silence:.0f} s")

    def _note(self, is_full: bool) -> None:
        """Write `up/state.json` for other commands, if something has changed; reserve disk space for it while there is some."""
        if not is_full:
            keep_reserve(self.conf.lake)
        full = "the disk of the lake is full; it starts when there is room"
        states = [process.state for process in self._processes.values()]
        parts = [replace(state, reason=full) if _waits_for_room(state, is_full=is_full) else state for state in states]
        state = ServiceState(os.getpid(), parts)
        if state != self._written:
            with suppress(OSError):  # others were faster than the reserve: the next look tries again
                write_service(self.conf.lake, state)
                self._written = state

    def _end(self) -> None:
        """Ask all parts to end at the same time, then wait: one after the other would take longer."""
        for process in self._processes.values():
            process.drain()
        self._jobs.end(datetime.now(UTC))
        end = time.monotonic() + DRAIN_SECONDS
        for process in reversed(self._processes.values()):
            process.end(max(end - time.monotonic(), 0.1))
        self._refusal.lift(self.conf)
        self._note(is_full=False)

    def _write(self, part: str, text: str) -> None:
        """Write each line of a text to the journal, with the name of the part; a reason may take several lines."""
        for line in text.splitlines() or [""]:
            self._journal.write(part, line)
            if part == "up" or not line.startswith("{"):
                self._tell(line if part == "up" else f"{part}: {line}")


def _waits_for_room(state: PartState, *, is_full: bool) -> bool:
    """Whether a part is not started as it would only fail; the collector refuses by itself what does not fit."""
    return is_full and state.state == "waiting" and state.name != COLLECTOR


def _stamp(folder: Path) -> dict[Path, int]:
    stamps = {}
    for file in folder.rglob("*"):
        with suppress(OSError):
            stamps[file] = file.stat().st_mtime_ns
    return stamps
