"""`tidemark init`: the starter conf comes out as it went in, and nothing is overwritten."""

import re
from pathlib import Path

import pytest

from orchestration.cli.app import exit_code
from orchestration.conf.load import load
from orchestration.conf.starter import examples, starter_sources, write_starter
from orchestration.conf.transport_settings import Collected

DEFAULT = Path(__file__).parents[3] / "conf"


def test_init_writes_the_default_conf_with_its_comments_and_schemas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["init", str(tmp_path / "plant" / "conf")]) == 0
    written = {
        str(file.relative_to(tmp_path / "plant/conf")): file.read_bytes() for file in (tmp_path / "plant/conf").rglob("*") if file.is_file()
    }
    assert written == {
        str(file.relative_to(DEFAULT)): file.read_bytes()
        for files in ("*.yml", "schema/*.json", "tests/*.yml")
        for file in DEFAULT.glob(files)
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


def test_init_from_a_sample_says_how_much_of_it_would_be_readings_under_the_proposal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f'{{"device": "oven", "temp": {n}, "at": "2026-01-05T00:00:{n:02}Z"}}' for n in range(10, 40)]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, '{"temp": 1, "at": "2026-01-05T00:01:00Z"}']))
    assert exit_code(["init", str(tmp_path / "conf"), "--from", str(tmp_path / "a.jsonl")]) == 0
    (told,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("preview: ")]
    broken = "1 quarantined by device_is_present (such as: device is absent or null)"
    assert told == f"preview: 31 events: 30 of 31 measurements would be readings; {broken}"


def test_a_sample_that_cannot_be_read_leaves_no_folder(tmp_path: Path) -> None:
    assert exit_code(["init", str(tmp_path / "conf"), "--from", str(tmp_path / "none.csv")]) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", starter_sources())
def test_init_for_a_kind_of_source_writes_a_conf_without_mistakes_and_says_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    folder = tmp_path / "conf"
    assert exit_code(["init", str(folder), "--source", kind]) == 0
    (source,) = load(folder).sources.values()
    assert source.transport.kind == kind
    captured = capsys.readouterr()
    assert exit_code(["--conf", str(folder), "check"]) == 0
    assert captured.out.startswith(f"{folder}: no mistakes; pipeline tidemark with 1 source, ")
    assert f", then\n  tidemark --conf {folder} run --once " in captured.err
    assert f"\n  tidemark --conf {folder} up " in captured.err
    assert (f"start `tidemark --conf {folder} collect`" in captured.err) == isinstance(source.transport, Collected)


@pytest.mark.parametrize("kind", starter_sources())
def test_what_a_starter_has_in_comments_is_right_too(tmp_path: Path, kind: str) -> None:
    write_starter(tmp_path, kind)
    file = tmp_path / "sources.yml"
    text, count = re.subn(r"^( +)# (\w+:)", r"\1\2", file.read_text(), flags=re.MULTILINE)
    file.write_text(text)
    assert (count > 0, len(load(tmp_path).sources)) == (True, 1)


def test_init_takes_a_sample_or_a_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["init", str(tmp_path / "conf"), "--source", "http", "--from", "a.csv"]) == 2
    assert "--from and --source both say how events come" in capsys.readouterr().err
    assert exit_code(["init", str(tmp_path / "conf"), "--source", "carrier-pigeon"]) == 2
    assert [*tmp_path.iterdir()] == []


def test_a_sample_can_be_copied_to_where_the_first_run_finds_it_and_nothing_there_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("ts,x\n2026-01-05 00:00:00,1.5\n2026-01-05 00:00:10,2.5\n")
    assert exit_code(["init", str(tmp_path / "plant/conf"), "--from", str(tmp_path / "a.csv"), "--copy"]) == 0
    assert (tmp_path / "plant/landing/a.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    assert "put files" not in capsys.readouterr().err
    (tmp_path / "plant/landing/a.csv").write_text("mine")
    assert exit_code(["init", str(tmp_path / "plant/again"), "--from", str(tmp_path / "a.csv"), "--copy"]) == 2
    assert "plant/landing/a.csv is there already, and is not overwritten; leave --copy out" in capsys.readouterr().err
    assert (tmp_path / "plant/landing/a.csv").read_text() == "mine"
    assert exit_code(["init", str(tmp_path / "third"), "--copy"]) == 2


@pytest.mark.parametrize("name", [*examples()])
def test_an_example_is_a_conf_without_mistakes_and_warnings(name: str, tmp_path: Path) -> None:
    write_starter(tmp_path / "conf", example=name)
    conf = load(tmp_path / "conf")
    assert conf.warnings == ()
    assert bool(conf.alerts) == (name == "alerts") != bool(conf.flows)
    assert f"schema/{'alerts' if name == 'alerts' else 'flows'}.json" in (tmp_path / "conf" / f"{examples()[name][0]}.yml").read_text()


def test_there_is_an_example_of_each_kind_of_question() -> None:
    assert [*examples()] == ["alerts", "joins", "sessions", "state"]
