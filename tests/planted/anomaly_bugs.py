"""Planted bugs of anomalies: the detector, what goes on from vector to vector, and the vectors that late rows change; verify names them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gold.anomalies import detectors, judging, residual, rows
from gold.anomalies.alarms import Alarmed
from gold.anomalies.spec import Anomalies
from gold.windows.revisions import latest
from gold.windows.spec import Group, Vector
from orchestration.jobs.gold import amended_anomalies
from orchestration.jobs.gold.training import train
from orchestration.storage.delta import open_table
from orchestration.storage.models import MAIN, SHADOW, ask_for
from orchestration.storage.tables import LakeStore
from orchestration.utc import to_micros
from silver.aggregation import Aggregation
from silver.metric import Metric
from tests.lakes import event, land, run
from tests.planted.day import START, Day

FEATURES = ("temperature", "power")
STEP = timedelta(minutes=10)


def ovens(day: Day) -> list[str]:
    """Four days of two devices: another model and a shadow come in force on the third day, late rows of old windows on the fourth."""
    metrics = {name: Metric(name, Aggregation.AVERAGE, 600) for name in FEATURES}
    judged = Anomalies(learning_seconds=86_400)
    kitchen = Group("kitchen", FEATURES, 600, "kitchen", Vector("device", FEATURES, 600), anomalies=judged)
    made = replace(day.made, policy=replace(day.made.policy, lateness_seconds=60), metrics=metrics, groups={"kitchen": kitchen})
    for number, (first, last) in enumerate(((0, 288), (288, 400), (400, 576))):
        late = [event("oven", "temperature", 400.0, START + n * STEP + timedelta(seconds=2)) for n in (250, 330)] if number == 2 else []
        land(made.folder, f"{number}.json", [*_lines(first, last), *late])
        run(made, day.spark)
        if number == 0:
            _ask_for_another_model(day, made, kitchen)
    return Day(made, day.spark).wrong()


def _lines(first: int, last: int) -> list[str]:
    lines = []
    for number, device in enumerate(("oven", "fridge")):
        noise = np.random.default_rng(number)
        heat = np.sin(2 * np.pi * np.arange(1000) / 144) + noise.normal(size=1000) * 0.1
        values = {"temperature": 200 + 20 * heat, "power": 5 + heat + noise.normal(size=1000) * 0.05}
        values["temperature"][[320, 430]] += 90
        lines += [
            event(device, metric, float(of_metric[n]), START + n * STEP + timedelta(seconds=1))
            for n in range(first, last)
            for metric, of_metric in values.items()
            if n % 50 or metric == "power"  # a hole
        ]
    return lines


def _ask_for_another_model(day: Day, made: Any, kitchen: Group) -> None:
    """Trained on less; the job puts it in force with its next slice, and beside it as a shadow."""
    vectors = open_table(LakeStore(made).table_path("gold.vectors"))
    trained = train(made, kitchen, vectors, to_micros(START + 200 * STEP), "residual")
    assert trained
    for role in (MAIN, SHADOW):
        ask_for(made, trained.model_id, role)


def swapped_lags(patch: pytest.MonkeyPatch) -> None:
    """The value of two vectors ago in place of the last one."""
    design = residual.design

    def other(of_rows: Any, phase: Any) -> Any:
        made, count = design(of_rows, phase), of_rows.shape[1]
        return made[:, [*range(count), *range(2 * count, 3 * count), *range(count, 2 * count), *range(3 * count, made.shape[1])]]

    patch.setattr(residual, "design", other)


def state_of_the_model_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rows, "Before", lambda past, state, _: detectors.Before(past, state))


def forgotten_alarms(patch: pytest.MonkeyPatch) -> None:
    """At each slice."""
    patch.setattr(judging, "Alarmed", lambda *_: Alarmed())


def first_revisions(patch: pytest.MonkeyPatch) -> None:
    """What late rows changed is judged as it was before."""

    def first(history: pa.Table, key: Sequence[str]) -> pa.Table:
        return history.filter(pc.field("revision") == 0) if "vector" in history.column_names else latest(history, key)

    patch.setattr(amended_anomalies, "latest", first)


BUGS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[Day], list[str]]]] = {
    "lag of a vector": (swapped_lags, ovens),
    "reset at another model": (state_of_the_model_before, ovens),
    "alarms before a slice": (forgotten_alarms, ovens),
    "revision that is judged": (first_revisions, ovens),
}
"""By what is mistaken, and what then happens."""
