"""Landlock: what is started under it can write no file; threads that existed before are not restricted."""

import subprocess
from pathlib import Path

import pytest

from orchestration.serving.sql import landlock

pytestmark = pytest.mark.skipif(not landlock.is_supported(), reason="this kernel has no Landlock")


@pytest.mark.parametrize(
    "command", ["echo no > {}", "rm {}", "mv {} {}.moved", "truncate -s 0 {}", "ln {} {}.link", "mkdir {}.folder", "touch {}.new"]
)
def test_a_process_behind_it_changes_nothing_outside(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("kept")

    def code_of(shell: str) -> int:
        return subprocess.run(["sh", "-c", shell], check=False, capture_output=True).returncode

    changed, discarded = command.format(*[tmp_path / "file"] * 2), "echo yes > /dev/null"
    assert landlock.without_write_access(lambda: (code_of(changed) != 0, code_of(discarded))) == (True, 0)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "kept"


def test_the_threads_that_are_there_can_write_and_what_it_raises_comes_out(tmp_path: Path) -> None:
    def fail() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        landlock.without_write_access(fail)
    (tmp_path / "file").write_text("written")
