"""The interface of every sink: it says up to which position it has the rows of its table, and writes those of the next one.

A sink follows snapshots, so it has at any time what readers saw at one of them. Positions increase, and may skip snapshots.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from orchestration.connectors.sinks.dead_rows import Refused
from orchestration.connectors.sinks.sink_states import SinkPosition

FILE = "pipeline.yml"  # the file of conf that declares sinks


@dataclass(frozen=True)
class Batch:
    """The rows between two positions of a sink. `number`: the same for the same rows, whenever they are written again.

    `is_complete`: these are all the rows of the table, and whatever else the target has is removed. Otherwise each row is new, or a later
    version of the row with the same `key`. `key`: empty for a mart, which always comes complete.
    """

    sink: str
    table: str
    number: str
    after: SinkPosition | None
    position: SinkPosition
    is_complete: bool
    schema: pa.Schema
    key: tuple[str, ...]
    refused: Refused = field(default_factory=Refused)


class Sink(ABC):
    """Called by one thread. Any error means that it is down: the same batch, or a later one, is tried again.

    Rows that the target refuses for themselves are no error: they are left out, and noted before the target says that it has the batch.
    """

    is_ordered = False  # whether rows have to come in the order of their key, so that a repeat can be known by its number

    def last(self, remembered: SinkPosition | None) -> SinkPosition | None:
        """Return the position up to which the target has rows; None for nothing. `remembered`: for sinks that keep no position."""
        return remembered

    def check(self, table: str, schema: pa.Schema) -> None:  # noqa: B027
        """Raise a TidemarkError for a column that no row of could be sent; the target is not asked."""

    def old_rows_lack(self, columns: str, *, is_complete: bool) -> str | None:
        """Say so of columns that the table got, where the target cannot add them to rows that it has; None where it can."""
        return None

    @abstractmethod
    def write(self, batch: Batch, rows: Iterator[pa.Table]) -> bool:
        """Write all rows, as one. False where the target is no longer at `batch.after`: it is to be asked again."""


def parts(rows: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """Parts of exactly so many rows but the last, however the rows come."""
    left: pa.Table | None = None
    for chunk in rows:
        whole = chunk if left is None else pa.concat_tables([left, chunk])
        end = len(whole) - len(whole) % size
        yield from (whole.slice(at, size) for at in range(0, end, size))
        left = whole.slice(end)
    if left is not None and len(left):
        yield left
