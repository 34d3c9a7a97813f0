"""Anomalies computed twice: rows of the second evaluator are those of gold, for random series, models and late rows."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gold.alerts.spec import Hours
from gold.anomalies.detectors import DETECTORS
from gold.anomalies.model import NOVELTY, RESIDUAL, Model, Series, to_table
from gold.anomalies.rows import Amended, Chain, Judges, amended_blocks, judged, judged_again, nothing
from gold.anomalies.vectors import Vectors
from orchestration.audit.verify import anomaly_chains
from orchestration.audit.verify.anomalies import anomaly_outcome, lost_models
from orchestration.audit.verify.anomaly_chains import AGAIN, EXPECTED, IN_TIME, Rules, rows_of_entity
from orchestration.audit.verify.anomaly_scores import StoredModel, stored_model
from orchestration.audit.verify.compare import Outcome
from orchestration.audit.verify.lake_snapshot import latest_snapshot
from orchestration.audit.verify.store import opened
from orchestration.crash import Point
from orchestration.engine.lake import Lake
from orchestration.service.lake_findings import of_models
from tests.judged_lake import START, STEP, follow, lake_of, vectors
from tests.lakes import recorded, rewrite
from tests.orchestration.jobs.killed import killed

FEATURES = ("temperature", "power", "vibration", "door", "level")
NIGHT, NOON = Hours("Europe/Berlin", begin=22 * 60, end=6 * 60), Hours("Asia/Tokyo", begin=11 * 60, end=15 * 60)
MINUTE, DAY = 60_000_000, 86_400_000_000
SAME = ("window_start", "window_end", "is_anomaly", "reason", "model")
NUMBERS = ("score", "threshold", "shadow_score", "expected", "band", "share")
MODELS = {"one": (RESIDUAL, 1), "of another training": (RESIDUAL, 2), "of one feature": (RESIDUAL, 3), "novel": (NOVELTY, 4)}
Rows = Mapping[tuple[str, int], Any]
"""By how they are judged, and the end of their window."""


def series(noise: np.random.Generator, features: int, step: int, first: int = 1) -> Series:
    """300 vectors but for some: features that follow the day or do not, one of whole numbers or constant; holes, a fault, a value that
    stands."""
    ends = np.delete(np.arange(first, first + 300) * step, noise.integers(0, 300, 15))
    wave, count = np.sin(2 * np.pi * ends / DAY), len(ends)
    values = np.stack([10.0 * n + wave * noise.integers(0, 3) + noise.normal(size=count) for n in range(features)], axis=1)
    values[:, features // 2] = np.round(values[:, features // 2]) if noise.random() < 0.7 else 7.0
    values[noise.random(values.shape) < 0.04] = np.nan
    begin = int(noise.integers(0, count))
    values[begin : begin + 8, 0] += 12 * noise.random()
    values[begin // 2 : begin // 2 + 15, -1] = values[begin // 2, -1]
    values[begin // 3 : begin // 3 + 4] = np.nan
    return Series(ends, values)


@lru_cache
def trained(name: str, features: Sequence[str], step: int) -> tuple[Model, StoredModel]:
    """A model, and what its file says."""
    detector, seed = MODELS[name]
    chosen, noise = features[-1:] if name == "of one feature" else features, np.random.default_rng(seed)
    history = [(oven, series(noise, len(chosen), step)) for oven in ("oven-1", "oven-2")]
    if len(chosen) > 2:
        history[0][1].values[:, 1] = np.nan  # a feature that one oven does not have
    model = DETECTORS[detector].train(chosen, step, history, None)
    sink = pa.BufferOutputStream()
    pq.write_table(to_table(model), sink)
    return model, stored_model(name, sink.getvalue().to_pybytes())


def of_gold(judges: Judges, in_time: Vectors, newest: Vectors, amended: Sequence[int]) -> Rows:
    rows = {row["window_end"]: row for row in _plain(judged(judges, "oven-1", in_time, nothing(judges))[0])}
    carries = {end: (row["carry"], row["shadow_carry"]) for end, row in rows.items()}
    again = judged_again(judges, Amended("oven-1", amended_blocks(np.array(amended, np.int64), judges), newest, carries, lambda: in_time))
    return {(IN_TIME, end): row for end, row in rows.items()} | {(AGAIN, row["window_end"]): row for row in _plain(again)}


def _plain(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows with instants in microseconds."""
    for name in ("window_start", "window_end"):
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.int64()))
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def of_verify(rules: Rules, in_time: Vectors, newest: Vectors, amended: Sequence[int]) -> Rows:
    first, last = (anomaly_chains.Vectors(some.starts.tolist(), some.ends.tolist(), some.values) for some in (in_time, newest))
    rows = pa.Table.from_batches(rows_of_entity(rules, "oven-1", first, last, amended), EXPECTED)
    return {(row["judged"], row["window_end"]): row for row in _plain(rows)}


def assert_alike(ours: Rows, theirs: Rows) -> None:
    assert ours.keys() == theirs.keys()
    for key, row in ours.items():
        assert {name: row[name] for name in SAME} == {name: theirs[key][name] for name in SAME}, key
        size = row["share_sizes"][0] or 1.0
        for name in NUMBERS:
            found, expected = (np.array(one[name], np.float64) for one in (row, theirs[key]))
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * size, err_msg=f"{key} {name}")


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 5),
    step=st.sampled_from([10 * MINUTE, 60 * MINUTE, DAY]),
    roles=st.tuples(*[st.lists(st.sampled_from([*MODELS, "none"]), max_size=4)] * 2),
    quiet=st.lists(st.sampled_from([None, NIGHT, NOON]), max_size=3),
    late=st.integers(0, 4),
    gap=st.sampled_from([0, 100]),
)
def test_rows_are_those_of_gold(  # noqa: PLR0917
    seed: int, count: int, step: int, roles: tuple[list[str], list[str]], quiet: list[Hours | None], late: int, gap: int
) -> None:
    """Models come in force one after another, in both roles. Of the late rows the first may be the only ones of their window. `gap`: steps
    without a vector."""
    noise, features = np.random.default_rng(seed), FEATURES[:count]
    known = series(noise, count, step, 301)
    known.ends[noise.integers(len(known.ends)) :] += gap * step
    cuts = [[-DAY, *(int(known.ends[60 * n + noise.integers(60)]) for n in range(1, len(names)))][: len(names)] for names in roles]
    models = [[None if name == "none" else trained(name, features, step) for name in names] for names in roles]
    gold = [
        Chain(after, [of_one and (name, of_one[0]) for name, of_one in zip(names, made, strict=True)])
        for after, names, made in zip(cuts, roles, models, strict=True)
    ]
    own = [[(at, of_one and of_one[1]) for at, of_one in zip(after, made, strict=True)] for after, made in zip(cuts, models, strict=True)]
    hours = [(-DAY if n == 0 else int(known.ends[70 * n]), of_part) for n, of_part in enumerate(quiet)]
    amended = sorted({int(end) for end in noise.choice(known.ends, late)})
    changed = known.values + 5.0 * np.isin(known.ends, amended)[:, None]
    is_early: npt.NDArray[np.bool_] = ~np.isin(known.ends, amended[: noise.integers(2)])
    in_time, newest = (Vectors(known.ends - step, known.ends, values) for values in (known.values, changed))
    assert_alike(
        of_verify(Rules(features, step, own[0], own[1], hours), in_time[is_early], newest, amended),
        of_gold(Judges("kitchen", features, step, gold[0], gold[1], hours), in_time[is_early], newest, amended),
    )


@pytest.mark.parametrize("later", [1.0, 9e99, -0.0, 2.0**53 + 1])
def test_a_feature_that_learns_from_the_smallest_numbers_is_judged_alike(later: float) -> None:
    ends, noise = np.arange(1, 401) * 10 * MINUTE, np.random.default_rng(0)
    values = np.where(ends[:, None] < ends[300], 5e-324 * noise.integers(0, 5, (400, 1)), later * noise.integers(1, 3, (400, 1)))
    (model, stored), rows = trained("novel", FEATURES[:1], 10 * MINUTE), Vectors(ends - 10 * MINUTE, ends, values)
    judges = Judges("kitchen", FEATURES[:1], 10 * MINUTE, Chain([-DAY], [("novel", model)]))
    ours = of_verify(Rules(FEATURES[:1], 10 * MINUTE, [(-DAY, stored)], []), rows, rows, [])
    assert_alike(ours, of_gold(judges, rows, rows, []))
    assert any(row["score"] for row in ours.values())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two ovens that are judged after two days, without late rows."""
    lake = lake_of(tmp_path)
    vectors(lake, ("oven-1", "oven-2"), range(400), 0)
    follow(lake, 0, 400)
    return lake


def outcome(lake: Lake, folder: Path) -> Outcome:
    with opened(folder) as store:
        return anomaly_outcome(store, latest_snapshot(lake.conf), lake.conf, lake.conf.groups["kitchen"])


def test_a_changed_row_a_lost_one_and_one_that_is_surplus_are_named(lake: Lake, tmp_path: Path) -> None:
    assert ((found := outcome(lake, tmp_path)).differences, found.rows, [*lost_models(lake.conf)]) == (0, 800, [])
    rows = recorded(lake, "gold.kitchen_anomalies").sort_by([("entity", "ascending"), ("window_end", "ascending")])
    score = rows["score"].to_pylist()
    score[399] += 1e-6
    later = pc.add(rows["window_start"].slice(799), pa.scalar(STEP, pa.duration("us")))
    changed = rows.set_column(rows.schema.get_field_index("score"), "score", pa.array(score))
    surplus = rows.slice(799).set_column(rows.schema.get_field_index("window_start"), "window_start", later)
    rewrite(lake, "gold.kitchen_anomalies", pa.concat_tables([changed.slice(1), surplus]))
    assert sorted(difference.what for difference in outcome(lake, tmp_path).first) == ["differs", "missing", "surplus"]


def test_quiet_hours_that_change_hold_from_the_next_windows_on(lake: Lake, tmp_path: Path) -> None:
    """Though the slice that a killed run began is repeated with them."""
    vectors(lake, ("oven-1", "oven-2"), range(400, 500), 1, faulty=range(450, 455))
    with killed(Point.FLOW_BEGUN):
        follow(lake, 1, 500)
    quiet = lake_of(tmp_path, quiet_hours=Hours("UTC", begin=0, end=0))
    vectors(quiet, ("oven-1", "oven-2"), range(500, 600), 2, faulty=range(550, 555))
    follow(quiet, 2, 600)
    assert outcome(quiet, tmp_path).differences == 0
    told = recorded(quiet, "gold.kitchen_anomalies").filter(pc.field("is_anomaly"))["window_end"].cast(pa.int64()).to_numpy()
    assert ({(end - START) // STEP - 1 for end in told.tolist()} & {*range(450, 455)}) != set()
    assert told.max() < START + 500 * STEP


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(file.read_bytes()[:-9])], ids=["lost", "cut"])
def test_a_model_that_cannot_be_read_is_named_by_verify_and_doctor(lake: Lake, tmp_path: Path, damage: Callable[[Path], object]) -> None:
    (file,) = (lake.conf.lake.local / "models").iterdir()
    damage(file)
    for (difference,) in (outcome(lake, tmp_path).first, *(of_group.first for of_group in lost_models(lake.conf))):
        assert (difference.what, difference.row) == ("lost model", str(file))
    assert [(finding.verdict, str(file) in finding.finding) for finding in of_models(lake.conf)] == [("bad", True)]
