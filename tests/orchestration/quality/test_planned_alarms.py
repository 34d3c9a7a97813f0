"""Alarms of a week beside those that a group plans: rows of gold.<group>_anomalies in, an outcome out."""

from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from gold.anomalies.spec import Anomalies
from gold.schema import ANOMALIES
from orchestration.engine.lake import Lake
from orchestration.quality.kinds import evaluate_measure
from orchestration.quality.measures.context import Context
from orchestration.quality.outcome import Outcome
from orchestration.quality.store import copy_rows, open_store
from orchestration.quality.suites import packaged
from tests.lakes import KITCHEN, conf
from tests.rows import at

NOW = at("2026-01-15T12:00:00")
(SHIPPED,) = (suite.expectations[0] for suite in packaged() if suite.table == "gold.*_anomalies")


def outcome(folder: Path, alarms: int, *, days_ago: float = 1, score: float | None = 3.0) -> Outcome:
    """Of a group that plans one alarm a week and device: two devices have 100 vectors each, of which the first raised so many alarms."""
    rows = [
        {"entity": entity, "window_end": NOW - timedelta(days=days_ago if n < alarms else 0), "revision": 0}
        | {"score": score, "is_anomaly": n < alarms and entity == "oven"}
        for entity in ("oven", "fridge")
        for n in range(100)
    ]
    lake = Lake(conf(folder, groups={"kitchen": replace(KITCHEN, anomalies=Anomalies())}), None)
    with closing(open_store()) as store:
        copy_rows(store, "view", pa.Table.from_pylist(rows, ANOMALIES))
        return evaluate_measure(SHIPPED, Context(store, lake, NOW, lambda _: "view", True, None), "gold.kitchen_anomalies", {})


@pytest.mark.parametrize(("alarms", "is_success"), [(20, True), (21, False)])
def test_more_than_ten_times_the_planned_alarms_of_a_week_fail(alarms: int, is_success: bool, tmp_path: Path) -> None:
    found = outcome(tmp_path, alarms)
    assert (found.is_success, found.observed) == (is_success, f"{alarms} alarms in 7 days, and 2 are planned")


def test_alarms_of_an_earlier_week_do_not_count(tmp_path: Path) -> None:
    assert outcome(tmp_path, 50, days_ago=8).is_success


def test_while_a_model_learns_there_is_no_verdict(tmp_path: Path) -> None:
    assert outcome(tmp_path, 0, score=None) == Outcome(None, "not checked: no vector has a score")
