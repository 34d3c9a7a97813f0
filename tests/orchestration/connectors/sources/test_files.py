"""A landing folder as a source: what lies between two offsets, and nothing else, is read, however often it is asked."""

import os
from pathlib import Path

import pytest

from bronze.events import ARRIVED
from orchestration.conf.transport_settings import LandingFolder
from orchestration.connectors.sources.files import Files
from orchestration.connectors.sources.source import Offset
from tests.lakes import SHAPE, land

LONG = 1 << 30


def files(folder: Path, name: str = "plant", most: int = LONG, **more: object) -> Files:
    """A source that has just been started."""
    landing = LandingFolder(folder / "landing", settle_seconds=0)
    return Files(name, folder / "claims" / name, SHAPE, most, **{"landing": landing} | more)  # type: ignore[arg-type]


def read(source: Files, start: Offset, end: Offset) -> list[tuple[str, bytes]]:
    tables = [table for partition in source.partitions(start, end) for table in source.read(partition)]
    assert all(table.schema == ARRIVED for table in tables)
    return [(row["position"], row["payload"]) for table in tables for row in table.to_pylist()]


def test_an_offset_leads_to_the_next_and_a_range_is_the_same_whenever_it_is_read(tmp_path: Path) -> None:
    land(tmp_path, "1.json", [b"1", b"2"])
    first = files(tmp_path).latest_offset({})
    land(tmp_path, "2.json", [b"3"])
    second = files(tmp_path).latest_offset(first)
    assert files(tmp_path).latest_offset(second) == second
    for source in (files(tmp_path), files(tmp_path)):
        assert read(source, {}, first) == [("1.json", b"1"), ("1.json", b"2")]
        assert read(source, first, second) == [("2.json", b"3")]
        assert read(source, {}, second) == [("1.json", b"1"), ("1.json", b"2"), ("2.json", b"3")]


def test_a_batch_has_as_many_files_as_fit_and_one_at_least(tmp_path: Path) -> None:
    for number, length in enumerate((100, 3, 3, 3, 100)):
        land(tmp_path, f"{number}.json", [b"x" * (length - 1)])
    source, batches = files(tmp_path, most=7), []
    offset: Offset = {}
    while (end := source.latest_offset(offset)) != offset:
        batches.append([name for name, _ in read(source, offset, end)])
        offset = end
    assert batches == [["0.json"], ["1.json", "2.json"], ["3.json"], ["4.json"]]


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
    growing = files(tmp_path, landing=LandingFolder(tmp_path / "landing", settle_seconds=60))
    assert growing.unsettled() is None
    os.utime(land(tmp_path, "new.json", [b"1"]))
    unsettled = growing.unsettled()
    assert unsettled is not None
    assert (unsettled.names, unsettled.seconds) == ([str(tmp_path / "landing/new.json")], 60)


@pytest.mark.parametrize("lake", ["a lake", "Anlage süd", "a+b & c", "50%"])
@pytest.mark.parametrize("name", ["a.json", "north/a b.json", "intake/plant/a.json", "ofen-ü.json", "50%25.json", "12:30.json", "1-2-3/a"])
def test_the_position_is_the_path_below_the_landing_folder_whatever_the_names(tmp_path: Path, lake: str, name: str) -> None:
    land(tmp_path / lake, name, [b"1"])
    source = files(tmp_path / lake)
    assert read(source, {}, source.latest_offset({})) == [(name, b"1")]
