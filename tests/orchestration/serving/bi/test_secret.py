"""The file with the token: made once, for its owner alone."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.serving.bi.password import default_token_file, load_token


def test_the_word_stays_the_same_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    file = tmp_path / "secrets" / "lake"
    word = load_token(file)
    assert len(word) == 32
    assert load_token(file) == word
    assert file.stat().st_mode & 0o777 == 0o600
    assert load_token(tmp_path / "another") != word


def test_servers_that_start_at_once_have_the_same_token(tmp_path: Path) -> None:
    def tokens_of_four(number: int) -> set[str]:
        start = threading.Barrier(4)
        with ThreadPoolExecutor(4) as servers:
            return set(servers.map(lambda _: (start.wait(), load_token(tmp_path / f"{number}"))[1], range(4)))

    assert [len(tokens_of_four(number)) for number in range(50)] == [1] * 50


def test_a_file_that_others_can_read_or_that_holds_no_token_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("word\n")
    file.chmod(0o640)
    with pytest.raises(TidemarkError, match=f"chmod 600 {file}"):
        load_token(file)
    for content in ("", "\n", "two words\n", "two\nlines\n", "w\x00rd", "wörd"):
        file.write_text(content)
        file.chmod(0o600)
        with pytest.raises(TidemarkError, match="delete it"):
            load_token(file)


def test_two_lakes_of_one_name_have_a_file_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    files = {default_token_file(Location(tmp_path / plant / "lake")) for plant in ("north", "south")}
    assert len(files) == 2
    assert all(file.is_relative_to(tmp_path) for file in files)
