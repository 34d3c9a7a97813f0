"""The gate: gold reads of silver only what has passed, or what somebody released.

What gold reads is silver.readings, by its streams, and silver.late, by amendments; each is judged by the critical expectations of its
own suites, and only the rows that came. A failure stops the hand-over; ingestion goes on. Nothing more is looked at until the versions
that failed are released: until then gold stays where it is, whatever else comes.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from expectations.suite import Severity, Suite
from orchestration import crash
from orchestration.conf.model import Conf, GateMode
from orchestration.engine.lake import Lake
from orchestration.errors import HeldError, TidemarkError
from orchestration.quality import suites
from orchestration.quality.outcome import Cause, Run, TableResult, run_id
from orchestration.storage.delta import version_of
from orchestration.storage.gate_state import (
    GATED,
    LATE,
    READ_BY_GOLD,
    Failure,
    Passage,
    closed,
    closed_gates,
    count_releases,
    is_holding,
    keep,
    passage,
)
from orchestration.storage.lease import sole_writer
from orchestration.storage.positions import accounted_for, retried

PAUSE_SECONDS = 1.0


class GateClosedError(TidemarkError):
    """Gold was left where it is."""

    exit_code = 1


class Handover:
    """What silver hands over to gold, for one run. Without a gate that holds, everything."""

    def __init__(self, lake: Lake, stop: threading.Event, tell: Callable[[str], None]) -> None:
        """`tell` hears once of each failure; after `stop` nothing is waited for."""
        self._lake, self._stop, self._tell = lake, stop, tell
        self._told: set[tuple[str, int]] = set()
        self.holds = is_holding(lake.conf)

    def is_open(self) -> bool:
        """Whether all that gold would read now has passed; looks at what has not been looked at yet."""
        return not self.holds or (self._has_passed(GATED) and not self._late().is_closed)

    def let_late_through(self) -> None:
        """Look at what came to silver.late, so that amendments may fold it in."""
        if self.holds:
            self._has_passed(LATE)

    def warn(self) -> None:
        """Look at what came to the tables whose gate only warns."""
        for name, mode in self._lake.conf.quality.gates.items():
            if mode is GateMode.WARN and not self._stop.is_set():
                self._look(name)

    def releases(self) -> int:
        """It grows with each release."""
        return count_releases(self._lake.conf.lake)

    def refuse_closed(self) -> None:
        """GateClosedError where gold was left behind."""
        for found in closed_gates(self._lake.conf, self._lake.table_path):
            raise GateClosedError(closed(found))

    def _has_passed(self, name: str) -> bool:
        """After `stop` maybe not."""
        found = self._look(name)
        return found is not None and not found.is_closed

    def _late(self) -> Passage:
        return passage(self._lake.conf.lake, LATE, self._lake.table_path(LATE))

    def _look(self, name: str) -> Passage | None:
        """None where the run is to end before what failed could be kept."""
        found = look(self._lake, name, self._stop)
        if found is not None and found.failure is not None and (name, found.failure.version) not in self._told:
            self._told.add((name, found.failure.version))
            self._tell(closed(found) if found.is_closed else f"{name}: {found.failure}")
        return found


def look(lake: Lake, name: str, stop: threading.Event) -> Passage | None:
    """Judge what came to a table since its gate last did, and write down how far it has passed. Only who writes the lake may."""
    marks = {"accounted_for": accounted_for(lake), "retried": retried(lake)} if name == LATE else {}
    known, holds = passage(lake.conf.lake, name, lake.table_path(name)), is_holding(lake.conf) and name in READ_BY_GOLD
    newest = version_of(lake.table_path(name))
    if (holds and known.is_closed) or (newest, marks) == (known.version, known.marks):
        return known
    found = replace(known, version=newest, marks=marks)
    run = _judged(lake, known, newest)
    if run is not None:
        if not run.tables[0].failed:
            found = replace(found, failure=None)
        elif _kept(lake, run, stop):
            found = replace(known if holds else found, failure=_failure(known.version, run))
            if known.failure is None and lake.conf.quality.webhook:
                # Whoever reads the table does not wait for the host; a process that ends does, for at most 20 s.
                threading.Thread(target=_announce, args=(lake.conf.quality.webhook, run, known.version < 0), name="webhook").start()
        else:
            return None
    keep(lake.conf.lake, found)
    return found


def _failure(after: int, run: Run) -> Failure:
    from orchestration.quality.report import failures

    (table,) = run.tables
    assert table.version is not None
    return Failure(after, table.version, f"{run.run_at:%Y-%m-%d %H:%M:%SZ}", tuple(failures(run)))


def _announce(url: str, run: Run, is_new: bool) -> None:
    from orchestration.quality.trend import Change
    from orchestration.quality.webhook import tell

    (table,) = run.tables
    tell(url, run, [Change(table, result, is_new) for result in table.failed], None)


def _judged(lake: Lake, known: Passage, newest: int) -> Run | None:
    """None where no row came: a compaction brings none, nor does a batch of which nothing is good."""
    # These take a second to import: runs without a gate do without.
    from orchestration.quality.store import count_of, opened, pinned, show

    run_at = datetime.now(UTC)
    rows = pinned(known.table, lake.table_path(known.table), None if known.version < 0 else (known.table_id, known.version), newest)
    if rows.is_unchanged:
        return None
    with closing(opened()) as store:
        show(store, rows)
        if not (count := count_of(store, rows.view)):
            return None
        from orchestration.quality.check import judged

        results = [
            result for suite in _critical(lake.conf, known.table) for result in judged(store, suite, [rows.view], lake.conf, rows.since)
        ]
        found = TableResult(known.table, newest, known.table_id, count, tuple(results))
    return Run(run_id(run_at), run_at, lake.conf.pipeline, Cause.GATE, (found,))


def _critical(conf: Conf, table: str) -> Iterator[Suite]:
    """What closes a gate: of suites that judge the rows of this table alone, without a look at the past."""
    for suite in suites.suites(conf):
        critical = tuple(each for each in suite.expectations if each.severity is Severity.CRITICAL and each.type.startswith("expect_"))
        if suite.applies_to(table) and not suite.together_with and critical:
            yield replace(suite, expectations=critical)


def _kept(lake: Lake, run: Run, stop: threading.Event) -> bool:
    """Among the results; somebody who looks at the tables meanwhile is waited for."""
    from orchestration.quality.publish import keep as keep_run

    while not stop.is_set():
        try:
            with sole_writer(lake.conf.lake / "quality"):
                keep_run(lake, run)
                crash.point(crash.Point.GATE_FAILED)
                return True
        except HeldError:
            stop.wait(PAUSE_SECONDS)
    return False
