"""A query that is refused, and the place in it that is meant."""

from orchestration.errors import TidemarkError

WIDEST = 120
"""Characters of a line that are shown around the place."""


class RefusedError(TidemarkError):
    """A query that tries more than to ask, cannot be understood, or has no answer here."""

    exit_code = 2


def pointed(query: str, start: int) -> str:
    """The line of a query that holds a character, counted from 0 over all lines, with a caret below it; both are indented."""
    before = query[:start]
    column = start - (before.rfind("\n") + 1)
    line = query[start - column :].split("\n", 1)[0].expandtabs(1)
    left = max(column - WIDEST // 2, 0)
    return f"  line {before.count(chr(10)) + 1}, column {column + 1}:\n  {line[left : left + WIDEST]}\n  {' ' * (column - left)}^"
