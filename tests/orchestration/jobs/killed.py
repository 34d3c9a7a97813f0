"""A kill within this process: what is done inside ends at a crash point."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
from pyspark.errors import StreamingQueryException

from orchestration import crash
from orchestration.crash import Point


class KilledError(Exception):
    """As a kill would, where Spark ends the query of whoever raises it."""


@contextmanager
def killed(at: Point | None, passing: int = 1) -> Iterator[None]:
    """Inside, all ends at that passing of the point; at none, where there is no point."""
    left = itertools.count(passing, -1)

    def point(passed: Point) -> None:
        if passed is at and next(left) == 1:
            raise KilledError

    with pytest.MonkeyPatch.context() as patch, pytest.raises((KilledError, StreamingQueryException)) if at else nullcontext():
        patch.setattr(crash, "point", point)
        yield
