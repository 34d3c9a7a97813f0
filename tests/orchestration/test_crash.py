"""Crash points: off unless asked for, and deadly at the passing that was asked for."""

import os
import signal
import subprocess
import sys

import pytest

from orchestration.crash import VARIABLE, Point

PASS_THREE_TIMES = """
from orchestration.crash import Point, point
for _ in range(3):
    point(Point.EVENTS_WRITTEN)
    print("alive", flush=True)
"""


@pytest.mark.parametrize(
    ("at", "alive"), [(None, 3), (Point.READINGS_WRITTEN, 3), (f"{Point.EVENTS_WRITTEN}:3", 2), (Point.EVENTS_WRITTEN, 0)]
)
def test_a_process_dies_at_the_passing_of_the_point_that_it_was_told_and_nowhere_else(at: str | None, alive: int) -> None:
    told = {} if at is None else {VARIABLE: str(at)}
    process = subprocess.run(
        [sys.executable, "-c", PASS_THREE_TIMES], env=os.environ | told, stdout=subprocess.PIPE, start_new_session=True, check=False
    )
    assert process.stdout.split() == [b"alive"] * alive
    assert process.returncode == (0 if alive == 3 else -signal.SIGKILL)
