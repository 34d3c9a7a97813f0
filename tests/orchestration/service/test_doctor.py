"""`tidemark doctor`: each fault is named with the command that fixes it, and a sound plant has none."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from orchestration.conf.load import load
from orchestration.connectors.outages import begin_outage
from orchestration.location import Location
from orchestration.service.doctor import LOOKS, examine
from orchestration.service.finding import Finding
from orchestration.storage.seals import Seal
from orchestration.supervisor.health import problems
from tests.collectors import write_conf
from tests.rows import at
from tests.server_process import free_ports


def findings(conf: Path) -> dict[str, Finding]:
    return {finding.what: finding for finding in examine(conf)}


def written(folder: Path, **sources: str) -> Path:
    conf = write_conf(folder, **sources)
    with (conf / "pipeline.yml").open("a") as file:
        file.write(f"page: {{port: {free_ports(1)[0]}}}\n")
    return conf


def test_a_sound_plant_has_nothing_bad(tmp_path: Path) -> None:
    conf = written(tmp_path, plant="path: ./landing", web=f"http: {{port: {free_ports(1)[0]}}}")
    (tmp_path / "landing").mkdir()
    found = findings(conf)
    assert [finding.what for finding in found.values() if finding.verdict == "bad"] == []
    assert {"java", "conf", "memory", "port of page", "port of source web"} <= found.keys()


def test_a_conf_with_mistakes_is_named_and_nothing_else_is_guessed(tmp_path: Path) -> None:
    conf = written(tmp_path, plant="path: ./landing")
    (conf / "metrics.yml").write_text("metrics: {temperature: {unit: degC}}\n")
    found = findings(conf)
    assert (found["conf"].verdict, found["conf"].command) == ("bad", "tidemark check")
    assert "metrics.yml:1" in found["conf"].finding
    assert set(found) == {"java", "conf"}


def test_a_java_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    java = findings(written(tmp_path, plant="path: ./landing"))["java"]
    assert java.verdict == "bad"
    assert "install Java 17" in java.finding


def test_a_taken_port_and_servers_that_do_not_answer_are_named(tmp_path: Path) -> None:
    (closed,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        conf = written(tmp_path, web=f"http: {{port: {taken}}}", fleet=f"kafka: {{servers: '127.0.0.1:{closed}', subscribe: [readings]}}")
        channels = f"pager: {{webhook: {{url: 'http://127.0.0.1:{closed}/x'}}}}, bus: {{kafka: {{servers: '127.0.0.1:{taken}', topic: t}}}}"
        (conf / "alerts.yml").write_text(f"channels: {{{channels}}}\nalerts: {{hot: {{reading: temperature, when: value > 1}}}}\n")
        found = findings(conf)
    assert (found["channel pager"].verdict, found["channel bus"].verdict) == ("bad", "good")
    assert (found["port of source web"].verdict, found["source fleet"].verdict) == ("bad", "bad")
    assert f"127.0.0.1:{closed} cannot be reached: Connection refused" in found["source fleet"].finding


def test_a_damaged_checkpoint_is_named_with_the_way_out(tmp_path: Path) -> None:
    conf = written(tmp_path, plant="path: ./landing")
    checkpoint = tmp_path / "lake/checkpoints/silver.readings"
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "metadata").write_text('{"id": "1"}')
    Seal(Location(checkpoint)).extend(["metadata"])
    (checkpoint / "metadata").write_text("")
    found = findings(conf)["tables and checkpoints"]
    assert (found.verdict, found.command) == ("bad", f"tidemark --conf {conf} replay")
    assert "the checkpoint of silver.readings is damaged: " in found.finding


def test_what_is_wrong_with_the_lake_is_the_list_that_status_and_the_page_show(tmp_path: Path) -> None:
    conf = written(tmp_path, plant="path: ./landing")
    lake = Location(tmp_path / "lake")
    begin_outage(lake, "source", "plant", "its folder is gone", at("12:00:00"))
    found = findings(conf)
    listed = problems(load(conf), at("12:00:00"))
    assert [(found[problem.subject].finding, found[problem.subject].command) for problem in listed] == [
        (problem.sentence, problem.command) for problem in listed
    ]
    assert (found["source plant"].verdict, found["lake"].verdict) == ("bad", "warning")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """The folder of a conf beside a lake with a sealed table of three commits, and a state file."""
    conf = written(tmp_path, plant="path: ./landing")
    table = tmp_path / "lake/silver/late"
    for number in range(3):
        write_deltalake(table, pa.table({"n": [number]}), mode="append")
    Seal(Location(table)).extend(sorted(file.relative_to(table).as_posix() for file in table.rglob("*.*") if file.is_file()))
    begin_outage(Location(tmp_path / "lake"), "source", "plant", "its folder is gone", at("12:00:00"))
    return conf


def first(folder: Path, pattern: str) -> Path:
    return min(folder.glob(pattern))


LOG = "silver/late/_delta_log/00000000000000000001.json"
DAMAGES: list[tuple[str, str, Callable[[Path], object], str]] = [
    ("tables and checkpoints", LOG, lambda file: file.write_bytes(b""), "holds something else than a commit"),
    ("tables and checkpoints", LOG, lambda file: file.write_bytes(file.read_bytes()[:40]), "holds something else than a commit"),
    ("tables and checkpoints", LOG, lambda file: file.unlink(), "is gone"),
    ("data files", "silver/late/*.parquet", lambda file: file.write_bytes(file.read_bytes()[:100]), "cannot be read"),
    ("data files", "silver/late/*.parquet", lambda file: file.write_bytes(b""), "cannot be read"),
    ("data files", "silver/late/*.parquet", lambda file: file.unlink(), "is gone"),
    (
        "state files",
        "outages/source/plant.json",
        lambda file: file.write_bytes(file.read_bytes().replace(b"gone", b"here")),
        "as it was written",
    ),
    ("state files", "outages/source/plant.json", lambda file: file.write_bytes(file.read_bytes()[:20]), "as it was written"),
    ("seals", "silver/late.seal", lambda file: file.unlink(), "silver.late"),
    ("seals", "silver/late.seal", lambda file: file.write_text(file.read_text()[:-9]), "1 lines of"),
]


@pytest.mark.parametrize("case", DAMAGES, ids=[f"{what}: {sentence}" for what, *_, sentence in DAMAGES])
def test_each_damage_that_a_run_ledger_or_verify_would_meet_is_named(
    lake: Path, tmp_path: Path, case: tuple[str, str, Callable[[Path], object], str]
) -> None:
    what, pattern, damage, sentence = case
    assert {finding.verdict for name, finding in findings(lake).items() if name == what} == {"good"}
    file = first(tmp_path / "lake", pattern)
    damage(file)
    found = findings(lake)[what]
    assert found.verdict == ("warning" if what == "seals" else "bad")
    assert sentence in found.finding and (file.name in found.finding or what == "seals")
    assert found.command


def test_a_look_that_breaks_is_a_finding_and_the_others_go_on(lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_: object) -> Iterator[Finding]:
        raise RuntimeError("no such thing")
        yield

    monkeypatch.setattr("orchestration.service.doctor.LOOKS", dict.fromkeys(LOOKS, breaks))
    found = [*examine(lake)]
    broken = {finding.what for finding in found if finding.finding == "cannot be looked at: RuntimeError: no such thing"}
    assert broken == LOOKS.keys()
    assert "port of page" in {finding.what for finding in found}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a disk")
def test_a_disk_that_is_full_or_read_only_is_named(lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = tmp_path / "small"
    small.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(small))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=True)
    try:
        of_disks = [finding for finding in examine(lake) if finding.what == "disk" and f"scratch ({small})" in finding.finding]
        assert [(finding.verdict, finding.command) for finding in of_disks] == [("bad", "make room")]
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        assert findings(lake)["rights: scratch"].finding == f"{small} cannot be written: its disk is mounted read-only"
    finally:
        subprocess.run(["umount", small], check=True)


def test_status_and_sql_name_a_damaged_log_with_its_file_and_the_way_out(lake: Path, tmp_path: Path) -> None:
    log = tmp_path / "lake" / LOG
    log.write_bytes(b"garbage")
    for command in (["status"], ["sql", "select * from silver.late"]):
        ended = subprocess.run(
            [sys.executable, "-m", "orchestration.cli.app", "--conf", lake, *command], capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stdout) == (4, "")
        assert ended.stderr.startswith(
            f"tidemark: the log of silver.late is damaged: {log} holds something else than a commit.\n  Restore it"
        )
        assert "Traceback" not in ended.stderr
