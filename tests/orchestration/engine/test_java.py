"""The Java that is found, as Spark finds it, and what is said where it will not do."""

import os
from pathlib import Path

import pytest

from orchestration.engine.java import archive, java_command, major_version, require_java
from orchestration.errors import TidemarkError


def java_that(folder: Path, script: str) -> Path:
    """A home with a `java` that runs the script."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder


def test_java_home_goes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_home, of_path = java_that(tmp_path / "a", ""), java_that(tmp_path / "b", "")
    monkeypatch.setenv("PATH", str(of_path / "bin"))
    monkeypatch.setenv("JAVA_HOME", str(of_home))
    assert java_command() == str(of_home / "bin/java")
    monkeypatch.delenv("JAVA_HOME")
    assert java_command() == str(of_path / "bin/java")


def test_no_java_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TidemarkError, match=r"Java is not installed.*: install Java 17.*JAVA_HOME"):
        require_java()


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(TidemarkError, match=f"JAVA_HOME is {tmp_path}, where there is no bin/java"):
        require_java()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'Unrecognized option: --add-modules' >&2; exit 1", "Unrecognized option"),  # Java 8
        ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11, and Spark needs 17"),
        ("echo 'java.lang.module.FindException: Module jdk.incubator.vector not found' >&2; exit 1", "jdk.incubator.vector not found"),
        ("exit 3", "exit code 3"),
    ],
)
def test_a_java_that_cannot_run_spark_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str) -> None:
    home = java_that(tmp_path, script)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(TidemarkError, match=told) as error:
        require_java()
    assert str(error.value).startswith(f"{home}{os.sep}bin") and "install Java 17" in str(error.value)


def test_a_good_java_is_no_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_that(tmp_path, "echo 'openjdk version \"21.0.1\" 2023-10-17' >&2")))
    require_java()


@pytest.mark.parametrize(("text", "version"), [('openjdk version "17"', 17), ('java version "1.8.0_392"', 8), ("nothing", 0)])
def test_versions_are_read_as_java_writes_them(text: str, version: int) -> None:
    assert major_version(text) == version


def test_the_installation_has_left_its_classes_for_later_starts() -> None:
    """Without them everything works, and starts slower: nothing else would tell that they could not be made."""
    assert archive().exists(), "`make install` made no class archive: .venv/first-run.log says why"
