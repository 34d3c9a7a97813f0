"""`tidemark up` with all of its parts: what comes by files and by HTTP is in gold and on the page, also after kills of each part."""

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestration.conf.load import load
from orchestration.errors import TidemarkError
from orchestration.service.process import session_of
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.supervisor.service_state import refused_conf
from tests.collectors import write_conf
from tests.lakes import event, land, minutes
from tests.rows import at
from tests.server_process import free_ports
from tests.services import Up, rows, status_of, tidemark
from tests.waiting import until

pytestmark = pytest.mark.spark
START = at("2026-01-05T00:00:00")
PARTS = ("streams", "collector", "page")


class Plant:
    """`up` runs it whole; a source of each kind."""

    def __init__(self, folder: Path) -> None:
        self.folder, (self.port, self.page) = folder, free_ports(2)
        self.conf = write_conf(folder, plant="path: ./landing", web=f"http: {{port: {self.port}}}")
        with (self.conf / "pipeline.yml").open("a") as file:
            file.write(f"page: {{port: {self.page}}}\nengine: {{driver_memory: 1g, trigger_seconds: 1}}\n")
        (folder / "landing").mkdir()
        self.up = Up(self.conf)

    def bring(self, first: int) -> None:
        """An hour of readings, the first half by HTTP, the second by a file, which settles first."""
        lines = [event("oven", "temperature", 1.0, time) for time in minutes(START + timedelta(hours=first), 60)]
        until(lambda: status_of(f"http://127.0.0.1:{self.port}/events", "\n".join(lines[:30]).encode()) == 202)
        land(self.folder, f"{first}.json", lines[30:])

    def has(self, windows: int) -> bool:
        """Whether so many windows are closed, for readers of the newest snapshot."""
        with suppress(TidemarkError):  # no table is pinned yet
            answer = DuckDbEngine(load(self.conf), Limits()).ask(Question("select count(*) as n from gold.kitchen_aggregates"))
            return bool(answer.rows.to_pylist() == [{"n": windows}])
        return False

    def overview(self) -> dict[str, Any]:
        """As the page shows it."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.page}/api/overview") as answer:
            facts: dict[str, Any] = json.load(answer)
            return facts


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    made = Plant(tmp_path)
    yield made
    if made.up.process.poll() is None:
        made.up.end()


def test_what_comes_is_in_gold_and_on_the_page_though_each_part_and_then_up_itself_is_killed(plant: Plant) -> None:
    plant.bring(0)
    for part in PARTS:
        plant.up.kill(part)
    until(lambda: plant.has(windows=4), pause_seconds=0.5)  # 00:59 and ten minutes of lateness close those until 00:40
    assert [(row["part"], row["state"], row["restarts"]) for row in rows(plant.conf, "status", "parts")] == [
        (part, "running", 1) for part in PARTS
    ]
    assert plant.overview()["problems"] == []
    os.kill(plant.up.process.pid, signal.SIGKILL)
    plant.up.process.wait()
    plant.up = Up(plant.conf)
    plant.bring(1)
    until(lambda: plant.has(windows=10), pause_seconds=0.5)
    assert plant.overview()["account"]["events"] == 120
    sessions = [plant.up.part(name).pid for name in PARTS]
    assert plant.up.end() == 0
    assert [process for session in sessions if session for process in session_of(session)] == []
    assert [tidemark(plant.conf, command).returncode for command in ("ledger", "verify")] == [0, 0]


@pytest.mark.processes
def test_a_conf_that_the_lake_cannot_go_on_with_stops_no_event_and_a_replay_takes_it_up(plant: Plant) -> None:
    plant.bring(0)
    until(lambda: plant.has(windows=4), pause_seconds=0.5)
    metrics = plant.conf / "metrics.yml"
    metrics.write_text(metrics.read_text().replace("step_seconds: 600", "step_seconds: 300"))
    until(lambda: refused_conf(plant.up.lake).read() is not None)
    refused = refused_conf(plant.up.lake).read()
    assert refused is not None
    assert (refused.file, refused.line, refused.command) == (str(metrics), 2, "tidemark replay")
    assert f"{metrics}:2" in json.dumps(plant.overview())
    plant.up.kill("streams")  # it starts again with the conf before
    plant.bring(1)
    until(lambda: plant.has(windows=10), lambda: plant.up.said, pause_seconds=0.5)
    assert [tidemark(plant.conf, command).returncode for command in ("check", "ledger", "verify")] == [1, 0, 0]

    assert tidemark(plant.conf, "replay", "--yes").returncode == 0
    until(lambda: refused_conf(plant.up.lake).read() is None)
    until(lambda: plant.has(windows=21), lambda: plant.up.said, pause_seconds=0.5)  # of five minutes each
    plant.bring(2)
    until(lambda: plant.has(windows=33), lambda: plant.up.said, pause_seconds=0.5)
    assert plant.up.end() == 0
    assert [tidemark(plant.conf, command).returncode for command in ("check", "ledger", "verify")] == [0, 0, 0]
