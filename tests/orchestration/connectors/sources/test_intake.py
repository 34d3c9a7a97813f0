"""Intake: which files are read, and when."""

import errno
import gzip
import os
from pathlib import Path

import pytest

from orchestration.conf.model import Source
from orchestration.connectors.sources import intake
from orchestration.connectors.sources.intake import claim_settled
from orchestration.location import Location
from orchestration.storage.retired_sources import claims_folder
from tests.lakes import SHAPE

NOW = 1_700_000_000.0


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    return Location(tmp_path)


def write(file: Path, content: bytes, age: float) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    os.utime(file, (NOW - age, NOW - age))
    return file


def claimed(lake: Location) -> list[tuple[str, bytes]]:
    folder = claims_folder(lake, "plant")
    return sorted(
        (str(file.relative_to(folder.local)).split("/", 1)[1], file.read_bytes()) for file in folder.local.rglob("*") if file.is_file()
    )


def source(tmp_path: Path, files: str = "*") -> Source:
    return Source("plant", tmp_path / "landing", SHAPE, files, settle_seconds=2)


def test_a_file_is_claimed_once_it_has_not_changed_for_settle_seconds(tmp_path: Path, lake: Location) -> None:
    plant = source(tmp_path)
    write(plant.path / "old.json", b"1\n", age=3)
    fresh = write(plant.path / "fresh.json", b"2", age=1)
    look = claim_settled(plant, lake, NOW)
    assert (claimed(lake), look.still_growing) == ([("old.json", b"1\n")], [fresh])
    assert claim_settled(plant, lake, NOW + 5).claimed == 1
    assert claim_settled(plant, lake, NOW + 5).claimed == 0


def test_hidden_empty_and_other_files_are_left_alone(tmp_path: Path, lake: Location) -> None:
    plant = source(tmp_path, "*.json")
    for name in (".a.json", "_b.json", ".hidden/c.json", "d.txt"):
        write(plant.path / name, b"x", age=9)
    write(plant.path / "empty.json", b"", age=9)
    assert claim_settled(plant, lake, NOW).claimed == 0


def test_a_file_that_changes_after_it_was_claimed_is_claimed_again_as_a_new_version(tmp_path: Path, lake: Location) -> None:
    plant = source(tmp_path)
    file = write(plant.path / "log.json", b"1\n", age=60)
    claim_settled(plant, lake, NOW)
    file.unlink()
    write(file, b"1\n2\n", age=30)
    claim_settled(plant, lake, NOW)
    assert claimed(lake) == [("log.json", b"1\n"), ("log.json", b"1\n2\n")]


def test_a_claimed_file_survives_its_producer(tmp_path: Path, lake: Location) -> None:
    plant = source(tmp_path)
    file = write(plant.path / "a.json", b"1\n", age=9)
    claim_settled(plant, lake, NOW)
    file.unlink()
    assert claimed(lake) == [("a.json", b"1\n")]


def test_a_file_from_before_1970_is_claimed_once_with_a_time_that_spark_reads_and_left_as_it_is(tmp_path: Path, lake: Location) -> None:
    plant = source(tmp_path)
    file = write(plant.path / "north/a.json", b"1\n", age=NOW + 5)
    assert [claim_settled(plant, lake, NOW).claimed for _ in range(2)] == [1, 0]
    assert claimed(lake) == [("north/a.json", b"1\n")]
    (claim,) = claims_folder(lake, "plant").local.rglob("*.json")
    assert (claim.stat().st_mtime, file.stat().st_mtime) == (0, -5)


def test_a_cut_gzip_file_is_left_out_until_it_is_whole(tmp_path: Path, lake: Location) -> None:
    plant = source(tmp_path)
    whole = gzip.compress(b"1\n" * 1000)
    cut = write(plant.path / "a.json.gz", whole[:-9], age=9)
    assert claim_settled(plant, lake, NOW).refused == {cut: "it is not a whole gzip file"}
    write(cut, whole, age=8)
    assert claim_settled(plant, lake, NOW).claimed == 1


def test_a_file_that_a_former_source_claimed_is_not_claimed_again_under_another_name(tmp_path: Path, lake: Location) -> None:
    plant = source(tmp_path)
    write(plant.path / "1.json", b"1\n", age=9)
    claim_settled(plant, lake, NOW)
    annex = Source("annex", plant.path, SHAPE)
    write(plant.path / "2.json", b"2\n", age=8)
    assert claim_settled(annex, lake, NOW, former=["plant"]).claimed == 1
    other_folder = Source("hall", tmp_path / "other", SHAPE)  # the same name, time and length: another file all the same
    write(other_folder.path / "1.json", b"3\n", age=9)
    assert claim_settled(other_folder, lake, NOW, former=["plant", "annex"]).claimed == 1


@pytest.mark.parametrize("is_relative", [True, False])
def test_of_a_link_the_file_that_it_leads_to_is_claimed_and_stays_ours(tmp_path: Path, lake: Location, is_relative: bool) -> None:
    plant = source(tmp_path)
    target = write(tmp_path / "data" / "a.json", b"1\n", age=9)
    plant.path.mkdir()
    (plant.path / "a.json").symlink_to(Path("../data/a.json") if is_relative else target)
    (plant.path / "lost.json").symlink_to("nowhere")
    assert claim_settled(plant, lake, NOW).claimed == 1
    target.unlink()
    assert claimed(lake) == [("a.json", b"1\n")]


def test_a_file_that_goes_before_it_is_claimed_leaves_no_claim(tmp_path: Path, lake: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = source(tmp_path)
    file = write(plant.path / "a.json", b"1\n", age=9)
    monkeypatch.setattr(intake, "_trouble", lambda *_: file.unlink())
    assert claim_settled(plant, lake, NOW).claimed == 0
    monkeypatch.undo()
    write(file, b"1\n", age=9)
    assert claim_settled(plant, lake, NOW).claimed == 1


def test_a_file_of_another_disk_which_is_mocked_is_copied_once_with_its_time(
    tmp_path: Path, lake: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refused)
    plant = source(tmp_path)
    file = write(plant.path / "a.json", b"1\n", age=9)
    assert [claim_settled(plant, lake, NOW).claimed for _ in range(2)] == [1, 0]
    file.unlink()
    assert claimed(lake) == [("a.json", b"1\n")]
    (claim,) = claims_folder(lake, "plant").glob("*/*")
    assert claim.local.stat().st_mtime == NOW - 9


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
@pytest.mark.parametrize(("length", "refused"), [(3 << 20, []), ((3 << 20) + 1, ["it has a line of more than 3145728 bytes"])])
def test_a_file_with_a_line_that_no_row_can_hold_is_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, length: int, refused: list[str]
) -> None:
    monkeypatch.setattr(intake, "LONGEST_LINE", 3 << 20)
    plant = source(tmp_path)
    content = b"1\n" + b"2" * length + b"\n3\n"
    write(plant.path / name, gzip.compress(content) if name.endswith("gz") else content, age=9)
    look = claim_settled(plant, Location(tmp_path), NOW)
    assert (look.claimed, [*look.refused.values()]) == (1 - len(refused), refused)
