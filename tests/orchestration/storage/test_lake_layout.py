"""Scratch below the lake: seen by all machines of a cluster, and left by nobody for long."""

import os
import time
from pathlib import Path

from orchestration.location import Location
from orchestration.storage.lake_layout import scratch_folder


def test_scratch_lies_below_the_lake_and_what_a_killed_process_left_goes_after_a_day(tmp_path: Path) -> None:
    with scratch_folder(Location(tmp_path)) as of_another, scratch_folder(Location(tmp_path)) as own:
        assert {own, of_another} == {*tmp_path.iterdir()}
    left = [tmp_path / ".scratch-killed", tmp_path / ".scratch-at-work", tmp_path / "silver"]
    for folder in left:
        folder.mkdir()
        (folder / "rows").write_bytes(b"rows")
    for folder in (left[0], left[2]):
        os.utime(folder, (time.time() - 90_000,) * 2)
    with scratch_folder(Location(tmp_path)) as own:
        assert {*tmp_path.iterdir()} == {own, left[1], left[2]}
    assert {*tmp_path.iterdir()} == {left[1], left[2]}
