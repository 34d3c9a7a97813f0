"""Planted bugs of sinks, without Spark: what a target refuses, and what a kill leaves."""

from collections.abc import Callable

import pytest

from orchestration.connectors.sinks.dead_rows import Refused
from tests.chaos import far_side
from tests.orchestration.connectors.sinks.small_lake import READINGS, SmallLake, reading
from tests.planted.day import Day


def without_notes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Refused, "note", lambda _: None)


def refused_rows(day: Day) -> list[str]:
    """A sink whose target refuses some rows."""
    folder = day.made.folder
    lake = SmallLake(folder, far_side.declare(folder))
    lake.write(READINGS, [reading(0, row) for row in range(9)]).pin(0)
    lake.send_all()
    return far_side.wrong(lake.conf)


BUGS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[Day], list[str]]]] = {
    "notes of dead rows": (without_notes, refused_rows),
}
"""By what is mistaken, and what then happens."""
