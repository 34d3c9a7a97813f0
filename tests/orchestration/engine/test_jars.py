"""Jars: fetched once, with the right bytes or not at all. A script stands in for Java, so that no network is needed."""

import hashlib
from importlib.resources import files
from pathlib import Path

import pytest

from orchestration.engine import jars
from orchestration.errors import TidemarkError

GOOD = b"the bytes that the lock names"
JAR = jars.Jar("org.example", "one_2.13", "1.0", hashlib.sha256(GOOD).hexdigest())
RETRIEVES = 'while [ "$1" != -retrieve ]; do shift; done; out=$(dirname "$2"); mkdir -p "$out"; '


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a lock that names one jar."""
    monkeypatch.setenv("TIDEMARK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "locked", lambda _: [JAR])
    return tmp_path / "cache" / "jars"


def java_that(home: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    program, calls = home / "bin" / "java", home / "calls"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho called >> {calls}\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    return calls


def test_the_lock_names_the_six_jars_with_their_digests() -> None:
    text = (files("conf") / "jars.lock").read_text()
    locked = jars.locked(text)
    assert len(locked) == len([line for line in text.splitlines() if line and not line.startswith("#")]) == 6
    assert {jar.file_name for jar in locked} >= {"delta-spark_4.2_2.13-4.4.0.jar", "delta-storage-4.4.0.jar"}


def test_jars_are_fetched_once_and_java_is_not_asked_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = java_that(tmp_path, monkeypatch, f"{RETRIEVES} printf '{GOOD.decode()}' > $out/{JAR.file_name}")
    assert [jars.fetched(), jars.fetched()] == [[folder / JAR.file_name]] * 2
    assert calls.read_text() == "called\n"
    assert not (folder.parent / "fetching").exists()


def test_a_wrong_download_is_refused_named_and_deleted(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java_that(tmp_path, monkeypatch, f"{RETRIEVES} echo altered > $out/{JAR.file_name}")
    with pytest.raises(TidemarkError, match=r"one_2.13-1.0.jar was fetched, but its bytes are not those"):
        jars.fetched()
    assert list(folder.parent.rglob("*.jar")) == []


def test_a_damaged_jar_is_named_deleted_and_fetched_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir(parents=True)
    (folder / JAR.file_name).write_bytes(GOOD[:5])
    java_that(tmp_path, monkeypatch, f"{RETRIEVES} printf '{GOOD.decode()}' > $out/{JAR.file_name}")
    jars.fetched()
    assert (folder / JAR.file_name).read_bytes() == GOOD
    assert f"{folder / JAR.file_name} is not the file that the lock of the jars names: deleted" in capsys.readouterr().err


def test_without_a_network_the_sentence_names_the_jar_and_the_way_out(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java_that(tmp_path, monkeypatch, "echo '  Server access error at url x'; exit 1")
    with pytest.raises(
        TidemarkError, match=rf"org.example:one_2.13:1.0 could not be fetched \(Server access error.*copy the files .* into {folder}"
    ):
        jars.fetched()


def test_what_a_killed_fetch_left_is_swept_away(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = folder.parent / "fetching" / "out" / JAR.file_name
    left.parent.mkdir(parents=True)
    left.write_bytes(GOOD)
    java_that(tmp_path, monkeypatch, "exit 1")
    with pytest.raises(TidemarkError):
        jars.fetched()
    assert not left.exists()


def test_ivy_is_asked_for_the_jars_alone() -> None:
    xml = jars.ivy_xml([JAR])
    assert '<dependency org="org.example" name="one_2.13" rev="1.0" transitive="false" conf="default->master"/>' in xml


def test_pyspark_ships_one_ivy() -> None:
    assert jars.ivy().is_file()
