"""Two lanes of silver, killed between them: before their rows are one commit, after it, and between the notes of two checkpoints."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestration.crash import VARIABLE, Point
from tests.chaos.account import assert_as_undisturbed
from tests.chaos.plants import SECONDS, Plant, events

pytestmark = [pytest.mark.kill, pytest.mark.processes, pytest.mark.slow]
KILLS = (
    f"{Point.LANE_WAITS}:1",
    f"{Point.LANE_WAITS}:2",
    f"{Point.READINGS_WRITTEN}:1",  # the rows of all lanes are there, and no lane's checkpoint has the batch, or one has
    f"{Point.READINGS_WRITTEN}:2",
    f"{Point.READINGS_WRITTEN}:4",
    f"{Point.COMMIT_DUE}:5",
)
YARD = """sources:
  yard:
    path: ./yard
    lateness_seconds: 7200
    format: json
    device: {field: device}
    zone: {field: zone}
    time: {field: ts}
    metric: {field: metric}
    value: {field: value}
    unit: {field: unit}
"""
ALERTS = "alerts: {shaken: {window: vibration, group: building, when: value > 3}}"
"""None of readings: the older judging of them knows one lane."""


def plant_of_two_lanes(folder: Path, files: Sequence[Path]) -> Plant:
    """Half of the devices send by a source that has a lateness of its own."""
    plant = Plant(folder)
    sources = plant.folder / "conf" / "sources.yml"
    sources.write_text(sources.read_text().replace("sources:\n", YARD, 1))
    (plant.folder / "conf" / "alerts.yml").write_text(ALERTS)
    (plant.folder / "yard").mkdir()
    of_yard = [f'"{device}"'.encode() for device in sorted(plant.opened().conf.devices)[::2]]
    for file in files:
        rows: dict[bool, list[bytes]] = {True: [], False: []}
        for line in file.read_bytes().splitlines(keepends=True):
            rows[any(device in line for device in of_yard)].append(line)
        for is_of_yard, landed in ((True, plant.folder / "yard" / file.name), (False, plant.folder / "landing" / file.name)):
            landed.write_bytes(b"".join(rows[is_of_yard]))
            os.utime(landed, ns=(0, file.stat().st_mtime_ns))
    return plant


def test_a_kill_between_lanes_ends_as_undisturbed(tmp_path: Path) -> None:
    files = events(tmp_path / "events", files=6, seed=1)
    undisturbed = plant_of_two_lanes(tmp_path / "undisturbed", files)
    assert undisturbed.exit_code("run", "--once") == 0, undisturbed.log_end()
    disturbed = plant_of_two_lanes(tmp_path / "disturbed", files)
    killed = 0
    for point in KILLS:
        with disturbed.running("run", "--once", **{VARIABLE: point}) as process:
            killed += process.wait(SECONDS) == -signal.SIGKILL
    assert killed >= 4, disturbed.log_end()
    assert disturbed.exit_code("run", "--once") == 0, disturbed.log_end()
    assert_as_undisturbed(disturbed, undisturbed)
