"""Plans: what a checkpoint does not go on under, and what may change at any time."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gold.windows.spec import Late, Vector
from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.storage.bindings import bind, changed_plan
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.lakes import KITCHEN, METRICS, PRESSES, conf


def with_metric(name: str, **changes: Any) -> Callable[[Conf], Conf]:
    return lambda made: replace(made, metrics=METRICS | {name: replace(METRICS[name], **changes)})


def with_kitchen(**changes: Any) -> Callable[[Conf], Conf]:
    return lambda made: replace(made, groups={"kitchen": replace(KITCHEN, **changes), "presses": PRESSES})


@pytest.mark.parametrize(
    ("flow", "change", "told"),
    [
        (
            "gold.kitchen",
            with_metric("temperature", step_seconds=300),
            "the window of temperature in conf/metrics.yml was 600 s, and is 300 s now",
        ),
        (
            "gold.presses",
            with_metric("vibration", slide_seconds=None),
            "the window of vibration in conf/metrics.yml was 600 s every 300 s, and is 600 s now",
        ),
        (
            "gold.kitchen",
            with_metric("power", aggregation=Aggregation.MEDIAN),
            "what is aggregated beside count, min, max, sum and latest was nothing, and is median now",
        ),
        (
            "gold.kitchen",
            with_metric("power", aggregation=Aggregation.COUNTER_INCREASE),
            "what is aggregated beside count, min, max, sum and latest was nothing, and is series now",
        ),
        (
            "gold.kitchen",
            with_kitchen(vector=Vector("device", ("temperature", "power"))),
            "the vector of kitchen in conf/groups.yml was of each device: temperature, power, filled for 3600 s,"
            " and is of each device: temperature, power now",
        ),
        (
            "gold.kitchen",
            with_kitchen(late=Late.KEEP_ASIDE),
            "what becomes of late rows of kitchen in conf/groups.yml was amend, and is keep_aside now",
        ),
    ],
)
def test_a_flow_does_not_go_on_under_another_plan(flow: str, change: Callable[[Conf], Conf], told: str, tmp_path: Path) -> None:
    made = conf(tmp_path)
    bind(Lake(made), flow, (Lake(made).tables["bronze.events"],))
    assert [held.sentence for held in changed_plan(Lake(change(made)), flow)] == [told]


@pytest.mark.parametrize(
    "change",
    [
        with_metric("temperature", unit="K", label="warmth", maximum=400.0),
        with_metric("temperature", aggregation=Aggregation.MAX),
        with_metric("vibration", step_seconds=900),  # of another stream
        with_kitchen(lateness_seconds=1200, idle_close_seconds=60, label="Kitchen", metrics=("temperature", "power", "noise"), vector=None),
    ],
)
def test_what_a_checkpoint_does_not_depend_on_may_change(change: Callable[[Conf], Conf], tmp_path: Path) -> None:
    made = conf(tmp_path, metrics=METRICS | {"noise": Metric("noise", Aggregation.MAX, 600)})
    bind(Lake(made), "gold.kitchen", ())
    changed = change(made)
    assert changed_plan(Lake(replace(changed, metrics=made.metrics | changed.metrics)), "gold.kitchen") == []


def test_a_metric_that_came_later_is_bound_too_and_a_vector_that_ended_does_not_begin_again(tmp_path: Path) -> None:
    made = conf(tmp_path, metrics=METRICS | {"noise": Metric("noise", Aggregation.MAX, 600)})
    bind(Lake(made), "gold.kitchen", ())
    more = replace(made, groups=made.groups | {"kitchen": replace(KITCHEN, metrics=("temperature", "power", "noise"), vector=None)})
    bind(Lake(more), "gold.kitchen", ())
    for changed, told in (
        (replace(more, metrics=more.metrics | {"noise": Metric("noise", Aggregation.MAX, 60)}), "the window of noise"),
        (made, "the vector of kitchen in conf/groups.yml was nothing"),
    ):
        (held,) = changed_plan(Lake(changed), "gold.kitchen")
        assert held.sentence.startswith(told)
