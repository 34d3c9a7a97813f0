"""What every source does: it says how far it can be read, and reads what lies between two of its offsets.

The shape is that of Spark's Python data source. An offset is a JSON object in the source's own words, such as `{"claim": 7}`; the one of
a source that has not been read yet is empty. It is kept in the commit of bronze.events that holds the rows behind it
(storage/source_offsets.py), so rows and offset are written together or not at all.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from orchestration.errors import TidemarkError

Offset: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Notice:
    """What somebody has to see to. `facts`: by what they are about, such as {"file": .., "reason": ..}."""

    what: str
    facts: Mapping[str, str]


@dataclass(frozen=True)
class Gap:
    """Messages that were never read and are gone: from offset `first` to `last`, or nobody knows to where (None)."""

    topic: str
    partition: int
    first: int
    last: int | None


class SourceDownError(TidemarkError):
    """A source cannot be read now. Others go on, and it is asked again later from the offset at which it is."""

    is_passing = True


@dataclass(frozen=True)
class Unsettled:
    """What is there and cannot be read yet, and after how many seconds it may be."""

    names: Sequence[str]
    seconds: float


class Source(ABC):
    """Called by one thread at a time. An error ends the run, but for SourceDownError. `name`: as conf/sources.yml has it."""

    is_remote: bool = True
    """Whether it may be slow or out of reach: its rows are then brought to this machine before bronze is held."""
    name: str

    def stop_at_present(self) -> None:  # noqa: B027 (doing nothing is right for a source that runs empty)
        """For a run that ends: no offset from now on reaches behind what there is at the next look, however much still comes."""

    @abstractmethod
    def latest_offset(self, start: Offset) -> Offset:
        """How far it can be read now, behind `start` by one bronze batch at most; `start` itself where nothing has come."""

    @abstractmethod
    def describe(self, offset: Offset) -> str:
        """How far an offset is, in a few words for people; empty where it is of another kind of source. Asks nobody."""

    @abstractmethod
    def partitions(self, start: Offset, end: Offset) -> Sequence[Any]:
        """What lies behind `start`, up to and with `end`, in parts that can be read apart; the same whenever it is asked."""

    @abstractmethod
    def read(self, partition: Any) -> Iterator[pa.Table]:
        """The rows of a part: ARRIVED of bronze/events.py. The same whenever it is read."""

    def ends(self) -> Mapping[str, int]:
        """By place, where what can be read ended at the last look; empty where that is no count of messages."""
        return {}

    def waiting(self, offset: Offset, ends: Mapping[str, int]) -> int | None:
        """Messages between an offset and these ends; None where it has no ends. Asks nobody."""
        return None

    def gaps(self, start: Offset, end: Offset) -> Sequence[Gap]:
        """What should lie between them and is gone; the same whenever it is asked."""
        return []

    def unsettled(self) -> Unsettled | None:
        """What `tidemark run --once` waits for, once; None where nothing is half there."""
        return None

    def notices(self) -> Sequence[Notice]:
        """What has come up since the last call; the same is not told twice."""
        return []
