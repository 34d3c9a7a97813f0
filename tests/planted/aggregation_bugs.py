"""Planted bugs of the aggregation types that look at times or settings: each makes values that verify names."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, functions

from gold.windows import aggregates
from gold.windows.chains import chained
from gold.windows.spec import Group, Vector
from orchestration.engine import windows
from orchestration.engine.chains import CHAINED, NewestCarries
from orchestration.jobs.gold import linked_windows
from silver.aggregation import Aggregation
from silver.metric import CounterRule, Metric
from tests.lakes import event, land, minutes, run
from tests.planted.day import START, Day


def other_value(kind: Aggregation, make: Callable[[Any], Column]) -> Callable[[pytest.MonkeyPatch], None]:
    """The value of an aggregation type is made otherwise."""
    return lambda patch: patch.setitem(aggregates.VALUES, kind, make)


def without_order(patch: pytest.MonkeyPatch) -> None:
    """The newest reading first."""
    patch.setattr(aggregates, "F", SimpleNamespace(**vars(functions) | {"array_sort": lambda of: functions.sort_array(of, asc=False)}))


def other_metric(name: str, **settings: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Windows of a chain are made by other settings of a metric."""

    def made(rows: DataFrame, recorded: DataFrame | None, metrics: Mapping[str, Metric], until: int) -> DataFrame:
        return chained(rows, recorded, {**metrics, name: replace(metrics[name], **settings)}, until)

    def plant(patch: pytest.MonkeyPatch) -> None:
        for module in (windows, linked_windows):
            patch.setattr(module, "chained", made)

    return plant


def without_windows_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NewestCarries, "before", lambda *_: CHAINED.empty_table())


def every_type(day: Day) -> list[str]:
    """Metrics of the newer aggregation types, with late rows: a counter with glitches, wraps and resets, angles round north."""
    metrics = {
        metric.name: metric
        for metric in (
            Metric("valve", Aggregation.TIME_WEIGHTED_AVERAGE, 600),
            Metric("meter", Aggregation.COUNTER_INCREASE, 600, counter=CounterRule(wraps_at=1000.0)),
            Metric("load", Aggregation.QUANTILE, 600, quantile=0.95),
            Metric("wind", Aggregation.CIRCULAR_MEAN, 600, slide_seconds=300),
        )
    }
    kitchen = Group("kitchen", tuple(metrics), 600, "kitchen", Vector("device", tuple(metrics), 600))
    made = replace(day.made, metrics=metrics, groups={"kitchen": kitchen})
    typed = Day(made, day.spark)
    for name, hours in (("1.json", (0, 1)), ("2.json", (0.99, 2, 5))):
        times = [time for hour in hours for time in minutes(START + timedelta(hours=hour), 40, 1.3)]
        counted = [0 if n % 11 == 5 else 60 * n % 1000 - 70 * (60 * n % 1000 > 600 and n % 3 == 0) for n in range(len(times))]
        lines = [
            event("oven", of, [n % 7, counted[n], n * n % 31, 355 + n % 13][k], time)
            for n, time in enumerate(times)
            for k, of in enumerate(metrics)
        ]
        land(made.folder, name, lines)
        run(made, day.spark)
    return typed.wrong()


BUGS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[Day], list[str]]]] = {
    "order of readings": (without_order, every_type),
    "glitches of a counter": (other_metric("meter", counter=CounterRule(wraps_at=1000.0, glitch_amount=0)), every_type),
    "wraps of a counter": (other_metric("meter", counter=None), every_type),
    "rises between windows": (without_windows_before, every_type),
    "how long a value holds": (other_metric("valve", max_hold_seconds=1800), every_type),
    "probability of a quantile": (other_value(Aggregation.QUANTILE, lambda _: functions.col("max")), every_type),
    "circle of angles": (other_value(Aggregation.CIRCULAR_MEAN, lambda _: functions.expr("sum / count % 360")), every_type),
}
"""By what of a value is made otherwise, and what then happens."""
