"""`make audit` names the locked versions that an advisory says have a hole, and no others; it is not content with a folder of nothing."""

from pathlib import Path

import pytest

from tests.advisories import LOCKS, Hole, holes, locked, main

ADVISORY = """
id: {id}
modified: "{modified}"
withdrawn: {withdrawn}
affected:
- package: {{name: {name}, ecosystem: {ecosystem}}}
  ranges: [{{type: {kind}, events: {events}}}]
  versions: {versions}
"""
BETWEEN = '[{introduced: "2.0"}, {fixed: "2.7.2"}, {introduced: "3.0"}, {last_affected: "3.1"}]'


def advisory(folder: Path, **fields: str) -> Path:
    whole = {"id": "PYSEC-1", "modified": "2026-01-05", "withdrawn": "null", "name": "jinja2", "ecosystem": "PyPI", "kind": "ECOSYSTEM"}
    (folder / "vulns").mkdir(exist_ok=True)
    (folder / "vulns/one.yaml").write_text(ADVISORY.format(**whole | {"events": BETWEEN, "versions": "[]"} | fields))
    return folder / "vulns"


@pytest.mark.parametrize(
    ("version", "is_a_hole"),
    [("1.9", False), ("2.0", True), ("2.7.1", True), ("2.7.2", False), ("2.10", False), ("3.0", True), ("3.1", True), ("3.1.1", False)],
)
def test_a_version_has_a_hole_from_where_it_came_in_to_where_it_was_closed(tmp_path: Path, version: str, *, is_a_hole: bool) -> None:
    listed, count, newest = holes(advisory(tmp_path), [("jinja2", version)])
    assert listed == ([Hole("jinja2", version, "PYSEC-1")] if is_a_hole else [])
    assert (count, newest) == (1, "2026-01-05")


@pytest.mark.parametrize(
    ("fields", "is_a_hole"),
    [
        ({}, True),
        ({"name": "Jinja2"}, True),
        ({"name": "jinja2-time"}, False),
        ({"ecosystem": "npm"}, False),
        ({"withdrawn": '"2026-01-06"'}, False),
        ({"kind": "GIT"}, False),
        ({"kind": "GIT", "versions": '["2.1", "2.4.0"]'}, True),
        ({"events": '[{introduced: "0"}]'}, True),
    ],
    ids=str,
)
def test_an_advisory_counts_where_it_is_of_this_package_and_holds(tmp_path: Path, fields: dict[str, str], *, is_a_hole: bool) -> None:
    assert bool(holes(advisory(tmp_path, **fields), [("jinja2", "2.4")])[0]) == is_a_hole


def test_each_lock_is_read_whole() -> None:
    for lock in LOCKS:
        text = Path(lock).read_text()
        assert len(locked(text)) == len([line for line in text.splitlines() if line and not line.startswith((" ", "#"))])
    assert dict(locked(Path(LOCKS[0]).read_text())).keys() >= {"pyspark", "duckdb", "uvicorn"}


def test_a_hole_is_said_with_exit_code_1_and_so_is_a_folder_without_advisories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / "a.lock"
    lock.write_text("jinja2==2.4 \\\n    --hash=sha256:00\n")
    assert main(str(advisory(tmp_path)), str(lock)) == 1
    assert "jinja2 2.4 has PYSEC-1" in capsys.readouterr().out
    lock.write_text("jinja2==2.8 \\\n    --hash=sha256:00\n")
    assert main(str(tmp_path), str(lock)) == 0
    (tmp_path / "empty").mkdir()
    assert main(str(tmp_path / "empty"), str(lock)) == 1
