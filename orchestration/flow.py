"""The types of what a run consists of: flows, which are streaming queries, and jobs, which follow them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from orchestration.storage.tables import Table


@dataclass(frozen=True)
class Flow:
    """`write(batch, batch_id)` gets each micro-batch of `rows()`; `tables` are the ones it appends to.

    It returns how many rows it has read where Spark has not read them itself.
    """

    name: str
    tables: tuple[Table, ...]
    rows: Callable[[], DataFrame]
    write: Callable[[DataFrame, int], int | None]

    @property
    def layer(self) -> str:
        """bronze, silver or gold."""
        return self.name.split(".", 1)[0]


@dataclass(frozen=True)
class Job:
    """`run()` brings its tables up to date; yields rows that it has dealt with, after each step that a crash cannot undo."""

    name: str
    tables: tuple[Table, ...]
    run: Callable[[], Iterable[int]]

    @property
    def layer(self) -> str:
        """silver or gold."""
        return self.name.split(".", 1)[0]
