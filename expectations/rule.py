"""A rule: what must be true of a row; and the kinds of values that a row has. Data, without a parser."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The kind of a value in a condition."""

    TEXT = "text"
    NUMBER = "number"
    """A double, whatever the column holds."""
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    """An instant, in UTC."""
    TEXTS = "list of texts"
    ATTRIBUTES = "map of attributes"
    """Texts by name."""
    OTHER = "value of another type"
    NULL = "null"
    """Nothing, which may stand for a value of any kind."""


@dataclass(frozen=True)
class Rule:
    """`holds` is a condition (expectations/condition.py) over a row, true for a good one; null counts as broken."""

    name: str
    holds: str
