"""Anomalies of a stream, slice by slice, without Spark: cuts, late rows, models that come in force, kills."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gold.schema import VECTOR_KEY
from gold.windows.revisions import latest
from gold.windows.spec import Vector
from orchestration.crash import Point
from orchestration.engine.lake import Lake
from orchestration.errors import ConfError, TidemarkError
from orchestration.jobs.gold import anomalies
from orchestration.jobs.gold.training import train, train_on_snapshot
from orchestration.storage import bindings
from orchestration.storage.delta import open_table, version_of
from orchestration.storage.models import IN_FORCE, MAIN, MODELS, SHADOW, ask_for, event_of, listed, roll_back
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import SNAPSHOTS
from orchestration.utc import from_micros
from tests.judged_lake import DAY, START, STEP, follow, lake_of, vectors
from tests.lakes import recorded
from tests.orchestration.jobs.killed import killed

JUDGED = ("score", "threshold", "is_anomaly", "reason", "expected", "band", "share", "model", "carry")


def rows_of(lake: Lake, revisions: str = "newest") -> dict[tuple[str, object], dict[str, object]]:
    rows = recorded(lake, "gold.kitchen_anomalies").append_column("device_group", pa.array(["kitchen"] * lake_rows(lake)))
    chosen = latest(rows, VECTOR_KEY) if revisions == "newest" else rows.filter(pa.compute.equal(rows["revision"], 0))
    return {(row["entity"], row["window_end"]): {name: row[name] for name in JUDGED} for row in chosen.to_pylist()}


def lake_rows(lake: Lake) -> int:
    return len(recorded(lake, "gold.kitchen_anomalies"))


def with_models_of(lake: Lake, other: Lake) -> None:
    for folder in ("gold/models", "models"):
        shutil.copytree(other.conf.lake.local / folder, lake.conf.lake.local / folder)


OVENS = ("oven-1", "oven-2")
LATE = (450, 470, 700)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Six days in one slice; three vectors are amended, one of them to another value."""
    lake = lake_of(tmp_path_factory.mktemp("whole"))
    vectors(lake, OVENS, range(864), 0)
    vectors(lake, OVENS[:1], LATE, 0, revision=1)
    follow(lake, 0, 864)
    return lake


def test_vectors_are_judged_once_the_group_has_learned(whole: Lake) -> None:
    rows = [*rows_of(whole, "in time").values()]
    assert len(rows) == 2 * 864
    assert (
        sum(row["reason"] == "learning" for row in rows) == 2 * 2 * DAY + 2
    )  # the window that ends with the learning time is learned from
    assert {row["model"] for row in rows} == {None, "kitchen-1"}
    assert [event.event for event in MODELS.rows(whole.conf.lake)] == ["begun", "trained", "in force"]


def test_a_late_value_is_an_anomaly_in_the_newest_row_and_none_in_time(whole: Lake) -> None:
    in_time, newest = rows_of(whole, "in time"), rows_of(whole)
    key = ("oven-1", from_micros(START + (LATE[0] + 1) * STEP))
    assert not in_time[key]["is_anomaly"]
    assert newest[key]["is_anomaly"]
    assert "temperature " in str(newest[key]["reason"])


def test_a_vector_that_is_amended_when_no_window_closes_is_judged_again(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    vectors(lake, OVENS, range(400), 0)
    follow(lake, 0, 400)
    vectors(lake, OVENS[:1], [390], 0, revision=1)
    follow(lake, 1, 400)  # bronze brought late rows alone
    assert rows_of(lake)["oven-1", from_micros(START + 391 * STEP)]["is_anomaly"]
    assert follow(lake, 1, 400) == 0


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, 863), max_size=7, unique=True).map(sorted), when=st.lists(st.integers(0, 7), min_size=3, max_size=3))
def test_any_cut_gives_the_same_rows(whole: Lake, tmp_path_factory: pytest.TempPathFactory, cuts: list[int], when: list[int]) -> None:
    """`when`: in which slice after that of its window a late row comes."""
    lake = lake_of(tmp_path_factory.mktemp("cut"))
    with_models_of(lake, whole)
    ends = [0, *cuts, 864]
    for batch, (first, last) in enumerate(pairwise(ends)):
        vectors(lake, OVENS, range(first, last), batch)
        for row, slices_later in zip(LATE, when, strict=True):
            of_window = next(n for n, end in enumerate(ends[1:]) if row < end)
            if batch == min(of_window + slices_later, len(cuts)):
                vectors(lake, OVENS[:1], [row], batch, revision=1)
        follow(lake, batch, last)
    assert rows_of(lake, "in time") == rows_of(whole, "in time")
    assert rows_of(lake) == rows_of(whole)


def test_slices_of_few_vectors_give_the_same_rows(whole: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anomalies, "SLICE_ROWS", 300)
    lake = lake_of(tmp_path)
    with_models_of(lake, whole)
    vectors(lake, OVENS, range(864), 0)
    vectors(lake, OVENS[:1], LATE, 0, revision=1)
    follow(lake, 0, 864)
    assert version_of(lake.table_path("gold.anomalies")) == 6  # created, and 1,728 vectors in slices of 300
    assert rows_of(lake, "in time") == rows_of(whole, "in time")
    assert rows_of(lake) == rows_of(whole)


@pytest.mark.parametrize("point", [Point.FLOW_BEGUN, Point.FLOW_WRITTEN, Point.MODEL_WRITTEN])
def test_a_kill_leaves_what_an_undisturbed_run_leaves(whole: Lake, tmp_path: Path, point: Point) -> None:
    lake = lake_of(tmp_path)
    vectors(lake, OVENS, range(864), 0)
    vectors(lake, OVENS[:1], LATE, 0, revision=1)
    with killed(point):
        follow(lake, 0, 864)
    follow(lake, 0, 864)
    is_compared = [name for name in JUDGED if name != "model"]
    for revisions in ("in time", "newest"):
        found, expected = rows_of(lake, revisions), rows_of(whole, revisions)
        assert [[row[name] for name in is_compared] for row in found.values()] == [
            [row[name] for name in is_compared] for row in expected.values()
        ]


def test_a_model_that_is_asked_for_judges_from_the_next_slice_on_and_alarms_go_on(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    vectors(lake, OVENS, range(600), 0)
    follow(lake, 0, 600)
    trained = train(lake.conf, lake.conf.groups["kitchen"], open_table(lake.table_path("gold.vectors")), START + 500 * STEP, "residual")
    assert trained
    ask_for(lake.conf, trained.model_id)
    ask_for(lake.conf, "kitchen-1", SHADOW)
    vectors(lake, OVENS, range(600, 700), 1)
    follow(lake, 1, 700)
    of_models = [row["model"] for row in rows_of(lake, "in time").values()]
    assert [of_models.count(name) for name in ("kitchen-1", "kitchen-2")] == [2 * (600 - 2 * DAY - 1), 2 * 100]
    shadows = [row["shadow_score"] for row in recorded(lake, "gold.kitchen_anomalies").to_pylist() if row["model"] == "kitchen-2"]
    assert None not in shadows
    assert roll_back(lake.conf, "kitchen") == "kitchen-1"
    vectors(lake, OVENS, range(700, 710), 2)
    follow(lake, 2, 710)
    assert [row["model"] for row in rows_of(lake, "in time").values()].count("kitchen-1") == 2 * (600 - 2 * DAY - 1) + 2 * 10


def test_models_are_listed_without_a_wish_that_another_one_replaced_and_without_an_ended_shadow(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    vectors(lake, OVENS, range(400), 0)
    follow(lake, 0, 400)
    for _ in range(2):
        train(lake.conf, lake.conf.groups["kitchen"], open_table(lake.table_path("gold.vectors")), START + 300 * STEP, "residual")
    ask_for(lake.conf, "kitchen-2", SHADOW)
    vectors(lake, OVENS, range(400, 410), 1)
    follow(lake, 1, 410)
    ask_for(lake.conf, "kitchen-3")
    assert roles(lake) == {"kitchen-1": "main", "kitchen-2": "shadow", "kitchen-3": "main, asked for"}
    assert roll_back(lake.conf, "kitchen") == "kitchen-1"
    assert roles(lake) == {"kitchen-1": "main, asked for", "kitchen-2": "shadow", "kitchen-3": None}
    roll_back(lake.conf, "kitchen", is_shadow=True)
    vectors(lake, OVENS, range(410, 420), 2)
    follow(lake, 2, 420)
    assert roles(lake) == {"kitchen-1": "main", "kitchen-2": None, "kitchen-3": None}


def roles(lake: Lake) -> dict[str, str | None]:
    return {row["model_id"]: row["role"] for row in listed(lake.conf.lake)}


def test_a_model_that_is_asked_for_comes_in_force_though_the_clock_is_behind(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    vectors(lake, OVENS, range(400), 0)
    follow(lake, 0, 400)
    MODELS.replace(lake.conf.lake, [replace(event, at=event.at + timedelta(days=1)) for event in MODELS.rows(lake.conf.lake)])
    trained = train(lake.conf, lake.conf.groups["kitchen"], open_table(lake.table_path("gold.vectors")), START + 300 * STEP, "residual")
    assert trained
    ask_for(lake.conf, trained.model_id)
    vectors(lake, OVENS, range(400, 410), 1)
    follow(lake, 1, 410)
    assert [row["model"] for row in rows_of(lake).values()].count("kitchen-2") == 2 * 10


def test_models_after_a_replay_judge_the_windows_that_they_judged(whole: Lake, tmp_path: Path) -> None:
    """A replay begins with no position, and keeps gold.models."""
    lake = lake_of(tmp_path)
    with_models_of(lake, whole)
    MODELS.append(lake.conf.lake, [event_of("kitchen", IN_FORCE, START + 800 * STEP, "", MAIN)])
    vectors(lake, OVENS, range(864), -1)
    follow(lake, 0, 864)
    of_models = [row["model"] for row in rows_of(lake, "in time").values()]
    assert of_models.count("kitchen-1") == 2 * (800 - 2 * DAY - 1)


def test_a_replay_before_the_next_slice_judges_as_before_what_was_judged_when_a_model_was_asked_for(whole: Lake, tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    with_models_of(lake, whole)
    closed = {"gold.flows/anomalies/kitchen": from_micros(START + 864 * STEP)}
    SNAPSHOTS.append(lake.conf.lake, [Snapshot(0, from_micros(START), 1, 0, {}, closed)])
    ask_for(lake.conf, "kitchen-1")
    vectors(lake, OVENS, range(870), -1)
    follow(lake, 0, 870)
    assert [event.after for event in MODELS.rows(lake.conf.lake) if event.event == IN_FORCE][-1] == from_micros(START + 864 * STEP)


def test_one_feature_is_judged_by_how_new_its_values_are_from_the_first_one_on(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, features=("temperature",))
    vectors(lake, OVENS, range(500), 0)
    vectors(lake, OVENS[:1], [400], 0, revision=1)
    follow(lake, 0, 500)
    rows = rows_of(lake)
    of_oven = sorted((end, row["score"], row["reason"], row["is_anomaly"]) for (name, end), row in rows.items() if name == "oven-1")
    assert [reason for _, _, reason, _ in of_oven[:201]] == ["learning"] * 201  # 15 % of two weeks
    assert "is new" in str(of_oven[400][2])
    cut = lake_of(tmp_path / "cut", features=("temperature",))
    with_models_of(cut, lake)
    for batch, (first, last) in enumerate(pairwise([0, 150, 203, 204, 420, 500])):
        vectors(cut, OVENS, range(first, last), batch)
        follow(cut, batch, last)
    vectors(cut, OVENS[:1], [400], 5, revision=1)
    follow(cut, 5, 500)
    assert rows_of(cut) == rows


def test_a_device_without_history_and_a_vector_without_features_have_no_score_and_say_why(whole: Lake, tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    with_models_of(lake, whole)
    vectors(lake, ("oven-1", "oven-2", "oven-9"), range(310), 0)
    follow(lake, 0, 310)
    rows = recorded(lake, "gold.kitchen_anomalies").to_pylist()
    assert {row["reason"] for row in rows if row["entity"] == "oven-9"} == {"learning"}
    assert {row["model"] for row in rows if row["entity"] == "oven-9"} == {None, "kitchen-1"}


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(flipped(file.read_bytes()))], ids=["gone", "a flipped bit"])
def test_a_model_file_that_is_gone_or_damaged_is_said(whole: Lake, tmp_path: Path, damage: Callable[[Path], object]) -> None:
    lake = lake_of(tmp_path)
    with_models_of(lake, whole)
    vectors(lake, OVENS, range(300), 0)
    damage(lake.conf.lake.local / "models" / "kitchen-1.parquet")
    with pytest.raises(TidemarkError, match=r"the model kitchen-1 at .* cannot be read"):
        follow(lake, 0, 300)


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def test_a_model_is_trained_on_what_a_snapshot_pins(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    vectors(lake, OVENS, range(300), 0)
    pinned = {"gold.vectors": version_of(lake.table_path("gold.vectors"))}
    SNAPSHOTS.append(lake.conf.lake, [Snapshot(0, from_micros(START), 1, 0, pinned, {"kitchen": from_micros(START + 250 * STEP)})])
    vectors(lake, OVENS, range(300, 600), 1)
    trained = train_on_snapshot(lake.conf, "kitchen")
    assert trained
    assert (trained.model_id, trained.vectors, trained.snapshot_id) == ("kitchen-1", 2 * 250, 0)
    with pytest.raises(ConfError, match=r"'kitchn' is no group with `anomalies`; did you mean 'kitchen'\?"):
        train_on_snapshot(lake.conf, "kitchn")
    with pytest.raises(ConfError, match="there is no model 'kitchen-7'; did you mean 'kitchen-1'"):
        ask_for(lake.conf, "kitchen-7")
    with pytest.raises(ConfError, match="kitchen has had no other model"):
        roll_back(lake.conf, "kitchen")
    ask_for(lake.conf, "kitchen-1", SHADOW)
    assert [(row["model_id"], row["role"]) for row in listed(lake.conf.lake)] == [("kitchen-1", "shadow, asked for")]


def test_vectors_of_other_features_than_those_of_the_conf_are_not_trained_on(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    vectors(lake, OVENS, range(300), 0)
    bindings.begin(lake, "gold.kitchen", (), bindings.THE_BEGINNING)
    pinned = {"gold.vectors": version_of(lake.table_path("gold.vectors"))}
    SNAPSHOTS.append(lake.conf.lake, [Snapshot(0, from_micros(START), 1, 0, pinned, {"kitchen": from_micros(START + 250 * STEP)})])
    kitchen = lake.conf.groups["kitchen"]
    swapped = replace(kitchen, vector=Vector("device", ("power", "temperature")))
    with pytest.raises(ConfError, match=r"the vector of kitchen .* was of each device: temperature, power"):
        train_on_snapshot(replace(lake.conf, groups={"kitchen": swapped}), "kitchen")
