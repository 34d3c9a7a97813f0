"""Answers of two engines, put side by side."""

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

NEARLY = 1e-11
"""Of floating-point numbers, as a share: sums are made in another order, and logarithms by another library."""


def assert_same(found: pa.Table, expected: pa.Table, query: str = "", *, is_ordered: bool = True) -> None:
    """Names, types, values, order. Whether a column may hold nulls is no part of it, nor is the sign of 0."""
    assert columns(found) == columns(expected), query
    ours, theirs = (rows(answer, is_ordered) for answer in (found, expected))
    assert len(ours) == len(theirs), query
    differences = [pair for pair in zip(ours, theirs, strict=True) if not _is_same(*pair)]
    assert differences[:5] == [], query


def columns(answer: pa.Table) -> list[tuple[str, str]]:
    """Names and types."""
    return [(field.name, str(field.type).replace(" not null", "")) for field in answer.schema]


def rows(answer: pa.Table, is_ordered: bool) -> list[list[Any]]:
    """As lists; where they have no order, sorted by what they look like."""
    found = [list(row) for row in zip(*(column.to_pylist() for column in answer.columns), strict=True)]
    return found if is_ordered else sorted(found, key=repr)


def listed(text: str) -> list[str]:
    """What stands between semicolons and lines."""
    return [each.strip() for line in text.strip().splitlines() for each in line.split(";") if each.strip()]


def chunks(items: Sequence[str], size: int) -> list[Sequence[str]]:
    """So many at once: asking Spark costs as much for many columns as for one."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=NEARLY, abs_tol=0.0) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)
