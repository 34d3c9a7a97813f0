"""A collector that starts on a full disk refuses events with 503, says little, and takes events once there is room."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from orchestration.connectors.collector.collect import sparing
from orchestration.connectors.sources.spool_records import segments
from tests.collectors import collecting, write_conf
from tests.waiting import until

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk")
EVENT = b'{"device": "oven", "ts": "2026-01-01T00:00:00Z", "metric": "temperature", "value": 1}'


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB for the lake, which a file `ballast` fills."""
    mounted = tmp_path / "lake"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", mounted], check=True)
    with (mounted / "ballast").open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass
    yield mounted
    subprocess.run(["umount", mounted], check=True)


@pytest.mark.parametrize("has_run_before", [False, True])
def test_it_answers_503_and_goes_on_once_there_is_room(disk: Path, tmp_path: Path, *, has_run_before: bool) -> None:
    conf = write_conf(tmp_path, plain="http: {port: 0}", wire="tcp: {port: 0}")
    spool = disk / "spool/plain"
    if has_run_before:
        ballast = (disk / "ballast").read_bytes()
        (disk / "ballast").unlink()
        with collecting(conf) as collector:
            assert collector.ask(EVENT)[0] == 202
            collector.kill()  # as where the machine ends: the lease is not let go of
        with suppress(OSError):
            (disk / "ballast").write_bytes(ballast)
    before = len(segments(spool))
    with collecting(conf) as collector:
        assert {collector.ask(EVENT)[0] for _ in range(30)} == {503}
        for _ in range(30):
            with collector.connect("wire") as sender:
                sender.sendall(EVENT + b"\n")
        assert len(segments(spool)) == before
        assert collector.ask(b"", method="GET", path="/health")[1]["is_broken"]
        (disk / "ballast").unlink()
        until(lambda: collector.ask(EVENT)[0] == 202)
        assert len(segments(spool)) == before + 1
        assert collector.kept()[-1] == EVENT
    assert len([line for line in collector.log if "is closed" in line]) <= 3


def test_lines_about_connections_are_said_once_a_minute_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    now, said = [0.0], list[str]()
    monkeypatch.setattr("orchestration.connectors.collector.collect.time.monotonic", lambda: now[0])
    say = sparing(said.append)
    for number in range(50):
        say(f"connection/ab-{number} from ('127.0.0.1', {number}) is closed: the disk takes no more")
        say(f"connection/ab-{number} from ('127.0.0.1', {number}) is closed: it sent nothing for 30 seconds")
    assert [line.partition(" is closed: ")[2] for line in said] == ["the disk takes no more", "it sent nothing for 30 seconds"]
    say("source hall is down")
    say("source hall is down")
    assert said[2:] == ["source hall is down"] * 2
    now[0] = 61.0
    say("connection/ab-99 from ('127.0.0.1', 99) is closed: the disk takes no more")
    assert said[-1].endswith("the disk takes no more (and 49 times since the last time)")
