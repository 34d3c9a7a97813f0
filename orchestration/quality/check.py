"""One look at the tables: which suite judges which table, at which version, with which values of conf. Without Spark."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

from expectations.suite import Suite
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.quality.history import Look
from orchestration.quality.judged import declare, show_judged
from orchestration.quality.measures.account import ledger
from orchestration.quality.measures.context import Context
from orchestration.quality.measures.kinds import is_ours, measured
from orchestration.quality.outcome import Cause, Outcome, Result, Run, TableResult, run_id
from orchestration.quality.store import Pinned, count_of, opened, pinned, show, show_alike
from orchestration.quality.validation import outcomes, true_of_every_row
from orchestration.storage.snapshot import Snapshot


@dataclass(frozen=True)
class Scope:
    """What a run looks at, and why: the tables of a layer (None: all), as a snapshot pins them (None: as they are now).

    `looks`: by table and suite what an earlier run looked at; only what came since is judged. Empty: everything is.
    """

    cause: Cause = Cause.ASKED
    layer: str | None = None
    snapshot: Snapshot | None = None
    looks: Mapping[tuple[str, str], Look] | None = None

    def has(self, table: str) -> bool:
        """Whether the table of this name is looked at."""
        return self.layer in (None, table.split(".", 1)[0])


def check(lake: Lake, suites: Sequence[Suite], run_at: datetime, tell: Callable[[str], None], scope: Scope) -> Run:
    """Judge every declared table of the scope; `tell` gets the name of each before its turn."""
    # The ledger is read before any table that it counts. No snapshot pins it, and a retry corrects it later.
    counted = None if scope.snapshot else ledger(lake.table_path("ops.ledger"))
    looking, found = _Looking(opened(), lake, scope, run_at, counted), []
    names = [*filter(scope.has, judgeable(lake))]
    try:
        for suite in suites:
            looking.prove(suite, [name for name in names if suite.applies_to(name)])
        for name in names:
            tell(name)
            found.append(looking.at(name, [suite for suite in suites if suite.applies_to(name)]))
    finally:
        looking.store.close()
    return Run(run_id(run_at), run_at, lake.conf.pipeline, scope.cause, tuple(found))


def parameters(conf: Conf) -> dict[str, Any]:
    """What a $PARAMETER in a suite may name."""
    policy = conf.policy
    return {
        "lateness_seconds": policy.lateness_seconds,
        "max_future_seconds": policy.max_future_seconds,
        "max_payload_bytes": policy.max_payload_bytes,
        "sources": sorted(conf.sources),
        "metrics": sorted(conf.metrics),
        "groups": sorted(conf.groups),
    }


def judgeable(lake: Lake) -> list[str]:
    """Declared tables, without those that stay empty for ever: vectors of groups that declare none."""
    without_vector = {f"gold.{name}_vectors" for name, group in lake.conf.groups.items() if group.vector is None}
    return [name for name in lake.tables if name not in without_vector]


def _of_rows(suite: Suite) -> Suite:
    """The suite without measures."""
    return replace(suite, expectations=tuple(each for each in suite.expectations if not is_ours(each)))


@dataclass
class _Looking:
    """`pins`: tables by name; `news`: by name and earlier look what came since, as most suites looked at the same time.

    `proven`: by suite and table the expectations that are known to hold for every row.
    """

    store: duckdb.DuckDBPyConnection
    lake: Lake
    scope: Scope
    run_at: datetime
    counted: pa.Table | None
    pins: dict[str, Pinned] = field(default_factory=dict)
    news: dict[tuple[str, str, int], Pinned] = field(default_factory=dict)
    proven: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    def prove(self, suite: Suite, names: Sequence[str]) -> None:
        """What holds for all tables of one kind together holds for each: with 300 groups that is one question instead of 300."""
        suite = _of_rows(suite)
        if len(names) < 2 or suite.together_with or not suite.expectations:
            return
        rows = [self._to_judge(suite, self._shown(name)) for name in names]
        for view, tables in show_alike(
            self.store, suite.name, (each for each in rows if each.version is not None and not each.is_unchanged)
        ):
            with suppress(duckdb.Error, ValueError):  # is told when it is the turn of the tables
                proven = true_of_every_row(self.store, show_judged(self.store, suite, [view]), suite, parameters(self.lake.conf))
                self.proven.update({(suite.name, table.name): proven for table in tables})

    def at(self, name: str, suites: Sequence[Suite]) -> TableResult:
        whole = self._shown(name)
        results = tuple(result for suite in suites for result in self._results(suite, whole))
        return TableResult(name, whole.version, whole.table_id, count_of(self.store, whole.view), results)

    @cached_property
    def context(self) -> Context:
        """What measures ask, one for all of them."""
        snapshot = self.scope.snapshot
        now = self.run_at if snapshot is None else snapshot.at
        return Context(self.store, self.lake, now, lambda name: self._shown(name).view, snapshot is None, self.counted)

    def _shown(self, name: str) -> Pinned:
        """The same version whoever asks. A table that is not there is judged as one without rows."""
        if name not in self.pins:
            self.pins[name] = self._pinned(name)
        return self.pins[name]

    def _pinned(self, name: str) -> Pinned:
        table, snapshot = self.lake.tables[name], self.scope.snapshot
        found = pinned(table.name, table.path, version=None if snapshot is None else snapshot.versions.get(name))
        if found.version is None:
            declare(self.store, found.view, table.ddl)
        else:
            show(self.store, found)
        return found

    def _to_judge(self, suite: Suite, whole: Pinned) -> Pinned:
        """The whole table, or what came since the suite last looked."""
        look = (self.scope.looks or {}).get((whole.name, suite.name))
        if look is None or suite.together_with:
            return whole
        key = (whole.name, look.table_id, look.version)
        if key not in self.news:
            self.news[key] = new = pinned(whole.name, whole.path, (look.table_id, look.version), whole.version)
            if new.since is not None and not new.is_unchanged:
                show(self.store, new)
        return self.news[key]

    def _results(self, suite: Suite, whole: Pinned) -> Iterator[Result]:
        """Measures judge anew what an earlier look has judged: they know now, and what came since, as history."""
        of_rows = _of_rows(suite)
        if of_rows.expectations:
            yield from self._results_of_rows(of_rows, whole)
        for each in filter(is_ours, suite.expectations):
            yield Result(suite.name, each, measured(each, self.context, whole.name, parameters(self.lake.conf)))

    def _results_of_rows(self, suite: Suite, whole: Pinned) -> Sequence[Result]:
        rows = self._to_judge(suite, whole)
        if rows.is_unchanged and self.scope.looks:
            return [result for result in self.scope.looks[whole.name, suite.name].results if not is_ours(result.expectation)]
        return self._judged(suite, rows)

    def _judged(self, suite: Suite, rows: Pinned) -> list[Result]:
        views = [rows.view, *(self._shown(other).view for other in suite.together_with)]
        return judged(self.store, suite, views, self.lake.conf, rows.since, proven=self.proven.get((suite.name, rows.name), set()))


def judged(
    store: duckdb.DuckDBPyConnection, suite: Suite, views: Sequence[str], conf: Conf, since: int | None, *, proven: Set[int] = frozenset()
) -> list[Result]:
    """Also where a column that the suite computes with is not there: then nothing of it can be evaluated, which is no pass."""
    try:
        found = outcomes(store, show_judged(store, suite, views), suite, parameters(conf), proven)
    except (duckdb.Error, ValueError) as error:
        found = [Outcome(False, f"could not be evaluated: {str(error).splitlines()[0]}")] * len(suite.expectations)
    return [Result(suite.name, each, outcome, since) for each, outcome in zip(suite.expectations, found, strict=True)]
