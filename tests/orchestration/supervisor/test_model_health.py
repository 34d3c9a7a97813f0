"""Models of anomalies that fit no more, alarm too often, or do not know a device: rows of gold in, problems out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gold.anomalies.spec import Anomalies
from orchestration.conf.model import Conf
from orchestration.storage.models import IN_FORCE, MAIN, MODELS, TRAINED, ModelEvent
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from orchestration.storage.tables import LakeStore, ensure
from orchestration.supervisor.model_health import problems_of_models
from tests.lakes import KITCHEN, conf, write
from tests.rows import at

END, STEP = at("2026-01-15T12:00:00"), timedelta(hours=1)
MODEL = ModelEvent(END, "kitchen", "kitchen-1", TRAINED, detector="residual", features=["temperature", "power"], step_seconds=600)
Rows = Sequence[tuple[float | None, str | None]]
JUDGED, LEARNING = (1.0, None), (None, "learning")


def lake(folder: Path, model: ModelEvent | None = MODEL, **anomalies: object) -> Conf:
    """A lake with a model, if any, in force from the first vector on."""
    made = conf(folder, groups={"kitchen": replace(KITCHEN, anomalies=Anomalies(**anomalies))})  # type: ignore[arg-type]
    for table in LakeStore(made).tables.values():
        ensure(table)
    if model:
        MODELS.append(made.lake, [model, ModelEvent(END, "kitchen", model.model_id, IN_FORCE, MAIN)])
    return made


def said(made: Conf, rows: Mapping[str, Rows], alarms: int = 0, model: str | None = "kitchen-1") -> list[str]:
    """Severity and sentence of each problem. `rows`: score and reason of the newest vectors of each device; the first `alarms` are some."""
    store = LakeStore(made)
    for entity, of_entity in rows.items():
        ends = [END - number * STEP for number in reversed(range(len(of_entity)))]
        keys: list[dict[str, Any]] = [
            {"entity": entity, "window_start": end - STEP, "window_end": end, "revision": 0, "gold_batch": 0, "model": model}
            for end in ends
        ]
        judged = [{"score": score, "reason": reason, "is_anomaly": n < alarms} for n, (score, reason) in enumerate(of_entity)]
        write(store, "gold.kitchen_anomalies", *(at_end | row for at_end, row in zip(keys, judged, strict=True)))
    SNAPSHOTS.append(made.lake, [Snapshot(1, END, 1, 0, {store.stored("gold.kitchen_anomalies"): len(rows)}, {"kitchen": END})])
    return [f"{problem.severity}: {problem.sentence}" for problem in problems_of_models(made)]


def test_a_model_that_fits_and_alarms_as_planned_is_no_problem(tmp_path: Path) -> None:
    assert said(lake(tmp_path), {"oven": [JUDGED] * 100, "fridge": [JUDGED] * 100}, alarms=10) == []


def test_ten_times_the_planned_alarms_are_told_with_the_command_that_trains_anew(tmp_path: Path) -> None:
    made = lake(tmp_path, false_alarms_per_week=2)
    assert said(made, {"oven": [JUDGED] * 100}, alarms=21) == [
        "warning: Model kitchen-1 of kitchen raised 21 alarms in a week, and 2 are planned."
    ]
    assert [(problem.subject, problem.command) for problem in problems_of_models(made)] == [
        ("model kitchen", "tidemark train kitchen --promote")
    ]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"features": ["power"]}, "was trained on power, and temperature, power are judged now"),
        ({"step_seconds": 60}, "was trained on a vector in 60 s, and there is one in 600 s now"),
        ({"step_seconds": 0}, None),
    ],
)
def test_a_model_of_other_features_or_another_window_does_not_fit(changes: dict[str, object], text: str | None, tmp_path: Path) -> None:
    expected = [f"warning: Model kitchen-1 of kitchen {text}."] if text else []
    assert said(lake(tmp_path, replace(MODEL, **changes)), {"oven": [JUDGED] * 9}) == expected  # type: ignore[arg-type]


def test_devices_that_the_model_does_not_know_are_told_once_they_have_sent_for_long_enough(tmp_path: Path) -> None:
    rows: dict[str, Rows] = {"oven": [JUDGED] * 30, "new": [LEARNING] * 30, "newer": [LEARNING] * 9, "found": [LEARNING] * 30 + [JUDGED]}
    made = lake(tmp_path, learning_seconds=86_400)
    assert said(made, rows) == ["notice: 1 device of kitchen has no model."]


def test_a_model_of_novelty_learns_each_device_by_itself(tmp_path: Path) -> None:
    assert said(lake(tmp_path, replace(MODEL, detector="novelty"), learning_seconds=3600), {"new": [LEARNING] * 30}) == []


def test_a_group_that_should_have_learned_and_has_no_model_is_told(tmp_path: Path) -> None:
    rows = {name: [LEARNING] * 30 for name in ("oven", "fridge")}
    made = lake(tmp_path, None, learning_seconds=86_400)
    assert said(made, rows, model=None) == ["notice: 2 devices of kitchen have no model."]


def test_without_anomalies_nothing_is_read(tmp_path: Path) -> None:
    assert [*problems_of_models(conf(tmp_path))] == []
