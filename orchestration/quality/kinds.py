"""Types of expectations: measures of Tidemark, and types of Great Expectations that give the right answer on DuckDB."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import duckdb

from expectations.settings import Step
from expectations.suite import Expectation
from expectations.wording import hint, quoted
from orchestration.quality.measures import counts, devices, drift, enrichment, shares
from orchestration.quality.measures.context import Context
from orchestration.quality.outcome import Outcome
from orchestration.quality.validation import great_expectations

PREFIX = "tidemark_"
BY_REGEX = "use expect_column_values_to_match_regex"
BY_COLUMN = "compute in `columns` what must be true, and expect it to be in the set [true]"
IN_ORDER = (
    "a table has no order; compute in `columns_in_sql` the difference to lag(..) over (order by ..), and expect it to be between bounds"
)
BY_DECLARATION = "the declared columns decide types; leave it out"
REFUSED = {
    "expect_column_values_to_be_in_type_list": BY_DECLARATION,
    "expect_column_values_to_be_of_type": BY_DECLARATION,
    "expect_column_value_z_scores_to_be_less_than": "use expect_column_values_to_be_between",
    "expect_column_values_to_not_be_outliers": "use expect_column_values_to_be_between",
    "expect_column_values_to_be_increasing": IN_ORDER,
    "expect_column_values_to_be_decreasing": IN_ORDER,
    "expect_column_values_to_be_json_parseable": BY_REGEX,
    "expect_column_values_to_match_json_schema": BY_REGEX,
    "expect_column_values_to_be_dateutil_parseable": BY_REGEX,
    "expect_column_values_to_match_strftime_format": BY_REGEX,
    "expect_table_row_count_to_equal_other_table": "tables come in at different times; `tidemark ledger` compares them by identity",
    "expect_query_results_to_match_comparison": BY_COLUMN,
    "unexpected_rows_expectation": BY_COLUMN,
}
"""Refused types, with what to write instead. Great Expectations cannot evaluate them on DuckDB, or evaluates them wrongly (measured: the
first three), or they read other tables."""
OF_EVERY_KIND = frozenset(
    (
        *("id", "meta", "notes", "result_format", "description", "catch_exceptions", "rendered_content", "windows", "batch_id", "severity"),
        *("row_condition", "condition_parser", "library_metadata"),
    )
)
"""Arguments that every type of Great Expectations has. `kwargs` may not set them: the suite sets them elsewhere, or not at all."""
WANTED = {str: "text", int: "whole number", float: "number"}
NO_CONDITION = "rows are chosen in `columns`: case when .. then .. end is null where an expectation has nothing to check"


@dataclass(frozen=True)
class Kind:
    """`evaluate` takes a context, a table and the kwargs. `table`: name or pattern of the tables that it applies to."""

    evaluate: Callable[..., Outcome]
    table: str

    @property
    def kwargs(self) -> dict[str, inspect.Parameter]:
        """The arguments by name, as the function declares them: each str, int or float (which takes an int too)."""
        named = inspect.signature(self.evaluate).parameters
        return {name: kwarg for name, kwarg in named.items() if kwarg.kind is kwarg.KEYWORD_ONLY}


KINDS: Mapping[str, Kind] = {
    "tidemark_rows_to_be_fresh": Kind(devices.fresh_rows, "*"),
    "tidemark_groups_to_be_fresh": Kind(devices.fresh_groups, "silver.readings"),
    "tidemark_row_count_to_be_as_a_week_before": Kind(counts.as_a_week_before, "silver.readings"),
    "tidemark_days_to_be_whole": Kind(counts.whole_days, "silver.readings"),
    "tidemark_rows_to_be_accounted_for": Kind(counts.balanced, "bronze.events"),
    "tidemark_share_to_be_usual": Kind(shares.usual_share, "silver.*"),
    "tidemark_devices_to_be_heard": Kind(devices.heard_devices, "silver.readings"),
    "tidemark_registered_devices_to_be_heard": Kind(devices.heard_registry, "silver.readings"),
    "tidemark_windows_to_be_new": Kind(devices.new_windows, "gold.*_aggregates"),
    "tidemark_sensors_to_vary": Kind(devices.varying_sensors, "silver.readings"),
    "tidemark_clocks_to_be_steady": Kind(devices.steady_clocks, "silver.readings"),
    "tidemark_readings_to_be_enriched_as_declared": Kind(enrichment.as_declared, "silver.readings"),
    "tidemark_declared_fields_to_come": Kind(enrichment.coming_fields, "silver.readings"),
    "tidemark_features_to_be_usual": Kind(shares.usual_features, "gold.*_vectors"),
    "tidemark_alarms_to_be_as_planned": Kind(shares.planned_alarms, "gold.*_anomalies"),
    "tidemark_distribution_to_be_steady": Kind(drift.steady_distribution, "silver.readings"),
}


def is_measure(expectation: Expectation) -> bool:
    """Whether it is a measure, and not an expectation of Great Expectations."""
    return expectation.type.startswith(PREFIX)


def evaluate_measure(expectation: Expectation, context: Context, table: str, parameters: Mapping[str, Any]) -> Outcome:
    """The outcome on a table; one that cannot be evaluated has failed. `parameters`: values of its $PARAMETERs."""
    kwargs = {name: parameters[value["$PARAMETER"]] if isinstance(value, Mapping) else value for name, value in expectation.kwargs.items()}
    try:
        kind = KINDS[expectation.type]
        if not fnmatchcase(table, kind.table):
            raise ValueError(f"it is about {kind.table}")
        return kind.evaluate(context, table, **kwargs)
    except (duckdb.Error, KeyError, TypeError, ValueError) as error:
        return Outcome(False, f"could not be evaluated: {type(error).__name__}: {str(error).splitlines()[0]}")


def kind_refused(kind: str) -> str | None:
    """Return why a type cannot be used, as the second half of a sentence; None if it can be used."""
    if kind in REFUSED:
        return f"which gives no right answer here; {REFUSED[kind]}"
    usable = [*KINDS, *accepted()]
    if kind in usable:
        return None
    return f"which is not an expectation; {hint(kind, usable, 'choose one of the gallery of Great Expectations')}"


@cache
def accepted() -> frozenset[str]:
    """Return every type of Great Expectations that gives the right answer on DuckDB."""
    return frozenset(great_expectations().expectations.registry.list_registered_expectation_implementations()) - REFUSED.keys()


def arguments_refused(kind: str, kwargs: Mapping[str, Any]) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yield for each wrong argument its path below `kwargs`, and the second half of a sentence that says what is wrong."""
    if kind in KINDS:
        yield from _of_measure(kind, kwargs)
        return
    expectation = great_expectations().expectations.registry.get_expectation_impl(kind)
    names = sorted(set(expectation.__fields__) - OF_EVERY_KIND)
    unknown = sorted(kwargs.keys() - set(names))
    for name in unknown:
        otherwise = NO_CONDITION if name in ("row_condition", "condition_parser") else f"known here: {', '.join(names)}"
        yield (name,), f"is no argument of {kind}; {otherwise if name in OF_EVERY_KIND else hint(name, names, otherwise)}"
    try:
        expectation(**{name: value for name, value in kwargs.items() if name in names})
    except ValueError as error:  # pydantic's error: Great Expectations brings its own version of pydantic
        if not unknown:  # otherwise the missing argument is the misspelt one
            yield from _describe(kind, kwargs, error)


def _of_measure(kind: str, kwargs: Mapping[str, Any]) -> Iterator[tuple[tuple[Step, ...], str]]:
    takes = KINDS[kind].kwargs
    for name, value in kwargs.items():
        if name not in takes:
            yield (name,), f"is no argument of {kind}; {hint(name, takes, 'known here: ' + (', '.join(takes) or 'none'))}"
            continue
        wanted = takes[name].annotation
        if isinstance(value, bool) or not isinstance(value, (int, float) if wanted is float else wanted):
            yield (name,), f"is {quoted(value)}, which {kind} does not take; write a {WANTED[wanted]}"
    for name, kwarg in takes.items():
        if kwarg.default is kwarg.empty and name not in kwargs:
            yield (), f"lacks {name}, which {kind} needs; add it"


def _describe(kind: str, kwargs: Mapping[str, Any], error: Any) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Yield one sentence for each wrong argument. For a union of types pydantic has an error for each type; the first one is reported."""
    first = {mistake["loc"][:1]: mistake for mistake in reversed(error.errors())}
    about_all = first.pop(("__root__",), None)
    for (name,), mistake in first.items():
        if name not in kwargs:
            yield (), f"lacks {name}, which {kind} needs; add it"
        else:
            yield (name,), f"is {quoted(kwargs[name])}, which {kind} does not take ({mistake['msg']}); correct it"
    if about_all and not first:
        yield (), f"cannot be used by {kind}: {about_all['msg']}; correct it"
