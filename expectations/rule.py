"""A rule: what must be true of a row. Data, without Spark."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """`holds` is a SQL predicate over a row, true for a good one; null counts as broken."""

    name: str
    holds: str
