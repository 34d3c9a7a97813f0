"""Small things together, within bounds of rows and bytes: a source hands over tables, and a row group has neither too few nor too many."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

PIECE_BYTES, PIECE_ROWS = 16 * 1024 * 1024, 250_000
T = TypeVar("T")


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
