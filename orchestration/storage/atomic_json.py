"""Small files that a crash leaves whole, and that tell when they are not as they were written."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from orchestration.errors import TidemarkError
from orchestration.location import Location

DIGEST = "sha256"
T = TypeVar("T")


def write_atomic(location: Location, value: object) -> None:
    """A mapping or a dataclass as JSON, whole or not at all: the name appears when the bytes are on disk."""
    file, content = location.local, msgspec.to_builtins(value)
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    with draft.open("w") as stream:
        json.dump({**content, DIGEST: _digest(content)}, stream)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(file)


def read_atomic(location: Location, way_out: str, kind: type[T]) -> T | None:
    """What was written; None where there is no file, and a TidemarkError that ends in the way out where it is not as it was."""
    try:
        content: dict[str, Any] = json.loads(location.local.read_text())
        digest = content.pop(DIGEST)
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, AttributeError, TypeError):
        content, digest = {}, None
    if digest != _digest(content):
        raise TidemarkError(f"{location} is not as it was written.\n  {way_out}")
    return msgspec.convert(content, kind)


def sync(path: Path) -> None:
    """A file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
