"""Jobs that `tidemark up` starts by the clock: each a command, never twice at once, with a row in ops.runs when it has ended."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cronsim import CronSim

from orchestration.conf.model import Conf
from orchestration.conf.pipeline_settings import ScheduleSettings
from orchestration.errors import sentence_of
from orchestration.location import Location
from orchestration.service.process import Command, Write, cause

OUTCOMES = {0: "done", 1: "no"}
DRAIN_SECONDS = 10.0


@dataclass(frozen=True)
class _Begun:
    due_at: datetime
    started_at: datetime
    snapshot_id: int | None
    command: Command


class Jobs:
    """The jobs of one lake, whose ops.runs says what was done before."""

    def __init__(self, conf: Conf, write: Write) -> None:
        """Starts nothing; without schedules no table is read."""
        self._write = write
        self._running: dict[str, _Begun] = {}
        self.follow(conf)

    def follow(self, conf: Conf) -> None:
        """Take another conf. A running job goes on as it began."""
        self._conf = conf
        self._due: dict[str, datetime] = {}

    def look(self, now: datetime) -> None:
        """Start what is due, and note what has ended."""
        for name in [*self._running]:
            if (code := self._running[name].command.exit_code()) is not None:
                self._note(name, self._running.pop(name), code, now)
        if not self._due:
            self._due = dict(_next_times(self._conf, now))
        for name, due_at in self._due.items():
            if due_at <= now and name not in self._running:
                self._due[name] = next(CronSim(self._conf.schedules[name].cron, now))
                try:
                    self._running[name] = self._begin(name, due_at, now)
                except Exception as error:
                    reason = sentence_of(error)
                    self._write("up", f"{name}: broke before it began: {reason}")
                    _append(self._conf.lake, name, due_at, now, 0.0, "broke", None, reason)

    def end(self, now: datetime) -> None:
        """End running jobs, and note that in ops.runs."""
        for running in self._running.values():
            running.command.drain()
        for name in [*self._running]:
            running = self._running.pop(name)
            running.command.end(DRAIN_SECONDS)
            self._note(name, running, None, now)

    def _begin(self, name: str, due_at: datetime, now: datetime) -> _Begun:
        from orchestration.storage.snapshots import find_snapshot

        snapshot = find_snapshot(self._conf.lake)
        self._write("up", f"{name}: begins, as it was due at {due_at:%Y-%m-%dT%H:%MZ}")
        if (sql := self._conf.schedules[name].sql) is not None:
            sql.to.parent.mkdir(parents=True, exist_ok=True)
        command = Command(name, arguments(self._conf.schedules[name]), self._conf.folder, self._write)
        return _Begun(due_at, now, snapshot.snapshot_id if snapshot else None, command)

    def _note(self, name: str, running: _Begun, code: int | None, now: datetime) -> None:
        outcome = "ended" if code is None else OUTCOMES.get(code, "broke")
        error = running.command.error
        reason = error[0] if error else f"it ended by {cause(code)}" if outcome == "broke" and code is not None else None
        seconds = (now - running.started_at).total_seconds()
        self._write("up", f"{name}: {outcome} after {seconds:.0f} s" + (f": {reason}" if reason else ""))
        _append(self._conf.lake, name, running.due_at, running.started_at, seconds, outcome, running.snapshot_id, reason)


def arguments(schedule: ScheduleSettings) -> list[str]:
    """The command line of a job."""
    if schedule.sql is None:
        return schedule.line.split()
    file: Path = schedule.sql.to
    return ["sql", "--format", file.suffix[1:], "--output", str(file), "--", schedule.sql.query]


def _next_times(conf: Conf, now: datetime) -> Iterator[tuple[str, datetime]]:
    """In the past where a time was missed; a job that is new counts from now on."""
    if not conf.schedules:
        return
    from orchestration.storage.ops_tables import RUNS

    before = RUNS.last_of_each(conf.lake, "job")
    for name, schedule in conf.schedules.items():
        if name not in before:
            _append(conf.lake, name, now, now, 0.0, "declared", None, None)
        yield name, next(CronSim(schedule.cron, before[name].due_at if name in before else now))


def _append(lake: Location, *values: object) -> None:
    from orchestration.storage.ops_tables import RUNS, RunOfJob  # pyarrow takes a while, and many a conf has no schedules

    RUNS.append(lake, [RunOfJob(*values)])  # type: ignore[arg-type]
