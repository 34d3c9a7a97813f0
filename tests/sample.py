"""A sample of the parameters runs with all tests, the full set with the target of its topic: one mechanism, by markers."""

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

Value = TypeVar("Value")


def all_of(values: Iterable[Value], sample: Collection[Value], name: Callable[[Value], str] = str) -> list[ParameterSet]:
    """Every value as a parameter; what is not in the sample is `slow`."""
    return [pytest.param(value, id=name(value), marks=() if value in sample else pytest.mark.slow) for value in values]
