"""A landing folder as a source: which files are claimed, when, and in which order, and what is read between two offsets."""

import errno
import gzip
import os
import tempfile
import time
from pathlib import Path

import pytest

from orchestration.conf.transport_settings import LandingFolder
from orchestration.connectors.sources import file_reader
from orchestration.connectors.sources import files as claiming
from orchestration.connectors.sources.files import Claims, Files, growing
from orchestration.connectors.sources.source import Offset, SourceDownError
from tests.lakes import SHAPE, land

NOW = 1_700_000_000.0


def write(file: Path, content: bytes, age: float) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    os.utime(file, (NOW - age, NOW - age))
    return file


def claim(plant: LandingFolder, now: float = NOW) -> tuple[int, dict[Path, str]]:
    """As a run of its own does: how many are new, and what was refused."""
    before = len(claimed(plant))
    refused = claim_settled(plant, now)
    return len(claimed(plant)) - before, refused


def claim_settled(plant: LandingFolder, now: float = NOW, after: int = -1, name: str = "plant", *former: str) -> dict[Path, str]:
    files = Files(name, folder_of(plant, name), SHAPE, 1 << 30, others=[folder_of(plant, one) for one in former])
    return files.claim_settled(plant, now, after)


def folder_of(plant: LandingFolder, name: str = "plant") -> Path:
    return plant.path.with_name("claims") / name


def claimed(plant: LandingFolder) -> list[tuple[str, bytes]]:
    """In the order of their numbers."""
    return [(found.position, found.file.read_bytes()) for found in Claims(folder_of(plant)).after(-1)]


def source(tmp_path: Path, files: str = "*") -> LandingFolder:
    return LandingFolder(tmp_path / "landing", files, settle_seconds=2)


def test_a_file_is_claimed_once_it_has_not_changed_for_settle_seconds(tmp_path: Path) -> None:
    plant = source(tmp_path)
    write(plant.path / "old.json", b"1\n", age=3)
    fresh = write(plant.path / "fresh.json", b"2", age=1)
    claim(plant)
    assert (claimed(plant), growing(plant, NOW)) == ([("old.json", b"1\n")], [fresh])
    assert [claim(plant, NOW + 5)[0] for _ in range(2)] == [1, 0]


def test_hidden_empty_and_other_files_are_left_alone(tmp_path: Path) -> None:
    plant = source(tmp_path, "*.json")
    for name in (".a.json", "_b.json", ".hidden/c.json", "d.txt", "~$e.json"):
        write(plant.path / name, b"x", age=9)
    write(plant.path / "empty.json", b"", age=9)
    assert claim(plant)[0] == 0
    for name in (".DS_Store", "Thumbs.db", "Desktop.ini", "~$plan.csv"):
        write(plant.path / name, b"x", age=9)
    assert claim(source(tmp_path)) == (1, {})


def test_a_file_that_changes_after_it_was_claimed_is_claimed_again_as_a_new_version(tmp_path: Path) -> None:
    plant = source(tmp_path)
    file = write(plant.path / "log.json", b"1\n", age=60)
    claim(plant)
    file.unlink()
    write(file, b"1\n2\n", age=30)
    claim(plant)
    assert claimed(plant) == [("log.json", b"1\n"), ("log.json", b"1\n2\n")]


def test_a_claimed_file_survives_its_producer(tmp_path: Path) -> None:
    plant = source(tmp_path)
    file = write(plant.path / "a.json", b"1\n", age=9)
    claim(plant)
    file.unlink()
    assert claimed(plant) == [("a.json", b"1\n")]


def test_a_file_from_before_1970_is_claimed_once_and_left_as_it_is(tmp_path: Path) -> None:
    plant = source(tmp_path)
    file = write(plant.path / "north/a.json", b"1\n", age=NOW + 5)
    assert [claim(plant)[0] for _ in range(2)] == [1, 0]
    (found,) = Claims(folder_of(plant)).after(-1)
    assert (found.position, found.modified_ns, found.length, file.stat().st_mtime) == ("north/a.json", -5 * 10**9, 2, -5)


def test_files_that_are_found_together_are_numbered_by_their_time_behind_all_before(tmp_path: Path) -> None:
    plant = source(tmp_path)
    for name, age in (("b.json", 7), ("a.json", 5), ("c.json", 9)):
        write(plant.path / name, name.encode(), age)
    claim(plant)
    write(plant.path / "older.json", b"d", age=60)
    claim(plant)
    assert [name for name, _ in claimed(plant)] == ["c.json", "b.json", "a.json", "older.json"]
    assert [found.number for found in Claims(folder_of(plant)).after(1)] == [2, 3]


def test_no_number_is_given_twice_even_where_its_claim_is_gone(tmp_path: Path) -> None:
    plant = source(tmp_path)
    write(plant.path / "a.json", b"1\n", age=9)
    claim_settled(plant, after=6)
    (found,) = Claims(folder_of(plant)).after(-1)
    found.file.unlink()
    write(plant.path / "b.json", b"2\n", age=9)
    claim_settled(plant)
    assert [(found.number, found.position) for found in Claims(folder_of(plant)).after(-1)] == [(8, "a.json"), (9, "b.json")]


def test_a_cut_gzip_file_is_left_out_until_it_is_whole(tmp_path: Path) -> None:
    plant = source(tmp_path)
    whole = gzip.compress(b"1\n" * 1000)
    cut = write(plant.path / "a.json.gz", whole[:-9], age=9)
    assert claim(plant)[1] == {cut: "it is not a whole gzip file; it is read once it has been replaced"}
    write(cut, whole, age=8)
    assert claim(plant)[0] == 1


def test_a_file_that_a_former_source_claimed_is_not_claimed_again_under_another_name(tmp_path: Path) -> None:
    plant = source(tmp_path)
    write(plant.path / "1.json", b"1\n", age=9)
    claim(plant)
    write(plant.path / "2.json", b"2\n", age=8)
    claim_settled(plant, NOW, -1, "annex", "plant")
    assert [found.position for found in Claims(folder_of(plant, "annex")).after(-1)] == ["2.json"]
    other = LandingFolder(tmp_path / "other")  # another file of the same name, time and length
    write(other.path / "1.json", b"3\n", age=9)
    claim_settled(other, NOW, -1, "hall", "plant", "annex")
    assert [found.file.read_bytes() for found in Claims(folder_of(other, "hall")).after(-1)] == [b"3\n"]


@pytest.mark.parametrize("is_relative", [True, False])
def test_of_a_link_the_file_that_it_leads_to_is_claimed_and_stays_ours(tmp_path: Path, is_relative: bool) -> None:
    plant = source(tmp_path)
    target = write(tmp_path / "data" / "a.json", b"1\n", age=9)
    plant.path.mkdir()
    (plant.path / "a.json").symlink_to(Path("../data/a.json") if is_relative else target)
    (plant.path / "lost.json").symlink_to("nowhere")
    assert claim(plant)[0] == 1
    target.unlink()
    assert claimed(plant) == [("a.json", b"1\n")]


def test_a_file_that_goes_before_it_is_claimed_leaves_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = source(tmp_path)
    file = write(plant.path / "a.json", b"1\n", age=9)
    monkeypatch.setattr(claiming, "left_out", lambda *_: file.unlink())
    assert claim(plant)[0] == 0
    monkeypatch.undo()
    write(file, b"1\n", age=9)
    assert claim(plant)[0] == 1


def test_a_file_of_another_disk_which_is_mocked_is_copied_once_with_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refused)
    plant = source(tmp_path)
    file = write(plant.path / "a.json", b"1\n", age=9)
    assert [claim(plant)[0] for _ in range(2)] == [1, 0]
    file.unlink()
    assert claimed(plant) == [("a.json", b"1\n")]
    (found,) = Claims(folder_of(plant)).after(-1)
    assert found.file.stat().st_mtime == NOW - 9


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
@pytest.mark.parametrize(
    ("length", "refused"),
    [(3 << 20, []), ((3 << 20) + 1, ["it has a line of more than 3145728 bytes; it is read once it has been replaced"])],
)
def test_a_file_with_a_line_that_no_row_can_hold_is_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, length: int, refused: list[str]
) -> None:
    monkeypatch.setattr(file_reader, "LONGEST_LINE", 3 << 20)
    plant = source(tmp_path)
    content = b"1\n" + b"2" * length + b"\n3\n"
    write(plant.path / name, gzip.compress(content) if name.endswith("gz") else content, age=9)
    count, found = claim(plant)
    assert (count, [*found.values()]) == (1 - len(refused), refused)


def files(folder: Path, name: str = "plant", **more: object) -> Files:
    landing = LandingFolder(folder / "landing", settle_seconds=0)
    return Files(name, folder / "claims" / name, SHAPE, 1 << 30, **{"landing": landing} | more)  # type: ignore[arg-type]


def read(source: Files, start: Offset, end: Offset) -> list[tuple[str, bytes]]:
    tables = [table for partition in source.partitions(start, end) for table in source.read(partition)]
    return [(row["position"], row["payload"]) for table in tables for row in table.to_pylist()]


def test_of_a_source_that_conf_no_longer_names_what_was_claimed_is_read_and_no_more(tmp_path: Path) -> None:
    land(tmp_path, "1.json", [b"1"])
    files(tmp_path).latest_offset({})
    land(tmp_path, "2.json", [b"2"])
    retired = files(tmp_path, landing=None)
    assert read(retired, {}, retired.latest_offset({})) == [("1.json", b"1")]
    renamed = files(tmp_path, "annex", others=[tmp_path / "claims" / "plant"])
    assert read(renamed, {}, renamed.latest_offset({})) == [("2.json", b"2")]


def test_files_that_cannot_be_read_are_told_once_and_those_that_grow_are_waited_for(tmp_path: Path) -> None:
    land(tmp_path, "cut.json.gz", [b"no gzip"])
    source = files(tmp_path)
    for _ in range(2):
        assert source.latest_offset({}) == {}
    assert [dict(notice.facts)["reason"] for notice in (*source.notices(), *source.notices())] == [
        "it is not a whole gzip file; it is read once it has been replaced"
    ]
    waiting = files(tmp_path, landing=LandingFolder(tmp_path / "landing", settle_seconds=60))
    assert waiting.unsettled() is None
    os.utime(land(tmp_path, "new.json", [b"1"]))
    unsettled = waiting.unsettled()
    assert unsettled is not None
    assert (unsettled.names, unsettled.seconds) == ([str(tmp_path / "landing/new.json")], 60)


@pytest.mark.parametrize("lake", ["a lake", "Anlage süd", "a+b & c", "50%"])
@pytest.mark.parametrize("name", ["a.json", "north/a b.json", "intake/plant/a.json", "ofen-ü.json", "50%25.json", "12:30.json", "1-2-3/a"])
def test_the_position_is_the_path_below_the_landing_folder_whatever_the_names(tmp_path: Path, lake: str, name: str) -> None:
    land(tmp_path / lake, name, [b"1"])
    source = files(tmp_path / lake)
    assert read(source, {}, source.latest_offset({})) == [(name, b"1")]


def test_a_folder_that_is_gone_is_down_once_what_was_claimed_is_read_and_until_it_is_back(tmp_path: Path) -> None:
    landing, plant = tmp_path / "landing", files(tmp_path)
    assert plant.latest_offset({}) == {}  # it is not there yet
    land(tmp_path, "1.json", ["1"])
    begin = plant.latest_offset({})
    land(tmp_path, "2.json", ["2"])
    plant.claim_settled(LandingFolder(landing, settle_seconds=0), NOW * 2)
    landing.rename(tmp_path / "elsewhere")
    end = plant.latest_offset(begin)
    assert read(plant, begin, end) == [("2.json", b"2")]
    with pytest.raises(SourceDownError, match=r"the folder .*landing of source plant is gone, or its disk is; bring it back, or correct"):
        plant.latest_offset(end)
    (tmp_path / "elsewhere").rename(landing)
    assert plant.latest_offset(end) == end


def test_a_file_whose_time_lies_ahead_is_told_and_read_once_it_has_stood_still_by_our_clock(tmp_path: Path) -> None:
    plant, now = source(tmp_path), time.time()
    ahead = write(plant.path / "ahead.json", b"1\n", age=NOW - now - 9 * 3600)
    files = Files("plant", folder_of(plant), SHAPE, 1 << 30, plant)
    assert growing(plant, now) == [ahead]
    assert files.claim_settled(plant, now) == {}
    assert claimed(plant) == []
    assert "lies ahead" in files.odd()[str(ahead)]
    assert [notice.what for notice in files.notices()] == ["file from ahead"]
    assert files.notices() == []
    assert growing(plant, time.time() + 2) == []
    files.claim_settled(plant, time.time() + 2)
    assert claimed(plant) == [("ahead.json", b"1\n")]
    assert files.unsettled() is None  # the link of the claim is a change by the clock of this machine
    assert [*files.odd()] == [str(ahead)]  # its events have that time as the time at which they came
    files.claim_settled(plant, now + 10 * 3600)
    assert files.odd() == {}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody who may not read")
def test_files_and_folders_that_may_not_be_read_are_told_and_read_once_they_may() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        plant = source(Path(folder))
        locked = [write(plant.path / name, b"1\n", age=9) for name in ("file.json", "listed/b.json", "closed/deep/c.json")]
        write(plant.path / "open/d.json", b"1\n", age=9)
        modes = {locked[0]: 0o000, plant.path / "listed": 0o444, plant.path / "closed": 0o000}
        for path, mode in modes.items():
            path.chmod(mode)
        os.seteuid(65534)
        try:
            _, refused = claim(plant)
        finally:
            os.seteuid(0)
        assert refused.keys() == {locked[0], locked[1], plant.path / "closed"}
        assert all("permission denied" in why and "change its owner or its mode" in why for why in refused.values())
        assert claimed(plant) == [("open/d.json", b"1\n")]
        for path in modes:
            path.chmod(0o755)
        assert claim(plant) == (3, {})
