"""Great Expectations: a suite on rows, to outcomes.

Two passes. The first asks what must be true of every row for yes or no alone, which Great Expectations answers for a whole suite with one
scan. The second asks for details of what failed, and of what has something to tell although it passed: a count, a maximum, a share that is
tolerated.
"""

import re
import threading
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import duckdb

from expectations.suite import Expectation, Suite
from orchestration.quality import dialect
from orchestration.quality.formatting import KEYS, error_of, told
from orchestration.quality.gx import great_expectations
from orchestration.quality.outcome import Outcome
from orchestration.quality.store import count_of

SAMPLES = 20
ASKED = "asked"
CONFUSED = {"expect_column_quantile_values_to_be_between"}
"""Kinds of which Great Expectations gives one the answer to another of the same column (measured), so that each is asked alone."""
NAME_OF_ERROR = re.compile(r"\(_duckdb\.\w+\) ")
BRIEFLY: dict[str, Any] = {"result_format": "BOOLEAN_ONLY"}
TRUE: dict[str, Any] = {"success": True}
NOT_CHECKED = Outcome(None, "not checked: there are no rows")
_store: list[duckdb.DuckDBPyConnection] = []
_of_one_thread = threading.Lock()
"""Great Expectations is asked by one thread at a time: its batch knows the rows by a name, and caches what it found."""


def outcomes(
    store: duckdb.DuckDBPyConnection, view: str, suite: Suite, parameters: Mapping[str, Any], proven: Set[int] = frozenset()
) -> list[Outcome]:
    """One outcome for each expectation of the suite, in its order; `parameters` are what its $PARAMETERs stand for.

    `proven`: expectations of which `true_of_every_row` has said already that they are true here.
    """
    count = count_of(store, view)
    rows = _Rows(store, view, suite.name, parameters)
    asked = {n: each for n, each in enumerate(suite.expectations) if count or each.is_about_table}
    strict = _of_every_row({n: each for n, each in asked.items() if n not in proven})
    answers = dict.fromkeys(proven, TRUE) | rows.validated(strict, BRIEFLY)
    settled = {n for n, answer in answers.items() if answer["success"] or error_of(answer)}
    unsettled = {n: each for n, each in asked.items() if n not in settled}
    answers |= rows.validated(unsettled, _details(store, view, suite))
    return [told(answers[n], count, _shown(suite, each)) if n in asked else NOT_CHECKED for n, each in enumerate(suite.expectations)]


def true_of_every_row(store: duckdb.DuckDBPyConnection, view: str, suite: Suite, parameters: Mapping[str, Any]) -> set[int]:
    """The expectations that hold for all rows, so for any part of them too."""
    strict = _of_every_row(dict(enumerate(suite.expectations)))
    return {n for n, answer in _Rows(store, view, suite.name, parameters).validated(strict, BRIEFLY).items() if answer["success"]}


def impossible(
    store: duckdb.DuckDBPyConnection, view: str, name: str, asked: Mapping[int, Expectation], parameters: Mapping[str, Any]
) -> dict[int, str]:
    """What DuckDB refuses to compute of expectations of the suite of this name, by their numbers; of a view without rows."""
    answers = _Rows(store, view, name, parameters).validated(asked, BRIEFLY)
    errors = {n: error_of(answer) for n, answer in answers.items()}
    return {n: NAME_OF_ERROR.sub("", error) for n, error in errors.items() if "cannot be computed" in error or NAME_OF_ERROR.match(error)}


def _shown(suite: Suite, expectation: Expectation) -> tuple[str, ...]:
    return (*suite.sample, *expectation.columns) if suite.sample else ()


def _details(store: duckdb.DuckDBPyConnection, view: str, suite: Suite) -> dict[str, Any]:
    there = set(store.table(view).columns)
    shown = list(dict.fromkeys([*suite.sample, *(key for key in KEYS if key in there)]))
    details = {"result_format": "SUMMARY", "partial_unexpected_count": SAMPLES, "return_unexpected_index_query": False}
    return details | ({"unexpected_index_column_names": shown} if shown else {})


def _of_every_row(asked: Mapping[int, Expectation]) -> dict[int, Expectation]:
    """Those that judge rows, as if none were tolerated: their success means that not one row is unexpected, so nothing is left to tell."""
    known = great_expectations().expectations
    kinds = known.expectation
    judges_rows = (kinds.ColumnMapExpectation, kinds.ColumnPairMapExpectation, kinds.MulticolumnMapExpectation)
    return {
        n: replace(each, kwargs={name: value for name, value in each.kwargs.items() if name != "mostly"})
        for n, each in asked.items()
        if issubclass(known.registry.get_expectation_impl(each.type), judges_rows)
    }


@dataclass(frozen=True)
class _Rows:
    store: duckdb.DuckDBPyConnection
    view: str
    name: str
    parameters: Mapping[str, Any]

    def validated(self, asked: Mapping[int, Expectation], result_format: dict[str, Any]) -> dict[int, dict[str, Any]]:
        """Great Expectations' own results by the number of the expectation; it does not keep their order."""
        together = {n: each for n, each in asked.items() if each.type not in CONFUSED}
        answers = self._answers(together, result_format)
        # What is asked in one query fails as one; alone, only what cannot be answered does.
        alone = [n for n in asked if n not in answers or (error_of(answers[n]) and len(together) > 1)]
        return answers | {n: self._answers({n: asked[n]}, result_format)[n] for n in alone}

    def _answers(self, asked: Mapping[int, Expectation], result_format: dict[str, Any]) -> dict[int, dict[str, Any]]:
        if not asked:
            return {}
        entries = [
            {"type": each.type, "kwargs": dict(each.kwargs), "severity": each.severity.value, "meta": {"n": n}} for n, each in asked.items()
        ]
        suite = great_expectations().ExpectationSuite(name=self.name, expectations=entries)
        with _of_one_thread:
            self.store.execute(f'create or replace view "{ASKED}" as from "{self.view}"')
            _store[:] = [self.store]
            batch = _batch()
            batch.datasource.get_execution_engine()._metric_cache.clear()  # of the rows that had the name before
            result = batch.validate(suite, result_format=result_format, expectation_parameters=dict(self.parameters))
        return {each.expectation_config.meta["n"]: {**each, "success": bool(each.success)} for each in result.results}


@cache
def _batch() -> Any:
    """What is asked, whatever it is: to make it takes as long as to answer a suite."""
    source = _context().data_sources.add_or_update_sql(
        "store", connection_string=f"{dialect.NAME}://", create_temp_table=False, kwargs={"creator": lambda: dialect.Connection(_store)}
    )
    source.get_execution_engine().dialect_module = dialect.MODULE
    # A table, since Great Expectations reads the whole answer of a query to learn its types.
    return source.add_table_asset(ASKED, table_name=ASKED).add_batch_definition_whole_table("all").get_batch()


@cache
def _context() -> Any:
    context = great_expectations().get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    return context
