"""An S3-compatible store by boto3: which objects there are below a prefix, and one version of one of them.

Whatever a store refuses is a SourceDownError; no message of one holds a secret. Imported when such a source is read: boto3 takes a while.
"""

import fnmatch
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from orchestration.conf.secrets import aws_keys
from orchestration.conf.transport_settings import S3Settings
from orchestration.connectors.sources.file_reader import HIDDEN
from orchestration.connectors.sources.object_claims import ObjectClaim, ObjectVersion
from orchestration.connectors.sources.source import SourceDownError
from orchestration.errors import TidemarkError

GONE = {"NoSuchKey", "NoSuchVersion", "PreconditionFailed"}
REASONS = {
    "NoSuchBucket": "there is no bucket of that name",
    "InvalidAccessKeyId": "it does not know the access key",
    "SignatureDoesNotMatch": "the secret key is wrong",
    "AccessDenied": "the keys may not do that",
}


class S3Client:
    """A client for one source; it connects when it is first asked."""

    connections = 16
    """Objects that can be brought at once: of small ones the way to the store takes longest."""

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
                if _code(error) in GONE:
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
            read_timeout=30,
            max_pool_connections=self.connections,
            retries={"mode": "standard", "max_attempts": 3},
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
