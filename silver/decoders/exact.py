"""Sums of numbers as they are written: 20.1 and 0.2 are 20.3, not 20.300000000000001."""

from decimal import Context, Decimal
from typing import Any

from silver.records import UnreadableError

CONTEXT = Context(prec=40)
GREATEST = 1e300


def number_of(value: Any) -> Decimal:
    """A number of JSON with the digits that it is written in; UnreadableError for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnreadableError("what should be a number is none")
    if not -GREATEST < value < GREATEST:
        raise UnreadableError("a number is not finite, or beyond 1e300")
    return Decimal(repr(value))


def total(*numbers: Decimal) -> int | float:
    """The sum, a whole number where it is one."""
    value = numbers[0]
    for number in numbers[1:]:
        value = CONTEXT.add(value, number)
    return int(value) if value == value.to_integral_value() and abs(value) < 2**63 else float(value)
