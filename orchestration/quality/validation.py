"""Great Expectations: a suite on rows, to outcomes.

Two passes. The first asks what must be true of every row for yes or no alone, which Great Expectations answers for a whole suite with one
scan. The second asks for details of what failed, and of what has something to tell although it passed: a count, a maximum, a share that is
tolerated.
"""

import logging
import os
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

import duckdb

from expectations.suite import Expectation, Suite
from orchestration.errors import TidemarkError
from orchestration.quality import dialect
from orchestration.quality.outcome import Outcome
from orchestration.quality.telling import KEYS, error_of, told

SAMPLES = 20
NOT_CHECKED = Outcome(None, "not checked: there are no rows")


def outcomes(store: duckdb.DuckDBPyConnection, view: str, suite: Suite, parameters: Mapping[str, Any]) -> list[Outcome]:
    """One outcome for each expectation of the suite, in its order; `parameters` are what its $PARAMETERs stand for."""
    count = count_of(store, view)
    rows = _batch(store, view)
    asked = {n: each for n, each in enumerate(suite.expectations) if count or each.is_about_table}
    strict = {n: each for n, each in asked.items() if _is_for_every_row(each)}
    answers = _validated(rows, suite, strict, parameters, {"result_format": "BOOLEAN_ONLY"})
    settled = {n for n, answer in answers.items() if answer["success"] or error_of(answer)}
    unsettled = {n: each for n, each in asked.items() if n not in settled}
    answers |= _validated(rows, suite, unsettled, parameters, _details(store, view, suite))
    return [told(answers[n], count, _shown(suite, each)) if n in asked else NOT_CHECKED for n, each in enumerate(suite.expectations)]


def _shown(suite: Suite, expectation: Expectation) -> tuple[str, ...]:
    return (*suite.sample, *expectation.columns) if suite.sample else ()


def _details(store: duckdb.DuckDBPyConnection, view: str, suite: Suite) -> dict[str, Any]:
    there = set(store.table(view).columns)
    shown = list(dict.fromkeys([*suite.sample, *(key for key in KEYS if key in there)]))
    details = {"result_format": "SUMMARY", "partial_unexpected_count": SAMPLES, "return_unexpected_index_query": False}
    return details | ({"unexpected_index_column_names": shown} if shown else {})


def _is_for_every_row(expectation: Expectation) -> bool:
    """Whether success means that not one row is unexpected; then there are no details to ask for."""
    known = _great_expectations().expectations
    kinds = known.expectation
    judges_rows = (kinds.ColumnMapExpectation, kinds.ColumnPairMapExpectation, kinds.MulticolumnMapExpectation)
    return issubclass(known.registry.get_expectation_impl(expectation.type), judges_rows) and expectation.kwargs.get("mostly", 1) == 1


def _validated(
    rows: Any, suite: Suite, asked: Mapping[int, Expectation], parameters: Mapping[str, Any], result_format: dict[str, Any]
) -> dict[int, dict[str, Any]]:
    """Great Expectations' own results by the number of the expectation; it does not keep their order."""
    if not asked:
        return {}
    gx = _great_expectations()
    entries = [
        {"type": each.type, "kwargs": dict(each.kwargs), "severity": each.severity.value, "meta": {"n": n}} for n, each in asked.items()
    ]
    result = rows.validate(
        gx.ExpectationSuite(name=suite.name, expectations=entries), result_format=result_format, expectation_parameters=dict(parameters)
    )
    return {each.expectation_config.meta["n"]: {"success": each.success, **each} for each in result.results}


def _batch(store: duckdb.DuckDBPyConnection, view: str) -> Any:
    source = _context().data_sources.add_or_update_sql(
        "store", connection_string=f"{dialect.NAME}://", create_temp_table=False, kwargs={"creator": lambda: dialect.Connection(store)}
    )
    source.get_execution_engine().dialect_module = dialect.MODULE
    # A table, since Great Expectations reads the whole answer of a query to learn its types.
    return source.add_table_asset(view, table_name=view).add_batch_definition_whole_table("all").get_batch()


def count_of(store: duckdb.DuckDBPyConnection, view: str) -> int:
    """Rows of a view."""
    (count,) = store.execute(f'select count(*) from "{view}"').fetchall()[0]
    return int(count)


@cache
def _context() -> Any:
    context = _great_expectations().get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    return context


def _great_expectations() -> Any:
    """The module; it reports its use to its maker unless this is said before it is imported."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    try:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of modules that it imports; not ours to mend
            import great_expectations
    except SystemExit:  # pyspark takes a program without a file for its own doctests, and would end it here with exit code 0
        raise TidemarkError("quality cannot run from `python -c` or an embedded Python; put the code into a file.") from None
    # It logs every expectation that it cannot evaluate, with a trace; the outcome says so too.
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL)
    return great_expectations
