"""The error of a refused query, and the line that points at the place in it."""

from orchestration.errors import TidemarkError

MAX_WIDTH = 120
"""Characters of a line that are shown around the place."""


class RefusedError(TidemarkError):
    """A query that does more than read, cannot be understood, or cannot be answered here."""

    exit_code = 2


def pointed(query: str, start: int) -> str:
    """The line of a query that holds a character, counted from 0 over all lines, with a caret below it; both are indented."""
    before = query[:start]
    column = start - (before.rfind("\n") + 1)
    line = query[start - column :].split("\n", 1)[0].expandtabs(1)
    left = max(column - MAX_WIDTH // 2, 0)
    return f"  line {before.count(chr(10)) + 1}, column {column + 1}:\n  {line[left : left + MAX_WIDTH]}\n  {' ' * (column - left)}^"
