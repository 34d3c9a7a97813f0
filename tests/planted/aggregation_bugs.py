"""Planted bugs of the aggregation types that look at times or settings: each makes values that verify names."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Column, functions

from gold.windows import aggregates
from gold.windows.spec import Group, Vector
from silver.aggregation import Aggregation
from silver.metric import Metric, Wrapping
from tests.lakes import event, land, minutes, run
from tests.planted.day import START, Day


def other_value(kind: Aggregation, make: Callable[[Any], Column]) -> Callable[[pytest.MonkeyPatch], None]:
    """The value of an aggregation type is made otherwise."""
    return lambda patch: patch.setitem(aggregates.VALUES, kind, make)


def without_order(patch: pytest.MonkeyPatch) -> None:
    """The newest reading first."""
    patch.setattr(aggregates, "F", SimpleNamespace(**vars(functions) | {"array_sort": lambda of: functions.sort_array(of, asc=False)}))


def other_increase(old: str, new: str) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(aggregates, "INCREASE", aggregates.INCREASE.replace(old, new))


def every_type(day: Day) -> list[str]:
    """Metrics of the newer aggregation types, with late rows: a counter with glitches, wraps and resets, angles round north."""
    metrics = {
        metric.name: metric
        for metric in (
            Metric("valve", Aggregation.TIME_WEIGHTED_AVERAGE, 600),
            Metric("meter", Aggregation.COUNTER_INCREASE, 600, counter=Wrapping(1000.0)),
            Metric("load", Aggregation.QUANTILE, 600, quantile=0.95),
            Metric("wind", Aggregation.CIRCULAR_MEAN, 600, slide_seconds=300),
        )
    }
    kitchen = Group("kitchen", tuple(metrics), 600, "kitchen", Vector("device", tuple(metrics), 600))
    made = replace(day.made, metrics=metrics, groups={"kitchen": kitchen})
    typed = Day(made, day.spark)
    for name, hours in (("1.json", (0, 1)), ("2.json", (0.99, 2, 5))):
        times = [time for hour in hours for time in minutes(START + timedelta(hours=hour), 40, 1.3)]
        counted = [0 if n % 11 == 5 else 90 if n % 13 == 7 else 170 * n % 1000 for n in range(len(times))]
        lines = [
            event("oven", of, [n % 7, counted[n], n * n % 31, 355 + n % 13][k], time)
            for n, time in enumerate(times)
            for k, of in enumerate(metrics)
        ]
        land(made.folder, name, lines)
        run(made, day.spark)
    return typed.wrong()


BUGS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[Day], list[str]]]] = {
    "time weights": (other_value(Aggregation.TIME_WEIGHTED_AVERAGE, lambda _: functions.expr("sum / count")), every_type),
    "order of readings": (without_order, every_type),
    "glitches of a counter": (lambda patch: patch.setattr(aggregates, "WITHOUT_GLITCHES", "readings"), every_type),
    "wraps of a counter": (other_increase("between {width} / 2 and {width}", "> {width} * 2"), every_type),
    "resets of a counter": (other_increase("greatest(reading.value, 0D)", "0D"), every_type),
    "probability of a quantile": (other_value(Aggregation.QUANTILE, lambda _: functions.col("max")), every_type),
    "circle of angles": (other_value(Aggregation.CIRCULAR_MEAN, lambda _: functions.expr("sum / count % 360")), every_type),
}
"""By what of a value is made otherwise, and what then happens."""
