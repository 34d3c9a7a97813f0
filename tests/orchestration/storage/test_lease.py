"""The lease of a lake: refused while it is held, taken over when its holder is dead, and not before a leaving JVM is gone."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.errors import HeldError
from orchestration.location import Location
from orchestration.storage import lease
from orchestration.storage.lease import is_held, sole_writer

HOLDS_UNTIL_ITS_INPUT_ENDS = """
import fcntl, sys
with open(sys.argv[1], "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lake(tmp_path: Path) -> Location:
    return Location(tmp_path)


@pytest.fixture
def leaving_jvm(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Stands for a JVM whose Python is dead."""
    command = [sys.executable, "-c", HOLDS_UNTIL_ITS_INPUT_ENDS, str(tmp_path / "writer.jvm.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_a_second_one_is_told_who_holds_it(tmp_path: Path, lake: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tidemark", "--conf", "my conf", "run"])
    with sole_writer(lake):
        assert is_held(lake)
        with pytest.raises(HeldError) as refused, sole_writer(lake):
            pass
    who = rf"process {os.getpid()} on {socket.gethostname()} \(since 2\d{{3}}-\d\d-\d\d \d\d:\d\d:\d\d UTC: tidemark --conf 'my conf' run\)"
    refused.match(rf"^{who} writes the lake at {tmp_path}; stop it first, or wait for its end.$")
    assert not is_held(lake)


def test_a_lease_that_was_let_go_of_is_taken_without_a_word_and_that_of_the_dead_with_one(tmp_path: Path, lake: Location) -> None:
    told: list[str] = []
    for _ in range(2):
        with sole_writer(lake, told.append):
            left = (tmp_path / "writer.lock").read_text()
    assert told == []
    dead = json.loads(left) | {"pid": 4321, "host": "plant", "command": "tidemark run", "since": "2026-01-05 00:00:00"}
    (tmp_path / "writer.lock").write_text(json.dumps(dead))
    assert not is_held(lake)
    with sole_writer(lake, told.append):
        pass
    who = "process 4321 on plant (since 2026-01-05 00:00:00 UTC: tidemark run)"
    assert told == [f"tidemark: {who} ended without releasing its lease of {tmp_path}; this process takes it over."]


def test_a_leaving_jvm_is_waited_for(lake: Location, leaving_jvm: subprocess.Popen[str]) -> None:
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line)
        assert is_held(lake)
        leaving_jvm.communicate()

    with sole_writer(lake, tell):
        assert leaving_jvm.poll() == 0
    assert told == ["tidemark: waiting for the JVM of a process that is gone, which has not ended yet."]


def test_a_jvm_that_does_not_leave_holds_the_lake(
    tmp_path: Path, lake: Location, leaving_jvm: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "JVM_LEAVES_SECONDS", 0)
    (tmp_path / "writer.lock").write_text(
        '{"pid": 1, "host": "plant", "command": "tidemark run", "since": "2026-01-05 00:00:00", "jvm": 77}'
    )
    with pytest.raises(HeldError, match=r"the JVM of process 1 on plant .* still writes the lake at .*; end its process 77, or wait"):
        sole_writer(lake, lambda _: None).__enter__()
    assert leaving_jvm.poll() is None
