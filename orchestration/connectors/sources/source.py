"""The interface of every source: it says how far it can be read, and reads what lies between two of its offsets.

The shape is that of Spark's Python data source. An offset is a JSON object in the source's own words, such as `{"claim": 7}`; the offset
of a source that has not been read yet is empty. It is kept in the commit of bronze.events that holds the rows behind it
(storage/source_offsets.py), so rows and offset are written together or not at all.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from errno import EDQUOT, ENOSPC
from itertools import accumulate
from typing import Any, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from orchestration.errors import HeldError, TidemarkError, without_secrets

Offset: TypeAlias = Mapping[str, Any]
PIECE_BYTES = 16 * 1024 * 1024  # how much a source hands over at once


@dataclass(frozen=True)
class Notice:
    """A finding that somebody has to look at. `facts`: what it is about, such as {"file": .., "reason": ..}."""

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
    """A source cannot be read now. Others go on, and it is asked again later from the offset at which it is. `source`: its name, where
    `own_fault` has put it.
    """

    is_passing, source = True, ""


@contextmanager
def own_fault(source: str) -> Iterator[None]:
    """Make a SourceDownError of whatever a source raises, but for a disk that is full, and a lease that is lost: these are the lake's."""
    try:
        yield
    except HeldError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in {ENOSPC, EDQUOT}:
            raise
        is_told = isinstance(error, SourceDownError)
        down = SourceDownError(str(error) if is_told else f"source {source} cannot be read: {without_secrets(error)}.")
        down.source = source
        raise down from error


@dataclass(frozen=True)
class Unsettled:
    """Names that are there and cannot be read yet, and after how many seconds they may be."""

    names: Sequence[str]
    seconds: float


@dataclass
class Source(ABC):
    """Called by one thread at a time. Any error means that it is down, and others go on. `name`: as conf/sources.yml has it."""

    is_remote = True  # whether it may be slow or out of reach: its rows are then brought to this machine before bronze is held
    name: str
    _is_ending: bool = field(default=False, init=False)
    _notices: list[Notice] = field(default_factory=list, init=False)

    def stop_at_present(self) -> None:
        """For a run that ends: no offset from now on reaches behind what there is at the next look, however much still comes."""
        self._is_ending = True

    @abstractmethod
    def latest_offset(self, start: Offset) -> Offset:
        """How far it can be read now, behind `start` by one bronze batch at most; `start` itself where nothing has come."""

    @abstractmethod
    def describe(self, offset: Offset) -> str:
        """How far an offset is, in a few words for people; empty where it is of another kind of source. Asks nobody."""

    @abstractmethod
    def partitions(self, start: Offset, end: Offset) -> Sequence[Any]:
        """Divide what lies after `start`, up to and including `end`, into parts that can be read apart. Every call gives the same."""

    @abstractmethod
    def read(self, partition: Any) -> Iterator[pa.Table]:
        """The rows of a part: ARRIVED of bronze/events.py. The same whenever it is read."""

    def ends(self) -> Mapping[str, int]:
        """Return the end of each partition when last asked; empty if the source does not count messages."""
        return {}

    def waiting(self, offset: Offset, ends: Mapping[str, int]) -> int | None:
        """Messages between an offset and these ends; None where it has no ends. Asks nobody."""
        return None

    def gaps(self, start: Offset, end: Offset) -> Sequence[Gap]:
        """Return what should lie between the offsets and is gone. Every call gives the same."""
        return []

    def unsettled(self) -> Unsettled | None:
        """Return what `tidemark run --once` waits for, once; None if nothing is half written."""
        return None

    def odd(self) -> Mapping[str, str]:
        """Return what somebody has to look at as it was when last asked, by its name, such as a file that may not be read; and why."""
        return {}

    def notices(self) -> Sequence[Notice]:
        """Return what has come up since the last call; nothing is reported twice."""
        new, self._notices = self._notices, []
        return new


@dataclass
class UnmadeSource(Source):
    """A source that could not be made. `reason`: why."""

    reason: str

    def latest_offset(self, start: Offset) -> Offset:
        raise SourceDownError(self.reason)

    def describe(self, offset: Offset) -> str:
        return ""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Any]:
        return []

    def read(self, partition: Any) -> Iterator[pa.Table]:
        yield from ()


class Sized(Protocol):
    """A thing that is read as a whole; `length` in bytes as stored, perhaps compressed."""

    @property
    def length(self) -> int: ...


S = TypeVar("S", bound=Sized)


def fitting(waiting: Sequence[S], max_bytes: int) -> list[S]:
    """Return the first of them, as many as have so many bytes together, one at least."""
    ends = accumulate(one.length for one in waiting)
    return [one for n, (one, end) in enumerate(zip(waiting, ends, strict=True)) if n == 0 or end <= max_bytes]
