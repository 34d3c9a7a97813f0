"""Runs a suite on rows with Great Expectations, and returns its outcomes.

There are two passes. The first evaluates expectations about single rows for yes or no alone, which takes Great Expectations one scan for a
whole suite. The second gets details of those that failed, and of those that report a value also when they pass: a count, a maximum.
"""

import logging
import os
import re
import threading
import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import duckdb

from expectations.suite import Expectation, Suite
from expectations.wording import counted
from orchestration.errors import TidemarkError
from orchestration.quality import dialect
from orchestration.quality.outcome import Outcome, shorten, text
from orchestration.quality.store import row_count

SAMPLES = 20
VIEW = "validated_rows"
EVALUATED_ALONE = {"expect_column_quantile_values_to_be_between"}
"""Great Expectations gives two of these on the same column one answer (measured), so each is evaluated alone."""
KEYS = ("bronze_batch", "bronze_row", "device_id", "metric", "entity", "window_start", "window_end")
"""Columns that lead from a row to its event, in tables that have them."""
NAME_OF_ERROR = re.compile(r"\(_duckdb\.\w+\) ")
BOOLEAN_ONLY: dict[str, Any] = {"result_format": "BOOLEAN_ONLY"}
TRUE: dict[str, Any] = {"success": True}
NOT_CHECKED = Outcome(None, "not checked: there are no rows")
_store: list[duckdb.DuckDBPyConnection] = []
_lock = threading.Lock()
"""One thread uses Great Expectations at a time: its batch knows the rows by a name, and caches metrics."""


@cache
def great_expectations() -> Any:
    """The module, imported when it is first needed, which takes 3 s of CPU time (measured), with its usage reports off."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    try:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # raised in modules that it imports
            import great_expectations
    except SystemExit:
        # It imports pyspark.sql.connect, which takes a program without a file for a doctest and, without grpcio, ends it with exit code 0.
        raise TidemarkError("Great Expectations cannot be imported by `python -c`; put the program in a file, or install grpcio.") from None
    # It logs every expectation that it cannot evaluate, with a trace; the outcome says so too.
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL)
    return great_expectations


def outcomes(
    store: duckdb.DuckDBPyConnection, view: str, suite: Suite, parameters: Mapping[str, Any], proven: Set[int] = frozenset()
) -> list[Outcome]:
    """One outcome for each expectation of the suite, in its order; `parameters` are the values of its $PARAMETERs.

    `proven`: numbers of expectations that `true_of_every_row` has already found true for these rows.
    """
    count = row_count(store, view)
    rows = _Rows(store, view, parameters)
    asked = {n: expectation for n, expectation in enumerate(suite.expectations) if count or expectation.is_about_table}
    strict = _of_every_row({n: expectation for n, expectation in asked.items() if n not in proven})
    answers = dict.fromkeys(proven, TRUE) | rows.validated(strict, BOOLEAN_ONLY)
    settled = {n for n, answer in answers.items() if answer["success"] or error_of(answer)}
    unsettled = {n: expectation for n, expectation in asked.items() if n not in settled}
    answers |= rows.validated(unsettled, _details(store, view, suite))
    return [
        describe(answers[n], count, (*suite.sample, *expectation.columns) if suite.sample else ()) if n in asked else NOT_CHECKED
        for n, expectation in enumerate(suite.expectations)
    ]


def true_of_every_row(store: duckdb.DuckDBPyConnection, view: str, suite: Suite, parameters: Mapping[str, Any]) -> set[int]:
    """Numbers of the expectations that hold for every row, and so for any part of the rows."""
    strict = _of_every_row(dict(enumerate(suite.expectations)))
    return {n for n, answer in _Rows(store, view, parameters).validated(strict, BOOLEAN_ONLY).items() if answer["success"]}


def not_computable(
    store: duckdb.DuckDBPyConnection, view: str, asked: Mapping[int, Expectation], parameters: Mapping[str, Any]
) -> dict[int, str]:
    """DuckDB's errors about expectations, by their numbers; evaluated on a view without rows."""
    errors = {n: error_of(answer) for n, answer in _Rows(store, view, parameters).validated(asked, BOOLEAN_ONLY).items()}
    return {n: NAME_OF_ERROR.sub("", error) for n, error in errors.items() if "cannot be computed" in error or NAME_OF_ERROR.match(error)}


def describe(answer: Mapping[str, Any], count: int, sample: Sequence[str] = ()) -> Outcome:
    """The outcome of a result on a table of `count` rows. `sample`: key columns to show of a row that fails; empty: all."""
    if error := error_of(answer):
        return Outcome(False, f"could not be evaluated: {shorten(error)}")
    details = answer.get("result") or {}
    if "observed_value" in details:
        return Outcome(answer["success"], text(details["observed_value"]))
    unexpected = details.get("unexpected_count", 0)
    of_rows = f"{unexpected:,}" if unexpected else "none"
    rows = details.get("partial_unexpected_index_list") or [{"value": value} for value in details.get("partial_unexpected_list", [])]
    samples = tuple(
        {column: text(value) for column, value in row.items() if not sample or column in sample or column not in KEYS} for row in rows
    )
    keys = tuple({column: row[column] for column in KEYS if column in row} for row in rows)
    return Outcome(answer["success"], f"{of_rows} of {counted(count, 'row')}", details.get("unexpected_percent", 0.0), samples, keys)


def error_of(answer: Mapping[str, Any]) -> str:
    """Why an expectation could not be evaluated, in one line; empty where it could."""
    info = answer.get("exception_info") or {}
    # One that fails in common with others is keyed by the metric that failed.
    raised = [info] if "raised_exception" in info else list(info.values())
    messages = [error["exception_message"] for error in raised if error.get("raised_exception")]
    return next((line for message in messages for line in str(message).splitlines() if line.strip()), "")


def _details(store: duckdb.DuckDBPyConnection, view: str, suite: Suite) -> dict[str, Any]:
    existing = set(store.table(view).columns)
    columns = list(dict.fromkeys([*suite.sample, *(key for key in KEYS if key in existing)]))
    details = {"result_format": "SUMMARY", "partial_unexpected_count": SAMPLES, "return_unexpected_index_query": False}
    return details | ({"unexpected_index_column_names": columns} if columns else {})


def _of_every_row(asked: Mapping[int, Expectation]) -> dict[int, Expectation]:
    """Expectations about rows, without their tolerance `mostly`: success then means that no row fails, and that no details are needed."""
    gx = great_expectations().expectations
    kinds = gx.expectation
    of_rows = (kinds.ColumnMapExpectation, kinds.ColumnPairMapExpectation, kinds.MulticolumnMapExpectation)
    return {
        n: replace(expectation, kwargs={name: value for name, value in expectation.kwargs.items() if name != "mostly"})
        for n, expectation in asked.items()
        if issubclass(gx.registry.get_expectation_impl(expectation.type), of_rows)
    }


@dataclass(frozen=True)
class _Rows:
    store: duckdb.DuckDBPyConnection
    view: str
    parameters: Mapping[str, Any]

    def validated(self, asked: Mapping[int, Expectation], result_format: dict[str, Any]) -> dict[int, dict[str, Any]]:
        """Great Expectations' own results by the number of the expectation; it does not keep their order."""
        together = {n: expectation for n, expectation in asked.items() if expectation.type not in EVALUATED_ALONE}
        answers = self._answers(together, result_format)
        # One error fails every expectation of a shared query. Evaluated alone, only the wrong one fails.
        alone = [n for n in asked if n not in answers or (error_of(answers[n]) and len(together) > 1)]
        return answers | {n: self._answers({n: asked[n]}, result_format)[n] for n in alone}

    def _answers(self, asked: Mapping[int, Expectation], result_format: dict[str, Any]) -> dict[int, dict[str, Any]]:
        if not asked:
            return {}
        entries = [
            {"type": asked[n].type, "kwargs": dict(asked[n].kwargs), "severity": asked[n].severity.value, "meta": {"n": n}} for n in asked
        ]
        suite = great_expectations().ExpectationSuite(name=VIEW, expectations=entries)
        with _lock:
            self.store.execute(f'create or replace view "{VIEW}" as from "{self.view}"')
            _store[:] = [self.store]
            batch = _batch()
            batch.datasource.get_execution_engine()._metric_cache.clear()  # it is about the rows that had this name before
            result = batch.validate(suite, result_format=result_format, expectation_parameters=dict(self.parameters))
        return {answer.expectation_config.meta["n"]: {**answer, "success": bool(answer.success)} for answer in result.results}


@cache
def _batch() -> Any:
    """One batch for all suites: creating it takes as long as evaluating a suite."""
    context = great_expectations().get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    source = context.data_sources.add_or_update_sql(
        "store", connection_string=f"{dialect.NAME}://", create_temp_table=False, kwargs={"creator": lambda: dialect.Connection(_store)}
    )
    source.get_execution_engine().dialect_module = dialect.MODULE
    # A table asset: for a query Great Expectations reads the whole result to learn its types.
    return source.add_table_asset(VIEW, table_name=VIEW).add_batch_definition_whole_table("all").get_batch()
