"""A landing folder as a source: an offset is the number of the last claim that was read."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from orchestration.conf.transport_settings import LandingFolder
from orchestration.connectors.sources.batching import fitting
from orchestration.connectors.sources.claims import Claim, Claims, claim_settled, growing
from orchestration.connectors.sources.file_reader import events_of
from orchestration.connectors.sources.source import Notice, Offset, Source, Unsettled
from silver.spec import PayloadFormat

CLAIM = "claim"


@dataclass
class Files(Source):
    """`landing` None: of a source that conf no longer names, only what was claimed is read. `others`: folders of claims of such sources."""

    is_remote = False
    name: str
    claims_folder: Path
    shape: PayloadFormat
    max_batch_bytes: int
    landing: LandingFolder | None = None
    others: Sequence[Path] = ()
    _refused: dict[Path, str] = field(default_factory=dict)
    """Files that cannot be read: why, until it is told."""
    _told: set[Path] = field(default_factory=set)

    def latest_offset(self, start: Offset) -> Offset:
        """Claims what has settled; then as many claims as fit a batch, one at least."""
        after = int(start.get(CLAIM, -1))
        if self.landing is not None:
            self._refused = claim_settled(self.landing, self._claims, time.time(), after, self._former, shape=self.shape)
        batch = fitting(self._claims.after(after), self.max_batch_bytes)
        return {**start, CLAIM: batch[-1].number} if batch else start

    def describe(self, offset: Offset) -> str:
        return f"claim {offset[CLAIM]}" if CLAIM in offset else ""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Claim]:
        return [claim for claim in self._claims.after(int(start.get(CLAIM, -1))) if claim.number <= end[CLAIM]]

    def read(self, partition: Claim) -> Iterator[pa.Table]:
        return events_of(self.name, partition.file, partition.position, partition.modified_ns, self.shape)

    def unsettled(self) -> Unsettled | None:
        names = growing(self.landing, time.time()) if self.landing else []
        return Unsettled([str(file) for file in names], self.landing.settle_seconds) if self.landing and names else None

    def notices(self) -> Sequence[Notice]:
        new = {file: why for file, why in self._refused.items() if file not in self._told}
        self._told |= new.keys()
        return [Notice("file left out", {"file": str(file), "reason": why}) for file, why in new.items()]

    @cached_property
    def _claims(self) -> Claims:
        return Claims(self.claims_folder)

    @cached_property
    def _former(self) -> list[Claims]:
        return [Claims(folder) for folder in self.others]
