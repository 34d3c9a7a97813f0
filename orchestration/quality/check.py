"""One quality run: which suites apply to which tables, at which versions, with which values of conf. Without Spark."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import filterfalse
from typing import Any

import duckdb
import pyarrow as pa

from expectations.suite import Suite
from gold.schema import BESIDE, KINDS
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.errors import sentence_of
from orchestration.quality.failed_rows import FailedRows, append_failed_rows
from orchestration.quality.history import LastRun, append_results
from orchestration.quality.kinds import evaluate_measure, is_measure
from orchestration.quality.measures.context import Context
from orchestration.quality.measures.counts import ledger
from orchestration.quality.outcome import Cause, Outcome, Result, Run, TableResult, run_id
from orchestration.quality.store import (
    PinnedTable,
    copy_rows,
    create_suite_view,
    create_view,
    open_store,
    pin_table,
    row_count,
)
from orchestration.quality.validation import outcomes, true_of_every_row
from orchestration.storage.generations import Generation
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.tables import tables
from silver.aggregation import Aggregation


@dataclass(frozen=True)
class Scope:
    """The tables that a run covers, and why: those of a layer (None: all), at the versions of a snapshot (None: the newest).

    `last_runs`: by table and suite the last run; only rows that are new since then are evaluated. None: all rows are.
    """

    cause: Cause = Cause.ASKED
    layer: str | None = None
    snapshot: Snapshot | None = None
    last_runs: Mapping[tuple[str, str], LastRun] | None = None


def check(lake: Lake, suites: Sequence[Suite], run_at: datetime, notify: Callable[[str], None], scope: Scope) -> Run:
    """Evaluate every declared table of the scope; `notify` gets the name of each table before its turn. `run_at`: UTC."""
    # The ledger is read before any table that it counts. No snapshot pins it, and a retry corrects it later.
    counted = None if scope.snapshot else ledger(lake.table_path("ops.ledger"))
    names = [name for name in checkable_tables(lake.conf) if scope.layer in (None, name.split(".", 1)[0])]
    with closing(open_store()) as store:
        checks, results = _Checks(store, lake, scope, run_at, counted), []
        for suite in suites:
            with suppress(Exception):  # reported when each table has its turn
                checks.prove(suite, [name for name in names if suite.applies_to(name)])
        for name in names:
            notify(name)
            with checks.noting(name):
                results.append(checks.at(name, [suite for suite in suites if suite.applies_to(name)]))
    return Run(run_id(run_at), run_at, lake.conf.pipeline, scope.cause, tuple(results), tuple(checks.broken))


def store_run(lake: Lake, run: Run) -> FailedRows:
    """Append the run to quality.results and quality.failed_rows; returns the rows that fail. The caller holds `quality_tables.lock`."""
    append_results(lake.conf.lake, run)
    return append_failed_rows(lake, run)


def parameters(conf: Conf) -> dict[str, Any]:
    """Values that a suite may name as $PARAMETER."""
    policy = conf.policy
    return {
        "lateness_seconds": policy.lateness_seconds,
        "max_future_seconds": max([policy.max_future_seconds, *conf.ahead_seconds.values()]),
        "max_payload_bytes": policy.max_payload_bytes,
        "sources": sorted(conf.sources),
        "metrics": sorted(conf.metrics),
        "groups": sorted(conf.groups),
        "aggregations": [str(aggregation) for aggregation in Aggregation],
    }


def checkable_tables(conf: Conf) -> dict[str, pa.Schema]:
    """Tables that suites may name, with their columns: declared tables, in gold those of each group, without vectors if it declares
    none.

    For flows the table of each kind, which holds those of all flows.
    """
    of_gold = {
        f"gold.{name}_{kind}": pa.schema([*schema.remove(0), *BESIDE.get(kind, ())])
        for name, group in conf.groups.items()
        for kind, (schema, _) in KINDS.items()
        if (group.vector or kind != "vectors") and (group.anomalies or kind != "anomalies")
    }
    declared = tables(conf, Generation()).items()
    return {name: table.schema for name, table in declared if not name.startswith("gold.") or name in conf.tables_of_incrementals} | of_gold


def _without_measures(suite: Suite) -> Suite:
    return replace(suite, expectations=tuple(filterfalse(is_measure, suite.expectations)))


@dataclass
class _Checks:
    """State of one run. `pins`: tables by name. `new_rows`: by table, table id and version, shared by suites whose last run was the same.

    `proven`: by suite and table the expectations that are known to hold for every row. `broken`: sentences about what has thrown.
    """

    store: duckdb.DuckDBPyConnection
    lake: Lake
    scope: Scope
    run_at: datetime
    counted: pa.Table | None
    pins: dict[str, PinnedTable] = field(default_factory=dict)
    new_rows: dict[tuple[str, str, int], PinnedTable] = field(default_factory=dict)
    proven: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def prove(self, suite: Suite, names: Sequence[str]) -> None:
        """Find expectations that hold for the rows of several groups together, and so for each group. With 300 groups one query takes
        the place of 300."""
        suite = _without_measures(suite)
        if len(names) < 2 or suite.together_with or not suite.expectations:
            return
        rows = [self._rows_of(suite, self._pinned(name)) for name in names]
        alike: dict[str, list[PinnedTable]] = {}
        for table in rows:
            if table.group is not None and not table.is_unchanged:
                alike.setdefault(table.of_all.view, []).append(table)
        for view, of_groups in alike.items():
            proven = true_of_every_row(self.store, create_suite_view(self.store, suite, [view]), suite, parameters(self.lake.conf))
            self.proven.update({(suite.name, table.name): proven for table in of_groups})

    def at(self, name: str, suites: Sequence[Suite]) -> TableResult:
        whole, results = self._pinned(name), list[Result]()
        for suite in suites:
            with self.noting(f"{name}: suite {suite.name}"):
                results += self._results(suite, whole)
        return TableResult(name, whole.version, whole.table_id, row_count(self.store, whole.view), tuple(results))

    @contextmanager
    def noting(self, what: str) -> Iterator[None]:
        """Note what throws, and go on with the others; but the check of a gate ends, or its rows would pass."""
        try:
            yield
        except Exception as error:
            if self.scope.cause is Cause.GATE:
                raise
            self.broken.append(f"{what} cannot be evaluated: {sentence_of(error)}")

    @cached_property
    def context(self) -> Context:
        snapshot = self.scope.snapshot
        now = self.run_at if snapshot is None else snapshot.at
        return Context(self.store, self.lake, now, lambda name: self._pinned(name).view, snapshot is None, self.counted)

    def _pinned(self, name: str) -> PinnedTable:
        """The same version for every caller. A table that does not exist is evaluated as one without rows."""
        if name not in self.pins:
            snapshot, conf = self.scope.snapshot, self.lake.conf
            version = None if snapshot is None else snapshot.versions.get(self.lake.stored(name))
            whole = pin_table(name, self.lake.table_path(name), None, version, conf.group_of(name))
            if whole.version is None:
                copy_rows(self.store, whole.view, checkable_tables(conf)[name].empty_table())
            else:
                create_view(self.store, whole)
            self.pins[name] = whole
        return self.pins[name]

    def _rows_of(self, suite: Suite, whole: PinnedTable) -> PinnedTable:
        """The whole table, or the rows that are new since the last run of the suite."""
        last = (self.scope.last_runs or {}).get((whole.name, suite.name))
        if last is None or suite.together_with:
            return whole
        key = (whole.name, last.table_id, last.version)
        if key not in self.new_rows:
            new = pin_table(whole.name, whole.location, (last.table_id, last.version), whole.version, whole.group)
            if new.since is not None and not new.is_unchanged:
                create_view(self.store, new)
                if new.group is not None and not row_count(self.store, new.view):  # other groups have the new rows
                    new = replace(new, since=new.version)
            self.new_rows[key] = new
        return self.new_rows[key]

    def _results(self, suite: Suite, whole: PinnedTable) -> Iterator[Result]:
        """Measures are evaluated in every run: they depend on the clock, and on new rows as history."""
        of_rows = _without_measures(suite)
        if of_rows.expectations:
            yield from self._results_of_rows(of_rows, whole)
        for measure in filter(is_measure, suite.expectations):
            yield Result(suite.name, measure, evaluate_measure(measure, self.context, whole.name, parameters(self.lake.conf)))

    def _results_of_rows(self, suite: Suite, whole: PinnedTable) -> Sequence[Result]:
        rows = self._rows_of(suite, whole)
        if rows.is_unchanged and self.scope.last_runs:
            return [result for result in self.scope.last_runs[whole.name, suite.name].results if not is_measure(result.expectation)]
        views = [rows.view, *(self._pinned(other).view for other in suite.together_with)]
        return evaluate(self.store, suite, views, self.lake.conf, rows.since, proven=self.proven.get((suite.name, rows.name), set()))


def evaluate(
    store: duckdb.DuckDBPyConnection, suite: Suite, views: Sequence[str], conf: Conf, since: int | None, *, proven: Set[int] = frozenset()
) -> list[Result]:
    """Results of the suite on the rows of all views. If a computed column fails, every expectation fails."""
    try:
        of_suite = outcomes(store, create_suite_view(store, suite, views), suite, parameters(conf), proven)
    except (duckdb.Error, ValueError) as error:
        of_suite = [Outcome(False, f"could not be evaluated: {str(error).splitlines()[0]}")] * len(suite.expectations)
    return [Result(suite.name, expectation, outcome, since) for expectation, outcome in zip(suite.expectations, of_suite, strict=True)]
