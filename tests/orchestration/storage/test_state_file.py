"""Small files: what was written is read, and what is not as it was written is refused."""

import hashlib
import json
from pathlib import Path

import pytest

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.state_file import DAMAGED, FOREIGN, StateFile, odd_files
from tests.built import LAKES, built

VALUES = [{}, {"b": 1.5, "a": {"é": None, "n": [1, "x"]}}]


@pytest.mark.parametrize("value", VALUES)
def test_what_was_written_is_read_and_any_byte_that_is_another_is_noticed(value: dict[str, object], tmp_path: Path) -> None:
    file = StateFile(Location(tmp_path) / "it.json", dict, "Remove it.")
    file.write(value)
    assert file.read() == value
    whole = file.location.local.read_bytes()
    for damaged in (
        b"",
        whole[:-1],
        whole[: len(whole) // 2],
        *(whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in range(len(whole))),
    ):
        file.location.local.write_bytes(damaged)
        with pytest.raises(TidemarkError, match=r"it\.json is damaged: its bytes differ from those that were written\.\n  Remove it\."):
            file.read()


@pytest.mark.parametrize("value", VALUES)
def test_files_of_lakes_that_were_made_before_are_read(value: dict[str, object], tmp_path: Path) -> None:
    digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
    (tmp_path / "it.json").write_text(json.dumps({**value, "sha256": digest}))
    assert StateFile(Location(tmp_path) / "it.json", dict, "").read() == value


def test_a_state_file_has_the_ending_by_which_doctor_finds_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"it\.reset does not end in \.json"):
        StateFile(Location(tmp_path) / "it.reset", dict, "Remove it.")


@pytest.mark.parametrize("name", LAKES)
def test_doctor_knows_each_file_of_a_lake_that_was_used(name: str) -> None:
    lakes = [Location(folder) for folder in built(name).rglob("lake") if (folder / "bronze").is_dir()]
    assert lakes and [odd for lake in lakes for odd in odd_files(lake)] == []


def test_a_file_of_nobody_and_a_damaged_one_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "copy.bak").write_text("mine")
    StateFile(Location(tmp_path / "sinks/resend/far.json"), dict, "Remove it.").write({"at": "1"})
    (tmp_path / "sinks/resend/far.json").write_bytes(b'{"at": "1"')
    lake = Location(tmp_path)
    assert [*odd_files(lake)] == [(lake / "copy.bak", FOREIGN), (lake / "sinks/resend/far.json", DAMAGED)]
