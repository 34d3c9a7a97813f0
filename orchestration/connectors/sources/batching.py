"""How much a source hands over at once."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol, TypeVar

PIECE_BYTES = 16 * 1024 * 1024


class Sized(Protocol):
    """A thing that is read as a whole."""

    @property
    def length(self) -> int:
        """The length in bytes as stored, perhaps compressed."""


S = TypeVar("S", bound=Sized)


def fitting(waiting: Sequence[S], max_bytes: int) -> list[S]:
    """The first of them, as many as have so many bytes together, one at least."""
    ends = accumulate(one.length for one in waiting)
    return [one for n, (one, end) in enumerate(zip(waiting, ends, strict=True)) if n == 0 or end <= max_bytes]
