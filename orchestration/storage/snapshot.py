"""A snapshot as a value, for processes that only show one: `orchestration.storage.snapshots` reads and pins them."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Snapshot:
    """Grain: one consistent cut, a row of ops.snapshots.

    `versions` by table, `closed_until` by gold stream: windows that end there or before are emitted.
    """

    snapshot_id: int
    at: datetime
    generation: int
    bronze_batch: int
    versions: dict[str, int]
    closed_until: dict[str, datetime]

    def __str__(self) -> str:
        return f"snapshot {self.snapshot_id} of {self.at:%Y-%m-%dT%H:%M:%SZ}, bronze batches up to {self.bronze_batch}"
