"""A source for tests: whole numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from bronze.events import ARRIVED
from orchestration.connectors.sources.source import Offset, Source, SourceDownError

RECEIVED_AT = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass
class Numbers(Source):
    """Of which `left` have come; an offset is how many were read. `most`: of one batch. `is_broken`: it ends behind its first number.
    `reads`: what was read.
    """

    name: str
    left: int = 0
    most: int = 1_000_000
    is_broken: bool = False
    is_remote: bool = False
    is_down: bool = False
    end: int | None = None
    reads: list[range] = field(default_factory=list)

    def stop_at_present(self) -> None:
        """Numbers go on to come, and are not read."""
        self.end = self.left

    def latest_offset(self, start: Offset) -> Offset:
        """All that have come, or as many as a batch may have."""
        if self.is_down:
            raise SourceDownError(f"{self.name} is not there")
        read, left = int(start.get("read", 0)), self.left if self.end is None else self.end
        return {"read": min(left, read + self.most)} if left > read else start

    def describe(self, offset: Offset) -> str:
        return f"{offset['read']} numbers"

    def partitions(self, start: Offset, end: Offset) -> Sequence[range]:
        return [range(int(start.get("read", 0)), int(end["read"]))]

    def read(self, partition: range) -> Iterator[pa.Table]:
        self.reads.append(partition)
        for number in partition:
            if self.is_broken and number:
                raise OSError("gone")
            row = {"payload": b"%d" % number, "source": self.name, "position": str(number), "received_at": RECEIVED_AT}
            yield pa.Table.from_pylist([row], ARRIVED)
        self.left += self.end is not None
