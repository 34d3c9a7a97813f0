"""`tidemark up`: what it starts again, what it leaves stopped, what it says of it, and that nothing is left behind."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.storage.bindings import bind
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.service_state import STOPPED, refused_conf
from tests.collectors import write_conf
from tests.disk import Disk
from tests.server_process import free_ports
from tests.services import Up, rows, status_of, tidemark
from tests.waiting import until

pytestmark = pytest.mark.processes
EVENT = b'{"device": "oven", "metric": "temperature", "value": 20.5, "ts": "2026-01-05T12:00:00Z"}\n'


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """With a source that is pushed, by HTTP at a port that is free."""
    return write_conf(tmp_path, web=f"http: {{port: {free_ports(1)[0]}}}")


@pytest.fixture
def up(conf: Path) -> Iterator[Up]:
    """Of the collector alone, which needs no Spark."""
    running = Up(conf, "collector")
    yield running
    if running.process.poll() is None:
        running.end()


def accepts(conf: Path) -> bool:
    return status_of(events_url(conf), EVENT) == 202


def events_url(conf: Path) -> str:
    port = (conf / "sources.yml").read_text().partition("port: ")[2].partition("}")[0]
    return f"http://127.0.0.1:{port}/events"


def test_a_part_that_is_killed_is_started_again_and_the_reason_is_told(up: Up, conf: Path) -> None:
    until(lambda: accepts(conf))
    up.kill("collector")
    until(lambda: up.part("collector").restarts == 1)
    until(lambda: accepts(conf))
    (row,) = rows(conf, "status", "parts")
    assert (row["part"], row["state"], row["restarts"], row["reason"]) == ("collector", "running", 1, "it ended by SIGKILL")
    assert "collector: waiting: it ended by SIGKILL" in up.said
    assert "source web: POST" in tidemark(conf, "logs", "collector").stdout
    assert " up collector: waiting" not in tidemark(conf, "logs", "collector").stdout


def test_a_second_up_says_who_runs_the_lake(up: Up, conf: Path) -> None:
    second = tidemark(conf, "up", "collector")
    assert second.returncode == 3
    assert f"process {up.process.pid} on " in second.stderr
    assert "runs the lake at " in second.stderr


def test_up_killed_with_9_leaves_nothing_and_the_next_one_takes_over(up: Up, conf: Path) -> None:
    until(lambda: accepts(conf))
    os.kill(up.process.pid, signal.SIGKILL)
    up.process.wait()
    until(lambda: not up.left(), up.left)
    following = Up(conf, "collector")
    until(lambda: accepts(conf))
    assert following.end() == 0
    assert not following.left()


@pytest.mark.slow
def test_what_a_killed_up_has_left_and_does_not_end_by_itself_is_ended_by_the_next(up: Up, conf: Path) -> None:
    pid = up.part("collector").pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    os.kill(up.process.pid, signal.SIGKILL)
    up.process.wait()
    assert up.left()
    following = Up(conf, "collector")
    until(lambda: accepts(conf))
    assert following.part("collector").pid != pid
    assert following.end() == 0


def test_a_lasting_mistake_stops_a_part_until_conf_has_changed(up: Up, conf: Path) -> None:
    sources, good = conf / "sources.yml", (conf / "sources.yml").read_text()
    port = good.partition("port: ")[2].partition("}")[0]
    sources.write_text(good.replace(f"port: {port}", f"port: {port}, token: '${{env:NOT_SET}}'"))
    until(lambda: up.part("collector").state == "stopped")
    assert "${env:NOT_SET}" in str(up.part("collector").reason)
    assert f"Z up   {STOPPED}\n" in tidemark(conf, "logs", "up").stdout
    sources.write_text(good)
    until(lambda: up.part("collector").state == "running")
    until(lambda: accepts(conf))


def test_a_conf_with_mistakes_changes_nothing_that_runs(up: Up, conf: Path) -> None:
    until(lambda: accepts(conf))
    before = up.part("collector")
    (conf / "metrics.yml").write_text("metrics:\n  temperature: {unit: degC, aggregation: average, step_seconds: soon}\n")
    until(lambda: "conf has changed and has mistakes" in up.said)
    assert up.part("collector") == before
    assert "metrics.yml:2" in up.said


def test_a_conf_with_mistakes_is_written_down_and_a_part_that_ends_meanwhile_starts_again_with_the_one_before(up: Up, conf: Path) -> None:
    until(lambda: accepts(conf))
    good = (conf / "metrics.yml").read_text()
    (conf / "metrics.yml").write_text("metrics:\n  temperature: {unit: degC, aggregation: average, step_seconds: soon}\n")
    until(lambda: refused_conf(up.lake).read() is not None)
    refused = refused_conf(up.lake).read()
    assert refused is not None
    assert (refused.file, refused.line, refused.command) == (str(conf / "metrics.yml"), 2, "tidemark check")
    assert refused.sentence.startswith("temperature.step_seconds is a text")
    up.kill("collector")
    until(lambda: up.part("collector").restarts == 1)
    until(lambda: accepts(conf))
    (conf / "metrics.yml").write_text(good)
    until(lambda: refused_conf(up.lake).read() is None)


def test_a_conf_that_the_lake_cannot_go_on_with_is_refused_until_it_is_put_back_or_replayed(conf: Path) -> None:
    made = load(conf)
    lake = LakeStore(made)
    for flow in ("silver.readings", "gold.kitchen"):
        bind(lake, flow, ())
    metrics, good = conf / "metrics.yml", (conf / "metrics.yml").read_text()
    running = Up(conf, "collector")
    before = running.part("collector")
    metrics.write_text(good.replace("step_seconds: 600", "step_seconds: 60"))
    until(lambda: refused_conf(lake.conf.lake).read() is not None)
    refused = refused_conf(lake.conf.lake).read()
    assert refused is not None
    assert (refused.file, refused.line, refused.command) == (str(metrics), 2, "tidemark replay")
    assert refused.sentence == "the window of temperature in conf/metrics.yml was 600 s, and is 60 s now"
    until(lambda: f"all goes on as before: {metrics}:2: the window of temperature" in running.said)
    assert tidemark(conf, "check").returncode == 1
    assert running.part("collector") == before
    assert running.end() == 0
    assert refused_conf(lake.conf.lake).read() is None  # nothing runs that could refuse it

    again = Up(conf, "collector")  # it begins with the conf that ran last
    assert refused_conf(lake.conf.lake).read() is not None
    (lake.checkpoint("gold.kitchen") / "tidemark.json").local.unlink()
    bind(LakeStore(load(conf)), "gold.kitchen", ())  # as a replay leaves it
    until(lambda: refused_conf(lake.conf.lake).read() is None)
    until(lambda: accepts(conf))
    assert again.end() == 0


@pytest.fixture
def disk(conf: Path) -> Iterator[Disk]:
    """That of the lake."""
    made = Disk(conf.parent / "lake")
    yield made
    made.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk that is small")
def test_on_a_full_disk_the_collector_begins_again_while_other_parts_wait_and_status_says_so(disk: Disk, conf: Path) -> None:
    with (conf / "pipeline.yml").open("a") as file:
        file.write(f"page: {{port: {free_ports(1)[0]}}}\n")
    up = Up(conf, "collector", "page")
    until(lambda: accepts(conf) and up.part("page").pid is not None)
    until((disk.folder / "up" / "reserve").exists)
    disk.leave(0)
    up.kill("collector")
    up.kill("page")
    until(lambda: status_of(events_url(conf), EVENT) in {202, 503})  # the reserve of `up` may have made room
    until(lambda: up.part("page").state == "waiting")
    (row,) = (row for row in rows(conf, "status", "parts") if row["part"] == "page")
    assert (row["state"], row["reason"]) == ("waiting", "the disk of the lake is full; it starts when there is room")
    disk.restore()
    until(lambda: accepts(conf))
    until(lambda: up.part("page").state == "running")
    assert [up.part(name).reason for name in ("collector", "page")] == ["it ended by SIGKILL"] * 2
    up.end()


def test_an_unknown_part_and_a_down_without_an_up_are_told(conf: Path) -> None:
    unknown, down = tidemark(conf, "up", "colector"), tidemark(conf, "down")
    assert (unknown.returncode, down.returncode) == (2, 1)
    assert "there is no part colector; the parts of this conf are streams, collector" in unknown.stderr
    assert "no `tidemark up` runs the lake" in down.stderr


def test_detached_it_returns_once_it_runs_and_down_ends_it(conf: Path) -> None:
    started = tidemark(conf, "up", "--detach", "collector")
    assert started.returncode == 0
    assert "tidemark up runs as process" in started.stderr
    until(lambda: accepts(conf))
    assert tidemark(conf, "down").returncode == 0
    assert not accepts(conf)
    assert rows(conf, "status", "parts") == []


def test_the_page_and_the_sql_server_run_beside_it_and_answer(conf: Path) -> None:
    page, sql = free_ports(2)
    with (conf / "pipeline.yml").open("a") as file:
        file.write(f"page: {{port: {page}}}\nsql_server: {{port: {sql}}}\n")
    running = Up(conf, "page", "sql-server")
    try:
        until(lambda: status_of(f"http://127.0.0.1:{page}/api/overview") == 200)
        until(lambda: "42" in tidemark(conf, "sql", "--server", "select 42 as answer").stdout)
        running.kill("sql-server")
        until(lambda: running.part("sql-server").restarts == 1)
        until(lambda: "43" in tidemark(conf, "sql", "--server", "select 43 as answer").stdout)
    finally:
        running.end()
