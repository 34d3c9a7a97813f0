"""Small files that a crash leaves whole, and that tell when they are not as they were written."""

import hashlib
import json
import os
from pathlib import Path
from typing import TypeVar

import msgspec

from orchestration.errors import TidemarkError
from orchestration.location import Location

SEPARATOR, MARK = b", ", b'"sha256": "'
T = TypeVar("T")


def write_atomic(location: Location, value: object) -> None:
    """A mapping or a dataclass as JSON, whole or not at all: the name appears when the bytes are on disk.

    The digest is of the bytes before it, so that other threads wait for no second encoding: that of fast alerts is large.
    """
    file, content = location.local, msgspec.json.encode(value)
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    with draft.open("wb") as stream:
        stream.writelines((content[:-1], b"" if content == b"{}" else SEPARATOR, MARK, _digest(content), b'"}'))
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(file)


def read_atomic(location: Location, way_out: str, kind: type[T]) -> T | None:
    """What was written; None where there is no file, and a TidemarkError that ends in the way out where it is not as it was."""
    try:
        before, _, end = location.local.read_bytes().rpartition(MARK)
    except FileNotFoundError:
        return None
    content, digest = before.removesuffix(SEPARATOR) + b"}", end.removesuffix(b'"}')
    if digest != _digest(content) and digest != _digest_of_sorted(content):
        raise TidemarkError(f"{location} is not as it was written.\n  {way_out}")
    return msgspec.convert(msgspec.json.decode(content), kind)


def sync(path: Path) -> None:
    """A file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest_of_sorted(content: bytes) -> bytes | None:
    """As lakes have it that were made before the digest was of the bytes."""
    try:
        return _digest(json.dumps(json.loads(content), sort_keys=True).encode())
    except ValueError:
        return None


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
