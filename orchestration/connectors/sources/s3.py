"""Objects below a prefix of an S3-compatible store as a source, by boto3; they are read as files are.

An object is claimed by key and ETag, or by key and id in a bucket with versions, and then read as it was claimed: never a mixture, never
another one. The offset is the number of the last claim that was read (object_claims.py). Names of objects have no order of time, so
all of them are listed each time. Whatever a store refuses is a SourceDownError; no message of one holds a secret.
"""

import fnmatch
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from orchestration.conf.transport_settings import S3Settings
from orchestration.connectors.sources.file_reader import HIDDEN, events_of, left_out
from orchestration.connectors.sources.object_claims import GONE, UNREADABLE_AS, ObjectClaim, ObjectClaims, ObjectVersion
from orchestration.connectors.sources.source import Gap, Notice, Offset, Source, SourceDownError, fitting
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.secrets import aws_keys
from silver.spec import PayloadFormat

OBJECT = "object"
MAX_OBJECTS = 10_000  # objects in a batch
IS_GONE = "it was deleted or overwritten after it was listed and before it was read; what it is now is read"
GONE_CODES = {"NoSuchKey", "NoSuchVersion", "PreconditionFailed"}
REASONS = {
    "NoSuchBucket": "there is no bucket of that name",
    "InvalidAccessKeyId": "it does not know the access key",
    "SignatureDoesNotMatch": "the secret key is wrong",
    "AccessDenied": "the keys may not do that",
}


@dataclass
class S3(Source):
    transport: S3Settings
    shape: PayloadFormat
    lake: Location
    max_batch_bytes: int
    _rests_until: float = 0.0  # monotonic seconds; no end for a run that ends and has listed

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
        left = dict[ObjectClaim, tuple[str, str]]()
        with self._claims.scratch() as folder, ThreadPoolExecutor(self._client.connections) as threads:
            files = [folder / f"{claim.number}{Path(claim.key).suffix}" for claim in partition]
            for claim, file, is_whole in zip(partition, files, threads.map(self._client.bring, partition, files), strict=True):
                if not is_whole:
                    left[claim] = GONE, IS_GONE
                elif why := left_out(file, file.stat(), self.shape):
                    left[claim] = UNREADABLE_AS + self.shape.encoding, why
                else:
                    position = self._position(claim)
                    yield from events_of(self.name, file, position, claim.modified_us * 1000, self.shape, notices=self._notices)
                file.unlink(missing_ok=True)
        self._claims.give_up({claim: fate for claim, (fate, _) in left.items()})
        self._notices += [Notice("object left out", {"object": self._position(claim), "reason": why}) for claim, (_, why) in left.items()]

    def gaps(self, start: Offset, end: Offset) -> Sequence[Gap]:
        """Objects that were given up, each as a topic of its own; of a claim the number is known."""
        return [Gap(self._position(claim), 0, claim.number, claim.number) for claim in self._between(start, end) if claim.fate]

    def _between(self, start: Offset, end: Offset) -> list[ObjectClaim]:
        return self._claims.between(int(start.get(OBJECT, -1)), int(end[OBJECT]))

    def _position(self, claim: ObjectClaim) -> str:
        version = claim.version.strip('"')
        return f"{self.transport.bucket}/{claim.key}@{version}"

    @cached_property
    def _claims(self) -> ObjectClaims:
        return ObjectClaims(self.lake, self.name, self.shape.encoding)

    @cached_property
    def _client(self) -> "S3Client":
        return S3Client(self.name, self.transport)


class S3Client:
    """A client for one source; it connects when it is first asked."""

    connections = 16  # objects that can be brought at once: of small ones the way to the store takes longest

    def __init__(self, source: str, store: S3Settings) -> None:
        self._source, self._store = source, store
        self._secrets: list[str] = []

    def pages(self) -> Iterator[list[ObjectVersion]]:
        """List the objects that match and are not hidden, page by page. Empty objects are left out: they have no events."""
        way, entries = ("list_object_versions", "Versions") if self._store.versions else ("list_objects_v2", "Contents")
        with self._telling():
            for page in self._client.get_paginator(way).paginate(Bucket=self._store.bucket, Prefix=self._store.prefix):
                yield [_version(entry) for entry in page.get(entries, ()) if entry["Size"] and self._matches(entry["Key"])]

    def bring(self, claim: ObjectClaim, file: Path) -> bool:
        """Write the object as it was claimed to a file; False where it is gone, or is another one now."""
        which = {"IfMatch": claim.version} if claim.version.startswith('"') else {"VersionId": claim.version}
        with self._telling(claim.key):
            try:
                body = self._client.get_object(Bucket=self._store.bucket, Key=claim.key, **which)["Body"]
            except ClientError as error:
                if _code(error) in GONE_CODES:
                    return False
                raise
            with file.open("wb") as stream:
                shutil.copyfileobj(body, stream, 1 << 20)
        return True

    def _matches(self, key: str) -> bool:
        *folders, name = key.removeprefix(self._store.prefix).lstrip("/").split("/")
        return fnmatch.fnmatchcase(name, self._store.files) and not any(map(HIDDEN.match, (*folders, name)))

    @cached_property
    def _client(self) -> Any:
        store, keys = self._store, aws_keys(self._store)
        self._secrets = [*keys.values()]
        settings = Config(
            connect_timeout=5,
            read_timeout=10,
            max_pool_connections=self.connections,
            retries={"mode": "standard", "max_attempts": 2},
            response_checksum_validation="when_required",
            s3={"addressing_style": "path" if store.endpoint else "auto"},  # few stores of one's own have a name for each bucket
        )
        # A store of one's own has no region, but signatures name one.
        region = store.region or ("us-east-1" if store.endpoint else None)
        return boto3.session.Session().client("s3", region_name=region, endpoint_url=store.endpoint, config=settings, **keys)

    @contextmanager
    def _telling(self, key: str = "") -> Iterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError) as error:
            said = (REASONS.get(_code(error)) if isinstance(error, ClientError) else None) or str(error)
            for hidden in self._secrets:
                said = said.replace(hidden, "***")
            where = f"bucket {self._store.bucket}" + (f" at {self._store.endpoint}" if self._store.endpoint else "")
            what = f"object {key} of {where}" if key else where
            remedy = "it is asked again later; see that it is up, and that bucket, region, endpoint and keys in sources.yml are right"
            raise SourceDownError(f"source {self._source} cannot read {what}: {said}; {remedy}.") from None
        except TidemarkError as error:
            raise SourceDownError(str(error)) from None


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _version(entry: dict[str, Any]) -> ObjectVersion:
    """Objects that are older than the versions of their bucket have the id `null`, which a new one would take over."""
    version = entry.get("VersionId", "null")
    is_id = version != "null"
    return ObjectVersion(
        entry["Key"], version if is_id else entry["ETag"], int(entry["LastModified"].timestamp() * 1_000_000), entry["Size"]
    )
