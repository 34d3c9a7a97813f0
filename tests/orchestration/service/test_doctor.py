"""`tidemark doctor`: each fault is named with the command that fixes it, and a sound plant has none."""

import socket
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.connectors.outages import begin_outage
from orchestration.location import Location
from orchestration.service.doctor import Finding, examine
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
