"""The measures by the `type` that suites use, with their arguments."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import duckdb

from expectations.suite import Expectation
from orchestration.quality.measures import counts, devices, drift, enrichment, shares
from orchestration.quality.measures.context import Context
from orchestration.quality.outcome import Outcome

PREFIX = "tidemark_"


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
