"""What a query asks and what it gets, whatever engine answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from orchestration.storage.snapshot import Snapshot


@dataclass(frozen=True)
class Question:
    """A query over one snapshot: that of the id, or the newest at the instant (UTC), or see marts.cut_for."""

    query: str
    snapshot_id: int | None = None
    at: datetime | None = None


@dataclass(frozen=True)
class Limits:
    """What one query may take. `rows`: more are cut off, and that is said. `plan_nodes`: a CTE counts wherever it is used."""

    seconds: float = 300.0
    rows: int = 1_000_000
    result_bytes: int = 256 * 1024 * 1024
    query_bytes: int = 65_536
    plan_nodes: int = 5_000


@dataclass(frozen=True)
class Answer:
    """Rows, with instants in UTC, and the snapshot that they are of; None in a lake without one. `is_cut_off`: there were more rows."""

    rows: "pa.Table"
    snapshot: "Snapshot | None"
    is_cut_off: bool = False


class Engine(Protocol):
    """Something that answers."""

    def ask(self, question: Question) -> Answer:
        """TidemarkError in a sentence for what it refuses, or cannot do, or did not end in time."""

    def cancel(self) -> None:
        """End what is being answered; from another thread."""
