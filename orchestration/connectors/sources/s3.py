"""Objects below a prefix of an S3-compatible store as a source; they are read as files are.

An object is claimed by key and ETag, or by key and id in a bucket with versions, and then read as it was claimed: never a mixture, never
another one. The offset is the number of the last claim that was read (storage/object_claims.py). Names of objects have no order of time, so
all of them are listed each time.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from orchestration.conf.transport_settings import S3Settings
from orchestration.connectors.sources.batching import fitting
from orchestration.connectors.sources.file_reader import events_of, left_out
from orchestration.connectors.sources.object_claims import GONE, UNREADABLE_AS, ObjectClaim, ObjectClaims
from orchestration.connectors.sources.source import Gap, Notice, Offset, Source
from orchestration.location import Location
from silver.spec import PayloadFormat

if TYPE_CHECKING:
    from orchestration.connectors.sources.s3_client import S3Client

OBJECT = "object"
MAX_OBJECTS = 10_000
"""Objects in a batch."""
IS_GONE = "it was deleted or overwritten after it was listed and before it was read; what it is now is read"


@dataclass
class S3(Source):
    """`transport`, `shape`: as conf declares them."""

    name: str
    transport: S3Settings
    shape: PayloadFormat
    lake: Location
    max_batch_bytes: int
    _is_ending: bool = False
    _rests_until: float = 0.0
    """Monotonic seconds; no end for a run that ends and has listed."""
    _notices: list[Notice] = field(default_factory=list)

    def stop_at_present(self) -> None:
        self._is_ending, self._rests_until = True, 0.0

    def latest_offset(self, start: Offset) -> Offset:
        """Step over as many claims as fit a batch, one at least. List the store again when all claims are read, and not too often."""
        after = int(start.get(OBJECT, -1))
        if time.monotonic() >= self._rests_until and (self._is_ending or not self._claims.between(after, most=1)):
            self._claims.claim(self._client.pages(), after)
            self._rests_until = inf if self._is_ending else time.monotonic() + self.transport.list_seconds
        batch = fitting(self._claims.between(after, most=MAX_OBJECTS), self.max_batch_bytes)
        return {**start, OBJECT: batch[-1].number} if batch else start

    def describe(self, offset: Offset) -> str:
        return f"object {offset[OBJECT]}" if OBJECT in offset else ""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Sequence[ObjectClaim]]:
        """All are one part: they are brought many at once."""
        claims = [claim for claim in self._between(start, end) if claim.fate is None]
        return [claims] if claims else []

    def read(self, partition: Sequence[ObjectClaim]) -> Iterator[pa.Table]:
        """Their lines. What cannot be read is given up: `gaps` names it."""
        with self._claims.scratch() as folder, ThreadPoolExecutor(self._client.connections) as threads:
            files = [folder / f"{claim.number}{Path(claim.key).suffix}" for claim in partition]
            for claim, file, is_whole in zip(partition, files, threads.map(self._client.bring, partition, files), strict=True):
                if not is_whole:
                    self._give_up(claim, GONE, IS_GONE)
                elif why := left_out(file, file.stat(), self.shape):
                    self._give_up(claim, UNREADABLE_AS + self.shape.encoding, why)
                else:
                    yield from events_of(self.name, file, self._position(claim), claim.modified_us * 1000, self.shape)
                file.unlink(missing_ok=True)

    def gaps(self, start: Offset, end: Offset) -> Sequence[Gap]:
        """Objects that were given up, each as a topic of its own; of a claim the number is known."""
        return [Gap(self._position(claim), 0, claim.number, claim.number) for claim in self._between(start, end) if claim.fate]

    def notices(self) -> Sequence[Notice]:
        new, self._notices = self._notices, []
        return new

    def _give_up(self, claim: ObjectClaim, fate: str, why: str) -> None:
        self._claims.give_up(claim.number, fate)
        self._notices.append(Notice("object left out", {"object": self._position(claim), "reason": why}))

    def _between(self, start: Offset, end: Offset) -> list[ObjectClaim]:
        return self._claims.between(int(start.get(OBJECT, -1)), int(end[OBJECT]))

    def _position(self, claim: ObjectClaim) -> str:
        version = claim.version.strip('"')
        return f"{self.transport.bucket}/{claim.key}@{version}"

    @cached_property
    def _claims(self) -> ObjectClaims:
        claims = ObjectClaims(self.lake, self.name)
        claims.take_again(self.shape.encoding)
        return claims

    @cached_property
    def _client(self) -> "S3Client":
        from orchestration.connectors.sources.s3_client import S3Client

        return S3Client(self.name, self.transport)
