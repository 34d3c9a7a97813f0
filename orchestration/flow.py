"""The types of what a run consists of: the intake of sources, flows, which are streaming queries, and jobs, which follow them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from orchestration.connectors.sources.source import Source
from orchestration.storage.meeting import Meeting
from orchestration.storage.tables import Table


@dataclass(frozen=True)
class _Named:
    """`tables`: those that it writes."""

    name: str
    tables: tuple[Table, ...]

    @property
    def whole(self) -> str:
        """The name without that of a lane: the queries of all lanes of silver run together."""
        return self.name.partition("@")[0]

    @property
    def layer(self) -> str:
        """bronze, silver or gold."""
        return self.name.split(".", 1)[0]


@dataclass(frozen=True)
class Intake(_Named):
    """Each of `sources()` feeds the one table on its own. No query of Spark."""

    sources: Callable[[], Sequence[Source]]


@dataclass(frozen=True)
class Flow(_Named):
    """`write(batch, batch_id)` appends each micro-batch of `rows()` to the tables; `reads` names those that it reads.

    `meeting`: where the lanes of silver wait for each other.
    """

    reads: tuple[str, ...]
    rows: Callable[[], DataFrame]
    write: Callable[[DataFrame, int], None]
    meeting: Meeting | None = None


@dataclass(frozen=True)
class Job(_Named):
    """`run()` brings its tables up to date; yields rows that it has dealt with, after each step that a crash cannot undo."""

    run: Callable[[], Iterable[int]]
