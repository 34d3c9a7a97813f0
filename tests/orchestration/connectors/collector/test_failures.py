"""A collector source that cannot begin, or that fails, is down alone: the others take events, and it is tried again."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.conf.load import load
from orchestration.conf.transport_settings import HttpSettings
from orchestration.connectors.collector import collect, http_server
from orchestration.connectors.collector.kind import Pushed, Served
from orchestration.connectors.outages import current_outage
from orchestration.supervisor.health import problems
from tests.collectors import collecting, write_conf
from tests.orchestration.connectors.sinks.small_lake import NOW
from tests.waiting import until

EVENT = b'{"device": "oven", "ts": "2026-01-01T00:00:00Z", "metric": "temperature", "value": 1}'


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_a_port_that_is_taken_leaves_the_other_sources_up_and_is_listened_on_once_it_is_free(tmp_path: Path, taken: socket.socket) -> None:
    port = taken.getsockname()[1]
    quoted = {"wire": f'tcp: {{"port": {port}}}', "lost": 'http: {"port": 0}'}  # for which nobody waits
    folder = write_conf(tmp_path, **quoted, plain="http: {port: 0}")
    (tmp_path / "lake" / "spool").mkdir(parents=True)
    (tmp_path / "lake" / "spool" / "lost").touch()
    with collecting(folder) as collector:
        assert collector.ask(EVENT)[0] == 202
        conf = load(folder)
        until(lambda: current_outage(conf.lake, "collected", "lost") is not None)
        outage = current_outage(conf.lake, "collected", "lost")
        assert outage is not None and outage.reason == f"the spool {tmp_path}/lake/spool/lost cannot be written: File exists."
        until(lambda: current_outage(conf.lake, "collected", "wire") is not None)
        (problem,) = (problem for problem in problems(conf, NOW) if problem.subject == "source wire")
        assert f"source wire cannot listen on 127.0.0.1, port {port}: Address already in use" in problem.sentence
        taken.close()
        collector.says("source wire: tcp://")
        assert current_outage(conf.lake, "collected", "wire") is None
        assert collector.ask(EVENT)[0] == 202


def test_a_server_that_throws_later_is_down_and_begins_again_while_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf, said, begun = load(write_conf(tmp_path, plain="http: {port: 0}", odd="http: {port: 0}")), list[str](), list[str]()

    async def thrower() -> None:
        raise ValueError("a secret of its own")

    async def serve(pushed: Pushed) -> Served:
        served = await http_server.serve(pushed)
        begun.append(pushed.source.name)
        if begun.count("odd") == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return Served(asyncio.create_task(thrower()), served.stop) if begun.count("odd") == 1 and pushed.source.name == "odd" else served

    monkeypatch.setattr(collect, "KINDS", {HttpSettings: serve})
    monkeypatch.setattr(collect, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr("gc.freeze", lambda: None)  # this process goes on
    collect.collect(conf, [], said.append)
    assert sorted(begun) == ["odd", "odd", "plain"]
    assert [line.partition(": ")[2] for line in said if " is down since " in line] == ["ValueError; it is tried again"]
    assert current_outage(conf.lake, "collected", "odd") is None
