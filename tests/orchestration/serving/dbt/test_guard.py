"""Nothing is replaced in silence: what cannot be registered is refused before Spark starts, and two builds never run at once."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.serving.dbt import build_state, targets
from orchestration.storage import snapshots
from orchestration.storage.lease import sole_writer
from orchestration.storage.marts import MARTS, Build
from orchestration.storage.snapshot import Snapshot
from tests.chaos.plants import Plant
from tests.orchestration.serving.dbt.plant import dbt, made

NOW = datetime(2026, 1, 6, tzinfo=UTC)
PINNED = Snapshot(3, NOW, 1, 7, {"silver.late": 0}, {})
HISTORY, HOURLY = "marts.device_history", "marts.hourly"


def mart(lake: Location, name: str, commits: int = 1) -> Path:
    place = lake.local / "marts" / name
    for number in range(commits):
        write_deltalake(place, pa.table({"n": [number]}), mode="append")
    return place


def recorded(lake: Location, basis: str = "as now", **versions: int) -> Build:
    build = Build(
        len(MARTS.rows(lake)), NOW, PINNED.snapshot_id, 1, {f"marts.{name}": version for name, version in versions.items()}, {}, basis
    )
    MARTS.append(lake, [build])
    return build


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    """Two marts, as the last build has left them."""
    lake = Location(tmp_path)
    mart(lake, "hourly", 2)
    mart(lake, "device_history")
    recorded(lake, hourly=1, device_history=0)
    return lake


def test_marts_as_the_last_build_left_them_are_not_refused(lake: Location) -> None:
    targets.refuse_lost(lake)
    assert targets.versions(lake) == {HISTORY: 0, HOURLY: 1}


def test_a_mart_that_was_built_before_and_is_gone_is_refused_with_a_hint(lake: Location) -> None:
    shutil.rmtree(lake.local / "marts" / "device_history")
    with pytest.raises(TidemarkError, match=r"^marts.device_history was built before, and is gone(.|\n)*--drop device_history build"):
        targets.refuse_lost(lake)


def test_files_without_a_log_are_refused_also_where_no_build_has_recorded_them(lake: Location) -> None:
    shutil.rmtree(mart(lake, "unheard_of") / "_delta_log")
    with pytest.raises(TidemarkError, match=r"^marts.unheard_of has files in .*, but no Delta log"):
        targets.refuse_lost(lake)


def test_a_mart_that_lacks_a_file_is_refused(lake: Location) -> None:
    next((lake.local / "marts" / "hourly").glob("*.parquet")).unlink()
    with pytest.raises(TidemarkError, match=r"^marts.hourly lacks 1 of its 2 files"):
        targets.refuse_lost(lake)


def test_a_mart_whose_log_is_rubbish_is_refused(lake: Location) -> None:
    for entry in (lake.local / "marts" / "hourly" / "_delta_log").glob("*.json"):
        entry.write_text("rubbish")
    with pytest.raises(TidemarkError, match=r"^marts.hourly cannot be read"):
        targets.refuse_lost(lake)


def test_all_lost_marts_are_reported_at_once(lake: Location) -> None:
    shutil.rmtree(lake.local / "marts" / "device_history")
    shutil.rmtree(lake.local / "marts" / "hourly" / "_delta_log")
    with pytest.raises(TidemarkError) as error:
        targets.refuse_lost(lake)
    assert [name in str(error.value) for name in (HISTORY, HOURLY)] == [True, True]


def test_a_dropped_mart_is_forgotten_by_every_build_as_its_versions_are_counted_anew(lake: Location) -> None:
    recorded(lake, hourly=1, device_history=0)
    shutil.rmtree(lake.local / "marts" / "device_history")
    targets.drop(lake, "device_history")
    targets.refuse_lost(lake)
    assert [build.versions for build in MARTS.rows(lake)] == [{HOURLY: 1}, {HOURLY: 1}]
    targets.drop(lake, "hourly")  # one that is whole: it was said in as many words
    assert (targets.versions(lake), (lake.local / "marts" / "hourly").exists()) == ({}, False)
    with pytest.raises(TidemarkError, match=r"^--drop hourly: there is no such mart; there are none"):
        targets.drop(lake, "hourly")


@pytest.mark.parametrize("name", ["..", "../silver", "/", "hourly/_delta_log", ""])
def test_only_a_mart_can_be_dropped(lake: Location, name: str) -> None:
    (lake / "silver").local.mkdir()
    with pytest.raises(TidemarkError, match="there is no such mart"):
        targets.drop(lake, name)
    assert (lake / "silver").is_dir()


def test_what_a_killed_build_left_of_a_table_that_it_was_creating_is_removed_and_nothing_else(lake: Location) -> None:
    build_state.begin(lake, "as now", PINNED, targets.versions(lake))
    for name in ("daily", "hourly"):
        (lake.local / "marts" / name).mkdir(exist_ok=True)
        (lake.local / "marts" / name / "part-0.parquet").write_bytes(b"half")
    shutil.rmtree(lake.local / "marts" / "device_history" / "_delta_log")
    pending = build_state.pending_build(lake).read()
    assert pending is not None
    targets.remove_leftovers(lake, pending.marts_at_newest)
    assert not (lake.local / "marts" / "daily").exists()
    assert targets.versions(lake) == {HOURLY: 1}
    with pytest.raises(TidemarkError, match=r"^marts.device_history has files"):  # it was there when the build began
        targets.refuse_lost(lake)


def is_incremental(lake: Location, basis: str = "as now", incremental: tuple[str, ...] = (HOURLY,)) -> bool:
    return build_state.incremental_base(lake, basis, PINNED, targets.versions(lake), incremental) is not None


def test_a_build_continues_the_last_recorded_one_of_the_same_generation_conf_and_project(lake: Location) -> None:
    assert (is_incremental(lake), is_incremental(lake, "of another generation")) == (True, False)


def test_after_a_killed_build_the_next_is_incremental_unless_the_killed_one_was_of_another_generation(lake: Location) -> None:
    build_state.begin(lake, "as now", PINNED, targets.versions(lake))
    assert is_incremental(lake)
    build_state.begin(lake, "of another generation", PINNED, targets.versions(lake))
    assert (is_incremental(lake), is_incremental(lake, "of another generation")) == (
        False,
        False,
    )  # some marts are of the one, some of the other
    build_state.begin(lake, "as now", PINNED, targets.versions(lake))
    assert not is_incremental(lake)
    recorded(lake, hourly=1, device_history=0)
    build_state.pending_build(lake).remove()
    assert is_incremental(lake)


def test_a_mart_that_the_last_build_left_out_is_made_anew_unless_it_was_created_since(lake: Location) -> None:
    mart(lake, "daily")
    assert not is_incremental(lake, incremental=("marts.daily",))
    shutil.rmtree(lake.local / "marts" / "daily")
    build_state.begin(lake, "as now", PINNED, targets.versions(lake))
    mart(lake, "daily")  # a build that failed later on
    assert is_incremental(lake, incremental=("marts.daily",))
    build_state.begin(lake, "as now", PINNED, targets.versions(lake))
    assert is_incremental(lake, incremental=("marts.daily",))


def test_a_mart_that_builds_left_out_goes_on_from_the_build_that_made_it_unless_it_was_changed_since(lake: Location) -> None:
    mart(lake, "own")
    for number in (1, 2):
        versions, reached = {HOURLY: 1, HISTORY: 0, "marts.own": 0}, {HOURLY: 0}
        MARTS.append(lake, [Build(number, NOW, PINNED.snapshot_id, 1, versions, reached, "as now")])

    def base(*incremental: str) -> int | None:
        found = build_state.incremental_base(lake, "as now", PINNED, targets.versions(lake), incremental)
        return None if found is None else found.build

    assert (base("marts.own"), base(HOURLY), base("marts.own", HOURLY)) == (2, 0, 0)
    mart(lake, "hourly")  # by a build that was not recorded
    assert (base("marts.own"), base(HOURLY)) == (2, None)
    MARTS.append(lake, [Build(3, NOW, PINNED.snapshot_id, 1, {"marts.own": 0}, {}, "of another generation")])
    assert (base("marts.own"), base(HOURLY)) == (None, None)


def test_a_mart_that_was_restored_as_it_was_long_ago_is_made_anew(lake: Location) -> None:
    shutil.rmtree(lake.local / "marts" / "hourly")
    mart(lake, "hourly", 1)
    assert not is_incremental(lake)


def test_before_anything_else_a_lost_mart_is_refused_by_the_command_and_so_is_a_second_build(tmp_path: Path) -> None:
    plant: Plant = made(tmp_path / "plant")
    conf: Conf = plant.opened().conf
    nothing = dbt(plant, "build")
    assert (nothing.code, nothing.err) == (
        4,
        "tidemark: there is no snapshot yet that marts could be built of; make one with `tidemark run --once`.\n",
    )
    snapshots.SNAPSHOTS.append(conf.lake, [PINNED])
    mart(conf.lake, "hourly")
    recorded(conf.lake, hourly=0, device_history=5)
    lost = dbt(plant, "build")
    assert lost.code == 4
    assert "marts.device_history was built before, and is gone" in lost.err
    assert not Lake(conf).conf.lake.local.joinpath("spark.log").exists()  # Spark was not started
    with sole_writer(targets.folder(conf.lake)):
        second = dbt(plant, "test")
    assert second.code == 3
    assert "writes the lake at" in second.err
    assert DeltaTable(conf.lake.local / "marts" / "hourly").version() == 0
