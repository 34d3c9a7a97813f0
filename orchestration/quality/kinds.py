"""Kinds of expectations: which of Great Expectations give the right answer here, and what each takes."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from orchestration.conf.document import Step
from orchestration.conf.mistake import shown, way_out
from orchestration.quality.gx import great_expectations
from orchestration.quality.measures.kinds import KINDS

BY_REGEX = "use expect_column_values_to_match_regex"
BY_COLUMN = "compute in `columns` what must be true, and expect it to be in the set [true]"
IN_ORDER = "a table has no order; compute in `columns` the difference to lag(..) over (order by ..), and expect it to be between bounds"
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
"""Kinds that Great Expectations cannot answer on DuckDB, or answers wrongly (measured: the first three), or that name other tables."""
OF_EVERY_KIND = frozenset(
    (
        *("id", "meta", "notes", "result_format", "description", "catch_exceptions", "rendered_content", "windows", "batch_id", "severity"),
        *("row_condition", "condition_parser", "library_metadata"),
    )
)
"""Arguments of Great Expectations that a suite says elsewhere, or not at all."""
WANTED = {str: "text", int: "whole number", float: "number"}
NO_CONDITION = "rows are chosen in `columns`: case when .. then .. end is null where an expectation has nothing to judge"


def kind_refused(kind: str) -> str | None:
    """The second half of a sentence about a kind that cannot be used; None for one that can."""
    if kind in REFUSED:
        return f"which gives no right answer here; {REFUSED[kind]}"
    known = [*KINDS, *accepted()]
    return (
        None
        if kind in known
        else f"which no expectation is called; {way_out(kind, known, 'choose one of the gallery of Great Expectations')}"
    )


@cache
def accepted() -> frozenset[str]:
    """Every kind that gives the right answer."""
    return frozenset(great_expectations().expectations.registry.list_registered_expectation_implementations()) - REFUSED.keys()


def arguments_refused(kind: str, kwargs: Mapping[str, Any]) -> Iterator[tuple[tuple[Step, ...], str]]:
    """For each argument that the kind does not take, its place below kwargs and the second half of a sentence."""
    if kind in KINDS:
        yield from _of_measure(kind, kwargs)
        return
    expectation = great_expectations().expectations.registry.get_expectation_impl(kind)
    known = sorted(set(expectation.__fields__) - OF_EVERY_KIND)
    unknown = sorted(kwargs.keys() - set(known))
    for name in unknown:
        otherwise = NO_CONDITION if name in ("row_condition", "condition_parser") else f"known here: {', '.join(known)}"
        yield (name,), f"is no argument of {kind}; {otherwise if name in OF_EVERY_KIND else way_out(name, known, otherwise)}"
    try:
        expectation(**{name: value for name, value in kwargs.items() if name in known})
    except ValueError as error:  # of pydantic, which Great Expectations brings in a version of its own
        if not unknown:  # or what is missing has only another name
            yield from _told(kind, kwargs, error)


def _of_measure(kind: str, kwargs: Mapping[str, Any]) -> Iterator[tuple[tuple[Step, ...], str]]:
    known = KINDS[kind].kwargs
    for name, value in kwargs.items():
        if name not in known:
            yield (name,), f"is no argument of {kind}; {way_out(name, known, 'known here: ' + (', '.join(known) or 'none'))}"
        elif isinstance(value, bool) or not isinstance(value, (int, float) if known[name].type is float else known[name].type):
            yield (name,), f"is {shown(value)}, which {kind} does not take; write a {WANTED[known[name].type]}"
    for name, kwarg in known.items():
        if kwarg.is_required and name not in kwargs:
            yield (), f"lacks {name}, which {kind} needs; add it"


def _told(kind: str, kwargs: Mapping[str, Any], error: Any) -> Iterator[tuple[tuple[Step, ...], str]]:
    """One sentence an argument. Of a union of types pydantic tells what is wrong for each; the first is what is meant."""
    first = {each["loc"][:1]: each for each in reversed(error.errors())}
    about_all = first.pop(("__root__",), None)
    for (name,), each in first.items():
        if name not in kwargs:
            yield (), f"lacks {name}, which {kind} needs; add it"
        else:
            yield (name,), f"is {shown(kwargs[name])}, which {kind} does not take ({each['msg']}); correct it"
    if about_all and not first:
        yield (), f"cannot be used by {kind}: {about_all['msg']}; correct it"
