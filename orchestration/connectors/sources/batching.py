"""Small things together, within bounds of rows and bytes: a source hands over tables, and a row group has neither too few nor too many."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Protocol, TypeVar

PIECE_BYTES, PIECE_ROWS = 16 * 1024 * 1024, 250_000
T = TypeVar("T")


class Sized(Protocol):
    """What is read as a whole; `length` in bytes."""

    @property
    def length(self) -> int:
        """As it lies there, perhaps packed."""


S = TypeVar("S", bound=Sized)


def fitting(waiting: Sequence[S], max_bytes: int) -> list[S]:
    """The first of them, as many as have so many bytes together, one at least."""
    ends = accumulate(one.length for one in waiting)
    return [one for n, (one, end) in enumerate(zip(waiting, ends, strict=True)) if n == 0 or end <= max_bytes]


def gather(items: Iterable[T], size: Callable[[T], tuple[int, int]]) -> Iterator[list[T]]:
    """Items in their order, as many at once as are within the bounds together, one at least. `size`: rows and bytes of one."""
    waiting: list[T] = []
    fullness = 0.0
    for item in items:
        rows, length = size(item)
        weight = rows / PIECE_ROWS + length / PIECE_BYTES
        if waiting and fullness + weight > 1:
            yield waiting
            waiting, fullness = [], 0.0
        waiting.append(item)
        fullness += weight
    if waiting:
        yield waiting
