"""An S3-compatible object store as a store. Paths are `bucket/key`; there are no folders, only keys with `/`.

The answer to a write may be lost after the write was done, and the client's own retry then meets what it wrote itself. So a conditional
write that fails is read back: it is done where the content is ours. Callers make their content unique.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from errno import EIO
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from orchestration.secrets import secret
from orchestration.stores.disk import host_state
from orchestration.stores.store import ChangedError, Condition, Entry

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs as pafs

SCHEME = "s3://"
CONNECT_SECONDS = 5
OF_WORKER = "TIDEMARK_WORKER"
"""In the environment of Spark's workers, which has the keys as libraries look for them: what conf refers to is on the driver's machine."""
NO_REGION = "us-east-1"
"""A store of one's own has no region, but signatures name one."""
GONE, CHANGED = {"NoSuchKey", "404"}, {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}
MOST_DELETED = 1000
"""Keys that one request may delete."""


@dataclass(frozen=True)
class ObjectStore:
    """Implements Store. `endpoint` None: AWS. Keys are references to secrets; None: those that the libraries find by themselves."""

    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    answer_seconds: int = 20
    attempts: int = 6
    is_disk = False

    @property
    def keys(self) -> tuple[str, str] | None:
        """The secrets, not references to them; TidemarkError where there are none. None: the libraries find them by themselves."""
        if not (self.access_key and self.secret_key) or OF_WORKER in os.environ:
            return None
        return secret(self.access_key, "pipeline.yml"), secret(self.secret_key, "pipeline.yml")

    @property
    def signed_region(self) -> str | None:
        return self.region or (NO_REGION if self.endpoint else None)

    @property
    def delta_options(self) -> dict[str, str]:
        keys = dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), self.keys or (), strict=False))
        address = {"AWS_ENDPOINT_URL": self.endpoint, "AWS_ALLOW_HTTP": "true"} if self.endpoint else {}
        region = {"AWS_REGION": self.signed_region} if self.signed_region else {}
        limits = {"timeout": f"{self.answer_seconds}s", "connect_timeout": f"{CONNECT_SECONDS}s", "max_retries": str(self.attempts)}
        return keys | address | region | limits

    @property
    def arrow(self) -> "pafs.FileSystem":
        return _arrow(self)

    def uri(self, path: PurePath) -> str:
        return f"{SCHEME}{path}"

    def host_path(self, path: PurePath) -> Path:
        server = urlsplit(self.endpoint).netloc.replace(":", "_") if self.endpoint else "aws"
        return host_state() / "lakes" / server / path

    def read(self, path: PurePath) -> tuple[bytes, str]:
        with _errors(self, path):
            answer = _client(self).get_object(**_object(path))
            return bytes(answer["Body"].read()), str(answer["ETag"])

    def read_range(self, path: PurePath, start: int, count: int) -> bytes:
        with _errors(self, path):
            answer = _client(self).get_object(**_object(path), Range=f"bytes={start}-{start + count - 1}")
            return bytes(answer["Body"].read())

    def write(self, path: PurePath, content: bytes, condition: Condition | str | None = None) -> str:
        how = {"IfNoneMatch": "*"} if condition is Condition.ABSENT else {"IfMatch": condition} if condition is not None else {}
        try:
            with _errors(self, path):
                return str(_client(self).put_object(**_object(path), Body=content, **how)["ETag"])
        except OSError:
            if condition is None:
                raise
            try:
                there, tag = self.read(path)
            except FileNotFoundError:
                there = b""
            if there == content:
                return tag
            raise

    def delete(self, path: PurePath) -> None:
        with _errors(self, path):
            _client(self).delete_object(**_object(path))

    def delete_all(self, path: PurePath) -> None:
        bucket, keys = path.parts[0], [{"Key": _key(entry.path)} for entry in self.entries(path)]
        with _errors(self, path):
            for start in range(0, len(keys), MOST_DELETED):
                _client(self).delete_objects(Bucket=bucket, Delete={"Objects": keys[start : start + MOST_DELETED], "Quiet": True})

    def entry(self, path: PurePath) -> Entry:
        with _errors(self, path):
            answer = _client(self).head_object(**_object(path))
            # By the clock of this host, which may differ from that of the store.
            age = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"]) - answer["LastModified"]
            return Entry(path, answer["ContentLength"], time.time() - age.total_seconds(), answer["ETag"])

    def is_file(self, path: PurePath) -> bool:
        try:
            self.entry(path)
        except FileNotFoundError:
            return False
        return True

    def is_dir(self, path: PurePath) -> bool:
        with _errors(self, path):
            answer = _client(self).list_objects_v2(Bucket=path.parts[0], Prefix=_prefix(path), MaxKeys=1)
            return bool(answer.get("KeyCount"))

    def entries(self, path: PurePath) -> Iterator[Entry]:
        with _errors(self, path):
            pages = _client(self).get_paginator("list_objects_v2").paginate(Bucket=path.parts[0], Prefix=_prefix(path))
            for listed in (listed for page in pages for listed in page.get("Contents", ())):
                file = PurePosixPath(path.parts[0], listed["Key"])
                yield Entry(file, listed["Size"], listed["LastModified"].timestamp(), listed["ETag"])

    def glob(self, path: PurePath, pattern: str) -> Iterator[PurePath]:
        parts = PurePosixPath(pattern).parts
        fixed = next((n for n, part in enumerate(parts) if any(mark in part for mark in "*?[")), len(parts) - 1)
        start, wanted, yielded = path.joinpath(*parts[:fixed]), parts[fixed:], set[PurePath]()
        if len(wanted) == 1:
            yield from (child for child in self._children(start) if fnmatchcase(child.name, wanted[0]))
            return
        for entry in self.entries(start):
            below = entry.path.relative_to(start).parts[: len(wanted)]
            matching = start.joinpath(*below)
            if len(below) == len(wanted) and matching not in yielded and all(map(fnmatchcase, below, wanted)):
                yielded.add(matching)
                yield matching

    def _children(self, path: PurePath) -> Iterator[PurePath]:
        """Yield files and folders right below a path; what is deeper is not listed."""
        with _errors(self, path):
            pages = _client(self).get_paginator("list_objects_v2").paginate(Bucket=path.parts[0], Prefix=_prefix(path), Delimiter="/")
            for page in pages:
                keys = [listed["Key"] for listed in page.get("Contents", ())] + [
                    listed["Prefix"] for listed in page.get("CommonPrefixes", ())
                ]
                yield from (PurePosixPath(path.parts[0], key) for key in keys)

    def open_input(self, path: PurePath) -> "pa.NativeFile":
        return self.arrow.open_input_file(str(path))

    def open_output(self, path: PurePath) -> "pa.NativeFile":
        return self.arrow.open_output_stream(str(path))


@cache
def _client(store: ObjectStore) -> Any:
    import boto3
    from botocore.config import Config

    settings = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=store.answer_seconds,
        max_pool_connections=16,
        retries={"mode": "standard", "total_max_attempts": store.attempts},
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if store.endpoint else "auto"},  # few stores of one's own have a name for each bucket
    )
    keys = dict(zip(("aws_access_key_id", "aws_secret_access_key"), store.keys or (), strict=False))
    return boto3.session.Session().client("s3", region_name=store.signed_region, endpoint_url=store.endpoint, config=settings, **keys)


@cache
def _arrow(store: ObjectStore) -> "pafs.FileSystem":
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    address = urlsplit(store.endpoint) if store.endpoint else None
    keys = dict(zip(("access_key", "secret_key"), store.keys or (), strict=False))
    return S3FileSystem(
        region=store.signed_region,
        endpoint_override=address.netloc if address else None,
        scheme=address.scheme if address else "https",
        connect_timeout=CONNECT_SECONDS,
        request_timeout=store.answer_seconds,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=store.attempts),
        check_directory_existence_before_creation=True,
        allow_delayed_open=True,  # a small file is one request
        **keys,
    )


@contextmanager
def _errors(store: ObjectStore, path: PurePath) -> Iterator[None]:
    """Raise errors of the client as those of a disk: with what the store said, and without secrets."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code, uri = str(error.response.get("Error", {}).get("Code", "")), store.uri(path)
        if code in GONE:
            raise FileNotFoundError(f"{uri} is not there") from None
        if code in CHANGED:
            raise ChangedError(f"{uri} was changed meanwhile") from None
        raise OSError(EIO, f"the store says {code}: {error.response['Error'].get('Message', '')}", uri) from None
    except BotoCoreError as error:
        raise OSError(EIO, f"the store cannot be asked: {error}", store.uri(path)) from None


def _key(path: PurePath) -> str:
    return "/".join(path.parts[1:])


def _prefix(path: PurePath) -> str:
    key = _key(path)
    return f"{key}/" if key else ""


def _object(path: PurePath) -> dict[str, str]:
    return {"Bucket": path.parts[0], "Key": _key(path)}
