"""What every sink does: it says up to which position it has the rows of its table, and writes those of the next one.

A sink follows snapshots, so what it has is at any time what readers saw at one of them. Positions increase, and may leave snapshots out.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from orchestration.storage.sink_states import SinkPosition

FILE = "pipeline.yml"
"""Where sinks are declared."""


@dataclass(frozen=True)
class Batch:
    """What lies between two positions of a sink. `number`: the same for the same rows, whenever they are written again.

    `is_complete`: these are all the rows of the table, and what the far side has beside them goes. Else each row is new, or, where its
    `key` is there already, a later one of it. `key`: empty for a mart, which only comes complete.
    """

    sink: str
    table: str
    number: str
    after: SinkPosition | None
    position: SinkPosition
    is_complete: bool
    schema: pa.Schema
    key: tuple[str, ...]


class Sink(ABC):
    """Called by one thread. Any error means that it is down: the same batch, or a later one, is tried again."""

    is_ordered = False
    """Whether rows have to come in the order of their key, so that a repeat can be known by its number."""

    def last(self, known: SinkPosition | None) -> SinkPosition | None:
        """Up to where the far side has rows; None for nothing. `known`: what the lake remembers, for sinks that keep no position."""
        return known

    @abstractmethod
    def write(self, batch: Batch, rows: Iterator[pa.Table]) -> bool:
        """Write all rows, as one. False where the far side is no longer at `batch.after`: it is to be asked again."""
