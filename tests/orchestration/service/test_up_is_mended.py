"""Mistakes in groups and devices, made and mended while `tidemark up` runs: no history is lost, and no reading stays in quarantine."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestration.conf.load import load
from orchestration.errors import TidemarkError
from orchestration.serving.sql.answer import Limits, Question
from orchestration.serving.sql.duckdb_engine import DuckDbEngine
from orchestration.storage.ops_tables import RUNS
from orchestration.supervisor.service_state import last_beat
from tests.collectors import write_conf
from tests.lakes import event, land, minutes
from tests.rows import at
from tests.server_process import free_ports
from tests.services import Up, tidemark
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.processes]
START = at("2026-01-05T00:00:00")
DEVICES = ("oven", "fridge", "press")
EACH_MINUTE = 'schedules: {mended: {cron: "* * * * *", command: quarantine retry}}\n'
WINDOWS = "select device_id, window_start, count, sum, min, max from gold.aggregates order by all"


class Plant:
    """`up` runs a lake whose devices are all in one group, of which the oven alone is declared."""

    def __init__(self, folder: Path) -> None:
        self.conf = write_conf(folder, plant="path: ./landing")
        settings = f"engine: {{driver_memory: 1g, trigger_seconds: 1}}\npage: {{port: {free_ports(1)[0]}}}\n"
        self.pipeline = (self.conf / "pipeline.yml").read_text() + settings
        (folder / "landing").mkdir()
        self.write(groups={"all": ["*"]}, devices=DEVICES[:1])
        self.up = Up(self.conf)

    def write(self, groups: dict[str, list[str]], devices: tuple[str, ...], schedules: str = "") -> None:
        """Save the conf, as an editor does."""
        settings = {name: {"metrics": ["temperature"], "devices": members} for name, members in groups.items()}
        for name, text in {
            "groups": json.dumps({"groups": settings}),
            "devices": json.dumps({"devices": {device: {} for device in devices}}),
            "pipeline": self.pipeline + schedules,
        }.items():
            (self.conf / f"{name}.yml").write_text(text)

    def save(self, groups: dict[str, list[str]], devices: tuple[str, ...], schedules: str = "") -> None:
        """Save the conf, and wait until the streams that `up` runs with it have started: only then they take requests."""
        before = self.up.part("streams").pid
        self.write(groups, devices, schedules)
        until(lambda: self._have_started_since(before), lambda: self.up.said)

    def _have_started_since(self, before: int | None) -> bool:
        streams, beat = self.up.part("streams"), last_beat(self.up.lake)
        return streams.pid not in {before, None} and (beat or 0.0) > (streams.started or time.time())

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The answer for readers of the newest snapshot; none before the first."""
        with suppress(TidemarkError):
            rows: list[dict[str, Any]] = DuckDbEngine(load(self.conf), Limits()).ask(Question(query)).rows.to_pylist()
            return rows
        return []

    def quarantined(self) -> set[str]:
        return {row["device_id"] for row in self.rows("select distinct device_id from silver.quarantine")}

    def windows(self) -> list[dict[str, Any]]:
        return self.rows(WINDOWS)


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    made = Plant(tmp_path_factory.mktemp("plant"))
    lines = [event(device, "temperature", 1.0, time) for device in DEVICES for time in minutes(START, 60)]
    land(made.conf.parent, "1.json", lines)
    until(lambda: made.quarantined() == {"fridge", "press"}, lambda: made.up.said, pause_seconds=0.5)
    yield made
    if made.up.process.poll() is None:
        made.up.end()


def test_a_device_that_was_not_declared_is_mended_by_declaring_it_and_a_job_or_a_command_beside_up(plant: Plant) -> None:
    plant.save({"all": ["*"]}, DEVICES[:2], EACH_MINUTE)
    until(lambda: plant.quarantined() == {"press"}, lambda: plant.up.said, pause_seconds=0.5)
    until(lambda: any(row.outcome == "done" for row in RUNS.rows(plant.up.lake)), lambda: plant.up.said)

    plant.save({"all": ["*"]}, DEVICES)
    ended = tidemark(plant.conf, "quarantine", "retry", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    assert "asks the running pipeline" in ended.stderr
    readmitted = [(row["events"], row["readmitted"], row["quarantined"]) for row in json.loads(ended.stdout)]
    # Nothing is left where the job of that minute waited for the streams too, and they served it first.
    assert readmitted in ([(60, 60, 0)], [])
    assert plant.quarantined() == set()
    closed = [START + timedelta(minutes=10 * n) for n in range(4)]
    until(lambda: len(plant.windows()) == len(DEVICES) * len(closed), plant.windows, pause_seconds=0.5)
    assert plant.windows() == [
        {"device_id": device, "window_start": start, "count": 10, "sum": 10.0, "min": 1.0, "max": 1.0}
        for device in sorted(DEVICES)
        for start in closed
    ]


def test_a_group_that_is_divided_beside_up_has_all_its_history_in_the_new_ones_as_the_preview_said(plant: Plant) -> None:
    before = plant.windows()
    plant.save({"hot": ["oven"], "cold": ["fridge"], "presses": ["press"]}, DEVICES)
    refused = tidemark(plant.conf, "replay")
    assert refused.returncode == 2
    assert "all, temperature: 12 windows from 2026-01-05T00:00" in refused.stderr
    assert "`tidemark replay --yes` builds it" in refused.stderr

    replayed = tidemark(plant.conf, "replay", "--yes")
    assert replayed.returncode == 0, replayed.stderr
    until(lambda: len(plant.windows()) == len(before), plant.windows, pause_seconds=0.5)
    assert plant.windows() == before
    counts = {row["device_group"]: row["n"] for row in plant.rows("select device_group, count(*) as n from gold.aggregates group by all")}
    table = [line.split() for line in replayed.stdout.splitlines() if "gold.aggregates" in line]
    assert {name: int(after) for name, _, _, after, *_ in table} == counts | {"all": 0}
    assert plant.rows("select count(*) as n from silver.readings") == [{"n": 180}]
    assert plant.up.end() == 0
    assert [tidemark(plant.conf, command).returncode for command in ("ledger", "verify")] == [0, 0]
