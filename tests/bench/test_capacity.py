"""The page of capacity shows what its command prints, and needs grow with events."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.bench.capacity import DAY, Costs, needs

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "orchestration" / "CAPACITY.md"


def test_the_page_shows_what_its_command_prints() -> None:
    arguments, shown = re.findall(r"```sh\npython (-m tests.bench.capacity[^`]*)```\n\n```text\n([^`]*)```", PAGE.read_text("utf-8"))[0]
    command = [sys.executable, *arguments.replace("\\\n", " ").split()]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [line.rstrip() for line in printed.splitlines()] == [line.rstrip() for line in shown.splitlines()]


def test_a_driver_that_is_busy_is_one_lake_more() -> None:
    cost = replace(Costs(), driver_seconds=1e-6, task_seconds=10e-6, cycle_seconds=0.0)
    one, two = (needs(events * DAY, cost, lateness=600, cycle=60, busy=0.5) for events in (500_000, 500_001))
    assert (one.lakes, one.driver_cores, one.task_cores) == (1, 1.0, 10.0)
    assert (two.lakes, two.files) == (2, 2 * one.files)
