"""A source for tests: whole numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from bronze.events import ARRIVED
from orchestration.connectors.sources.source import Notice, Offset, Unsettled

RECEIVED_AT = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass
class Numbers:
    """Of which `left` have come; an offset is how many were read. `most`: of one batch. `is_broken`: it ends behind its first number."""

    name: str
    left: int = 0
    most: int = 1_000_000
    is_broken: bool = False

    def latest_offset(self, start: Offset) -> Offset:
        """All that have come, or as many as a batch may have."""
        read = int(start.get("read", 0))
        return {"read": min(self.left, read + self.most)} if self.left > read else start

    def partitions(self, start: Offset, end: Offset) -> Sequence[int]:
        """A number each."""
        return range(int(start.get("read", 0)), int(end["read"]))

    def read(self, partition: int) -> Iterator[pa.Table]:
        """One row."""
        if self.is_broken and partition:
            raise OSError("gone")
        text = str(partition)
        row = {"payload": text.encode(), "source": self.name, "position": text, "received_at": RECEIVED_AT}
        yield pa.Table.from_pylist([row], ARRIVED)

    def unsettled(self) -> Unsettled | None:
        """Nothing."""
        return None

    def notices(self) -> Sequence[Notice]:
        """Nothing."""
        return []
