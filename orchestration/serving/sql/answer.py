"""A query, and its answer or refusal, the same for every engine."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from orchestration.errors import TidemarkError

if TYPE_CHECKING:
    import pyarrow as pa

    from orchestration.storage.snapshot import Snapshot

MAX_WIDTH = 120
"""Characters of a line that are shown around the mistake in it."""


@dataclass(frozen=True)
class Question:
    """A query over one snapshot: the one with this id, or the newest at the instant (UTC); with neither, `storage/marts.py` chooses.

    `beside`: only the live page sets it. It names tables of its next queries. Those that come within seconds, with the same names and the
    id of the same snapshot, reuse the database of this one, which saves 60 ms each. Never set it for a query that a user typed.
    """

    query: str
    snapshot_id: int | None = None
    at: datetime | None = None
    beside: str = ""

    @property
    def is_of_view(self) -> bool:
        """Whether it may share a database."""
        return self.snapshot_id is not None and self.beside != ""


@dataclass(frozen=True)
class Limits:
    """Limits of one query. Rows above `rows` are cut off, and the answer says so. `memory_bytes`: more than its process has before it."""

    seconds: float = 300.0
    rows: int = 1_000_000
    result_bytes: int = 256 * 1024 * 1024
    query_bytes: int = 65_536
    memory_bytes: int = 2 * 1024**3


@dataclass(frozen=True)
class Answer:
    """Rows, with instants in UTC, and their snapshot; None in a lake without one. `is_cut_off`: there were more rows."""

    rows: "pa.Table"
    snapshot: "Snapshot | None"
    is_cut_off: bool = False


class Engine(Protocol):
    """Answers queries."""

    def ask(self, question: Question) -> Answer:
        """Rows of the query. TidemarkError in a sentence if it is refused, fails, or exceeds its time."""

    def cancel(self) -> None:
        """Cancel the running query; called from another thread."""


class RefusedError(TidemarkError):
    """A query that does more than read, cannot be understood, or cannot be answered here."""

    exit_code = 2


def pointed(query: str, start: int) -> str:
    """Return the line of a query that holds a character, counted from 0 over all lines, with a caret below it; both are indented."""
    before = query[:start]
    column = start - (before.rfind("\n") + 1)
    line = query[start - column :].split("\n", 1)[0].expandtabs(1)
    left = max(column - MAX_WIDTH // 2, 0)
    return f"  line {before.count(chr(10)) + 1}, column {column + 1}:\n  {line[left : left + MAX_WIDTH]}\n  {' ' * (column - left)}^"
