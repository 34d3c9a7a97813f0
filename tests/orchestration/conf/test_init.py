"""`tidemark init`: the starter conf comes out as it went in, and nothing is overwritten."""

from pathlib import Path

import pytest

from orchestration.cli.app import exit_code
from orchestration.conf.load import load

DEFAULT = Path(__file__).parents[3] / "conf"


def test_init_writes_the_default_conf_with_its_comments_and_schemas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["init", str(tmp_path / "plant" / "conf")]) == 0
    written = {
        str(file.relative_to(tmp_path / "plant/conf")): file.read_bytes() for file in (tmp_path / "plant/conf").rglob("*") if file.is_file()
    }
    assert written == {
        str(file.relative_to(DEFAULT)): file.read_bytes() for ending in ("*.yml", "*.json") for file in DEFAULT.rglob(ending)
    }
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{tmp_path}/plant/conf: no mistakes")
    assert "next: " in captured.err


def test_init_starts_paths_at_the_parent_of_its_folder(tmp_path: Path) -> None:
    exit_code(["init", str(tmp_path / "plant" / "conf")])
    assert load(tmp_path / "plant" / "conf").lake.local == tmp_path / "plant" / "lake"


def test_init_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rules.yml").write_text("mine")
    assert exit_code(["init", str(tmp_path)]) == 2
    assert "already holds rules.yml, which is not overwritten; name another folder" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["rules.yml"]
    assert (tmp_path / "rules.yml").read_text() == "mine"


def test_init_into_a_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert exit_code(["init", str(tmp_path / "file" / "conf")]) == 2
    assert "cannot be written (Not a directory); name a folder that can" in capsys.readouterr().err


def test_init_from_a_sample_says_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("ts,x\n2026-01-05 00:00:00,1.5\n2026-01-05 00:00:10,2.5\n")
    assert exit_code(["init", str(tmp_path / "conf"), "--from", str(tmp_path / "a.csv")]) == 0
    captured = capsys.readouterr()
    assert "1 metric, 1 device, 1 group in 1 stream" in captured.out
    assert "found: time is ts (such as 2026-01-05 00:00:00), read as iso" in captured.err
    assert "found: times name no zone and are taken for UTC; confirm time_zone" in captured.err


def test_a_sample_that_cannot_be_read_leaves_no_folder(tmp_path: Path) -> None:
    assert exit_code(["init", str(tmp_path / "conf"), "--from", str(tmp_path / "none.csv")]) == 2
    assert list(tmp_path.iterdir()) == []
