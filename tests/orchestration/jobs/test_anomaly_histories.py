"""Random histories of judged groups: slices, kills, late rows, quiet hours that change, models that come and go. What is written in slices
is what one slice writes by the same models."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gold.alerts.spec import Hours
from gold.schema import VECTOR_KEY
from gold.windows.revisions import latest
from orchestration.audit.verify.anomalies import anomaly_outcome
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.audit.verify.store import opened
from orchestration.crash import Point
from orchestration.engine.lake import Lake
from orchestration.errors import ConfError
from orchestration.jobs.gold.training import train
from orchestration.storage.delta import open_table
from orchestration.storage.models import MAIN, SHADOW, ask_for, listed, roll_back
from tests.judged_lake import START, STEP, follow, lake_of, vectors
from tests.lakes import recorded
from tests.orchestration.jobs.killed import killed
from tests.orchestration.jobs.test_anomaly_slices import with_models_of

OVENS = ("oven-1", "oven'2")
HOURS = (None, Hours("Europe/Berlin", begin=22 * 60, end=6 * 60), Hours("UTC", begin=10 * 60, end=15 * 60))
WRITTEN = list[tuple[Sequence[str], Sequence[int], int]]


def with_late_rows(lake: Lake, batch: int, upto: int, noise: np.random.Generator) -> WRITTEN:
    """Amend some vectors of one oven; the batch is their revision."""
    late = OVENS[noise.integers(2)], sorted({int(row) for row in noise.integers(max(0, upto - 150), upto, 3)})
    vectors(lake, (late[0],), late[1], batch, revision=batch)
    return [((late[0],), late[1], batch)]


def with_another_model(lake: Lake, upto: int, noise: np.random.Generator) -> None:
    """Train a model, ask for one, or go back to the one before."""
    of_vectors = open_table(lake.table_path("gold.vectors"))
    train(lake.conf, lake.conf.groups["kitchen"], of_vectors, START + upto * STEP, str(noise.choice(["residual", "novelty"])))
    if models := [row["model_id"] for row in listed(lake.conf.lake)]:
        ask_for(lake.conf, str(noise.choice(models)), str(noise.choice([MAIN, SHADOW])))
    if noise.random() < 0.4:
        try:
            roll_back(lake.conf, "kitchen", is_shadow=noise.random() < 0.5)
        except ConfError as error:
            assert "kitchen has " in str(error)


def newest_rows(lake: Lake) -> dict[tuple[str, Any], dict[str, Any]]:
    rows = latest(recorded(lake, "gold.anomalies"), VECTOR_KEY).drop_columns(["gold_batch", "revision"])
    return {(row["entity"], row["window_end"]): row for row in rows.to_pylist()}


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("seed", [4, 5, 6])
def test_a_history_in_slices_is_that_of_one(tmp_path: Path, seed: int, is_late: bool) -> None:
    noise, upto, written, faulty = np.random.default_rng(seed), 0, WRITTEN(), set[int]()
    settings: dict[str, Any] = {"learning_seconds": 86_400, "features": (("temperature",), ("power", "temperature"))[seed % 2]}
    for batch in range(1, 7):
        lake = lake_of(tmp_path / "slices", quiet_hours=HOURS[noise.integers(3)], **settings)
        rows = range(upto, upto := upto + int(noise.choice([1, 100, 200])))
        faulty.update(row for row in rows if noise.random() < 0.02)
        vectors(lake, OVENS, rows, batch, faulty=[*faulty])
        written += [(OVENS, rows, 0), *(with_late_rows(lake, batch, upto, noise) if is_late else [])]
        if noise.random() < 0.5:
            with killed((Point.FLOW_BEGUN, Point.FLOW_WRITTEN)[noise.integers(2)]):
                follow(lake, batch, upto)
            lake = lake_of(tmp_path / "slices", quiet_hours=HOURS[noise.integers(3)], **settings)
        follow(lake, batch, upto)
        with_another_model(lake, upto, noise)
    follow(lake, batch + 1, upto)  # the last wish comes in force
    whole = lake_of(tmp_path / "whole", quiet_hours=lake.conf.groups["kitchen"].anomalies.quiet_hours, **settings)  # type: ignore[union-attr]
    with_models_of(whole, lake)
    for ovens, numbers, revision in written:
        vectors(whole, ovens, numbers, 0, revision=revision, faulty=[] if revision else [*faulty])
    follow(whole, 0, upto)
    assert newest_rows(lake) == newest_rows(whole)
    if not is_late:
        with opened(tmp_path) as store:
            found = anomaly_outcome(store, latest_snapshot(lake.conf), lake.conf, lake.conf.groups["kitchen"])
        assert (found.differences, found.rows) == (0, 2 * upto)
