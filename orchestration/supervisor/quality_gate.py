"""The quality gate: gold reads only versions of silver that have passed, or that somebody released.

Gold's streams read silver.readings, and amendments read silver.late. The critical expectations of their suites are
evaluated on new rows. After a failure gold stops and ingestion goes on. Nothing more is checked until the failed versions are released.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from expectations.suite import Severity, Suite
from orchestration import crash
from orchestration.conf.model import Conf, GateMode
from orchestration.connectors.outages import Outages, current_outage
from orchestration.engine.lake import Lake
from orchestration.errors import HeldError, TidemarkError, describe
from orchestration.quality import quality_tables, suites
from orchestration.quality.outcome import Cause, Run, TableResult, run_id
from orchestration.storage.delta import version_of
from orchestration.storage.gate_state import (
    GATED,
    LATE,
    READ_BY_GOLD,
    Failure,
    GateState,
    closed_gates,
    describe_closed,
    is_holding,
    read_gate_state,
    write_gate_state,
)
from orchestration.storage.positions import accounted_for, retried

PAUSE_SECONDS = 1.0


class GateClosedError(TidemarkError):
    """Gold was left where it is."""

    exit_code = 1


class UncheckedError(TidemarkError):
    """The rows of a table could not be looked at: an expectation, or the store of results, broke."""


class QualityGate:
    """The gate of one run. Where conf holds nothing back, it is always open."""

    def __init__(self, lake: Lake, stop: threading.Event, tell: Callable[[str], None]) -> None:
        """`tell` gets each failure once; after `stop` the gate waits for nothing."""
        self._lake, self._stop, self._tell = lake, stop, tell
        self._reported: set[tuple[str, int]] = set()
        self.holds = is_holding(lake.conf)
        self._outages = Outages(
            lake.conf.lake, "gate", lambda notice: tell(notice.facts.get("reason", f"{notice.facts['gate']} is checked again"))
        )

    def is_open(self) -> bool:
        """Whether every version that gold would read now has passed; checks new versions of silver.readings first."""
        return not self.holds or (
            self._has_passed(GATED) and not read_gate_state(self._lake.conf.lake, LATE, self._lake.table_path(LATE)).is_closed
        )

    def let_late_through(self) -> None:
        """Check new versions of silver.late, so that amendments may read them."""
        if self.holds:
            self._has_passed(LATE)

    def warn(self) -> None:
        """Check new versions of the tables whose gate only warns."""
        for name, mode in self._lake.conf.quality.gates.items():
            if mode is GateMode.WARN and not self._stop.is_set():
                self._check(name)

    def refuse_closed(self) -> None:
        """GateClosedError where gold was left behind, also as nobody could look at its rows."""
        for name in READ_BY_GOLD if self.holds else ():
            if unchecked := current_outage(self._lake.conf.lake, "gate", name):
                raise GateClosedError(unchecked.reason)
        for closed in closed_gates(self._lake.conf, self._lake.table_path):
            raise GateClosedError(describe_closed(closed))

    def _has_passed(self, name: str) -> bool:
        """False also where `stop` came before the failure was kept, and where it cannot be told."""
        state = self._check(name)
        return state is not None and not state.is_closed

    def _check(self, name: str) -> GateState | None:
        """None where `stop` came before the failure was kept, and where the check broke: then it is made again."""
        try:
            state = check_gate(self._lake, name, self._stop)
        except UncheckedError as error:
            self._outages.failed(name, str(error))
            return None
        self._outages.answered(name)
        if state is not None and state.failure is not None and (name, state.failure.version) not in self._reported:
            self._reported.add((name, state.failure.version))
            self._tell(describe_closed(state) if state.is_closed else f"{name}: {state.failure}")
        return state


def check_gate(lake: Lake, name: str, stop: threading.Event) -> GateState | None:
    """Evaluate the rows that are new since the last check, and keep the state. Only the writer of the lake may call this."""
    marks = {"accounted_for": accounted_for(lake), "retried": retried(lake)} if name == LATE else {}
    before, holds = read_gate_state(lake.conf.lake, name, lake.table_path(name)), is_holding(lake.conf) and name in READ_BY_GOLD
    newest = version_of(lake.table_path(name))
    if (holds and before.is_closed) or (newest, marks) == (before.version, before.marks):
        return before
    state = replace(before, version=newest, marks=marks)
    try:
        run = _evaluate_new_rows(lake, before, newest)
        is_good = run is None or not run.tables[0].failed
        is_kept = run is None or is_good or _store(lake, run, stop)
    except Exception as error:
        held = "so gold is not updated: " if holds else ""
        raise UncheckedError(f"{name} cannot be checked, {held}{describe(error).removeprefix('tidemark: ')}") from error
    if run is not None:
        if is_good:
            state = replace(state, failure=None)
        elif is_kept:
            state = replace(before if holds else state, failure=_failure(before.version, run))
        else:
            return None
    write_gate_state(lake.conf.lake, state)
    return state


def _failure(after: int, run: Run) -> Failure:
    from orchestration.quality.report import failures

    (table,) = run.tables
    assert table.version is not None
    return Failure(after, table.version, f"{run.run_at:%Y-%m-%d %H:%M:%SZ}", tuple(failures(run)))


def _evaluate_new_rows(lake: Lake, before: GateState, newest: int) -> Run | None:
    """None without new rows: a compaction adds none, nor does a batch without a good row."""
    # A run without a gate does not pay a second for these imports.
    from orchestration.quality.check import evaluate
    from orchestration.quality.store import create_view, open_store, pin_table, row_count

    run_at = datetime.now(UTC)
    since = None if before.version < 0 else (before.table_id, before.version)
    rows = pin_table(before.table, lake.table_path(before.table), since, newest, lake.conf.group_of(before.table))
    if rows.is_unchanged:
        return None
    with closing(open_store()) as store:
        create_view(store, rows)
        if not (count := row_count(store, rows.view)):
            return None
        critical = _critical(lake.conf, before.table)
        results = [result for suite in critical for result in evaluate(store, suite, [rows.view], lake.conf, rows.since)]
    table = TableResult(before.table, newest, before.table_id, count, tuple(results))
    return Run(run_id(run_at), run_at, lake.conf.pipeline, Cause.GATE, (table,))


def _critical(conf: Conf, table: str) -> Iterator[Suite]:
    """The suites that can close a gate: critical expectations about rows of this table alone, none about history."""
    for suite in suites.suites(conf):
        critical = tuple(
            expectation
            for expectation in suite.expectations
            if expectation.severity is Severity.CRITICAL and expectation.type.startswith("expect_")
        )
        if suite.applies_to(table) and not suite.together_with and critical:
            yield replace(suite, expectations=critical)


def _store(lake: Lake, run: Run, stop: threading.Event) -> bool:
    """Append the run to the quality tables; waits while another process holds them. False where `stop` came first."""
    from orchestration.quality.check import store_run

    while not stop.is_set():
        try:
            with quality_tables.lock(lake.conf.lake):
                store_run(lake, run)
                crash.point(crash.Point.GATE_FAILED)
                return True
        except HeldError:
            stop.wait(PAUSE_SECONDS)
    return False
