"""Seals: what they hold on to, what may go, and what a kill leaves of them."""

import os
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from orchestration.conf.model import Conf
from orchestration.engine.lake import Lake
from orchestration.location import Location
from orchestration.storage.sealing import Sealing
from orchestration.storage.seals import Damage, Seal, damaged_checkpoint, damaged_files, damaged_log
from tests.lakes import conf

FLOW = "silver.readings"


def written(checkpoint: Path, name: str, at: float) -> Path:
    """A file that was last written at that instant."""
    file = checkpoint / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(name)
    os.utime(file, (at, at))
    return file


def finished(made: Conf, batches: range) -> Path:
    """The checkpoint after these batches, sealed after each."""
    checkpoint = Lake(made).checkpoint(FLOW)
    for batch in batches:
        written(checkpoint.local, f"offsets/{batch}", 10 * batch)
        written(checkpoint.local, f"state/0/0/{batch + 1}.delta", 10 * batch + 1)
        written(checkpoint.local, f"commits/{batch}", 10 * batch + 2)
        Sealing(Lake(made), [FLOW]).seal_finished_batches()
    return checkpoint.local


def test_every_change_of_a_sealed_file_is_told(tmp_path: Path) -> None:
    checkpoint = finished(conf(tmp_path), range(3))
    assert damaged_checkpoint(Location(checkpoint)) == []
    (checkpoint / "offsets" / "2").write_text("offsets/3")
    (checkpoint / "commits" / "1").write_text("")
    (checkpoint / "state" / "0" / "0" / "3.delta").unlink()
    assert {str(damage).removeprefix(f"{checkpoint}/") for damage in damaged_checkpoint(Location(checkpoint))} == {
        "offsets/2 holds other bytes than were written",
        "commits/1 has 0 bytes and had 9",
        "state/0/0/3.delta is gone",
    }


def test_a_batch_that_is_not_finished_may_be_written_anew(tmp_path: Path) -> None:
    made = conf(tmp_path)
    checkpoint = finished(made, range(2))
    state = written(checkpoint, "state/0/0/3.delta", 5)  # a copy of a lake may have given it any time
    written(checkpoint, "state/0/0/2.snapshot", 30)
    Sealing(Lake(made), [FLOW]).seal_finished_batches()
    state.write_text("by another attempt")
    assert damaged_checkpoint(Location(checkpoint)) == []
    assert "state/0/0/2.snapshot" in Seal(Location(checkpoint)).marks
    finished(made, range(2, 3))
    state.write_text("by nobody")
    assert damaged_checkpoint(Location(checkpoint)) == [Damage(state, "has 9 bytes and had 17")]


def test_what_spark_has_no_use_for_may_go_and_nothing_else(tmp_path: Path) -> None:
    made = conf(tmp_path)
    checkpoint = finished(made, range(3))
    written(checkpoint, "metadata", 5)
    written(checkpoint, "state/0/0/SSTs/000200-a.sst", 21)
    finished(made, range(3, 103))
    for name in ("offsets/0", "offsets/2", "commits/2", "state/0/0/1.delta", "state/0/0/2.delta", "state/0/0/SSTs/000200-a.sst"):
        (checkpoint / name).unlink()
    assert damaged_checkpoint(Location(checkpoint)) == []
    young = [checkpoint / "offsets" / "3", checkpoint / "state" / "0" / "0" / "3.delta", checkpoint / "metadata"]
    for file in young:
        file.unlink()
    assert {damage.file for damage in damaged_checkpoint(Location(checkpoint))} == {*young}


def test_a_seal_that_a_kill_cut_short_goes_on(tmp_path: Path) -> None:
    made = conf(tmp_path)
    checkpoint = finished(made, range(2))
    seal = Seal(Location(checkpoint)).file
    seal.write_bytes(seal.read_bytes()[:-7])
    finished(made, range(2, 3))
    assert damaged_checkpoint(Location(checkpoint)) == []
    assert Seal(Location(checkpoint)).marks.keys() >= {"commits/1", "commits/2"}


def test_a_seal_does_not_grow_for_ever(tmp_path: Path) -> None:
    made = conf(tmp_path)
    checkpoint = finished(made, range(6))
    for batch in range(5):
        for name in (f"offsets/{batch}", f"commits/{batch}", f"state/0/0/{batch + 1}.delta"):
            (checkpoint / name).unlink()
    finished(made, range(6, 7))
    assert Seal(Location(checkpoint)).marks.keys() == {f"{log}/{batch}" for log in ("offsets", "commits") for batch in (5, 6)} | {
        "state/0/0/6.delta",
        "state/0/0/7.delta",
    }


def test_of_a_table_log_entries_may_go_before_a_checkpoint_and_files_that_no_version_needs(tmp_path: Path) -> None:
    made = conf(tmp_path)
    path = Lake(made).table_path("ops.ticks")
    for n in range(3):
        write_deltalake(path.local, pa.table({"n": [n]}), mode="append")
    Sealing(Lake(made), []).seal_finished_batches()
    DeltaTable(path.local).optimize.compact()
    DeltaTable(path.local).create_checkpoint()
    Sealing(Lake(made), []).seal_finished_batches()
    for version in range(3):
        (path.local / "_delta_log" / f"{version:020d}.json").unlink()
    DeltaTable(path.local).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert (damaged_log(path), damaged_files(path)) == ([], [])
    (file,) = path.glob("*.parquet")
    file.local.write_bytes(file.local.read_bytes() + b" ")
    assert [damage.file for damage in damaged_files(path)] == [file.local]
    today = datetime.now(UTC).date()
    os.utime(file.local, (0, 0))
    assert [len(damaged_files(path, since)) for since in (date(1970, 1, 1), today)] == [1, 0]
    file.local.unlink()
    assert damaged_files(path) == [Damage(file.local, "is gone")]


@pytest.mark.parametrize("ending", ["json#1", "crc.draft"])
def test_what_is_about_to_be_renamed_is_not_sealed_and_not_missed_where_it_was(tmp_path: Path, ending: str) -> None:
    made = conf(tmp_path)
    path = Lake(made).table_path("ops.ticks")
    write_deltalake(path.local, pa.table({"n": [1]}), mode="append")
    draft = path / "_delta_log" / f"{1:020d}.{ending}"
    draft.local.write_text("{")
    Sealing(Lake(made), []).seal_finished_batches()
    assert f"_delta_log/{draft.name}" not in Seal(path).marks
    Seal(path).extend([f"_delta_log/{draft.name}"])  # as versions before did
    draft.local.unlink()
    assert damaged_log(path) == []


@pytest.mark.parametrize("name", ["oven\x85", "\u2028", "\u2029"])
def test_a_name_with_a_line_end_of_unicode_in_the_statistics_is_no_line_end_of_the_log(tmp_path: Path, name: str) -> None:
    made = conf(tmp_path)
    path = Lake(made).table_path("ops.ticks")
    write_deltalake(path.local, pa.table({"device_id": [name]}), mode="append")
    Sealing(Lake(made), []).seal_finished_batches()
    assert [file for file in Seal(path).marks if file.endswith(".parquet")]
    assert (damaged_log(path), damaged_files(path)) == ([], [])
