"""The types of what a run consists of: the intake of sources, flows, which are streaming queries, and jobs, which follow them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from orchestration.connectors.sources.source import Source
from orchestration.storage.tables import Table


@dataclass(frozen=True)
class Intake:
    """Each of `sources()` feeds the one table on its own. No query of Spark."""

    name: str
    tables: tuple[Table, ...]
    sources: Callable[[], Sequence[Source]]

    @property
    def layer(self) -> str:
        """bronze."""
        return self.name.split(".", 1)[0]


@dataclass(frozen=True)
class Flow:
    """`write(batch, batch_id)` gets each micro-batch of `rows()`; `tables` are the ones it appends to, `reads` names those it reads."""

    name: str
    tables: tuple[Table, ...]
    reads: tuple[str, ...]
    rows: Callable[[], DataFrame]
    write: Callable[[DataFrame, int], None]

    @property
    def layer(self) -> str:
        """silver or gold."""
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
