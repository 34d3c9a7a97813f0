"""A sender is killed between delivery, the note of a dead row and the mark of the batch: each row is delivered once, or dead once.

No Spark: the lake is written by hand. `make chaos` kills whole runs in these phases.
"""

import signal
from pathlib import Path

import pytest

from orchestration.connectors.sinks.dead_rows import dead_rows
from orchestration.connectors.sinks.sink_states import Request, request
from orchestration.crash import VARIABLE, Point
from orchestration.storage.state_file import odd_files
from tests.chaos import far_side
from tests.orchestration.connectors.sinks.sender import sender
from tests.orchestration.connectors.sinks.small_lake import NOW, READINGS, SmallLake, reading

POINTS = (Point.BATCH_DELIVERED, Point.DEAD_ROWS_NOTED, Point.DEAD_ROWS_OVER)


def killed(lake: SmallLake, point: Point) -> None:
    process = sender(lake.conf, far_side.NAME, **{VARIABLE: str(point)})
    errors = process.communicate()[1]
    assert process.returncode == -signal.SIGKILL, errors


@pytest.mark.parametrize("point", POINTS)
def test_each_row_is_delivered_or_dead_once_wherever_its_sender_is_killed(point: Point, tmp_path: Path) -> None:
    lake = SmallLake(tmp_path, far_side.declare(tmp_path))
    for batch in range(2):  # all rows, and then those that are new
        lake.write(READINGS, [reading(batch, row) for row in range(9)]).pin(batch)
        killed(lake, point)
        lake.send_all()
        assert (far_side.wrong(lake.conf), len(dead_rows(lake.conf.lake, far_side.NAME))) == ([], 3 * batch + 3)


@pytest.mark.parametrize("point", [Point.BATCH_DELIVERED, Point.DEAD_ROWS_OVER])
def test_dead_rows_that_are_sent_again_come_once_wherever_their_sender_is_killed(point: Point, tmp_path: Path) -> None:
    lake = SmallLake(tmp_path, far_side.declare(tmp_path))
    lake.write(READINGS, [reading(0, row) for row in range(9)]).pin(0)
    lake.send_all()
    (tmp_path / far_side.MENDED).touch()
    request(lake.conf.lake, far_side.NAME, Request.RESEND, NOW)
    killed(lake, point)
    assert [*odd_files(lake.conf.lake)] == []
    lake.send_all()
    assert (far_side.wrong(lake.conf), dead_rows(lake.conf.lake, far_side.NAME)) == ([], {})
