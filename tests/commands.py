"""A command line of `tidemark` in the process of a test."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

Rows = list[dict[str, Any]]


class Said(NamedTuple):
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> Rows:
        """What `--format json` has printed."""
        rows: Rows = json.loads(self.out or "[]")
        return rows


Tidemark = Callable[..., Said]
"""Takes the words of a command line."""
