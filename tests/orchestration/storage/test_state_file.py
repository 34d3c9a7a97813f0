"""Small files: what was written is read, and what is not as it was written is refused."""

import hashlib
import json
from pathlib import Path

import pytest

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.state_file import StateFile

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
