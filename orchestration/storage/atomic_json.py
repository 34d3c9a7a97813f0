"""Small files that a crash leaves whole, and that tell when they are not as they were written."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestration.errors import TidemarkError
from orchestration.location import Location

DIGEST = "sha256"


def write_atomic(location: Location, content: Mapping[str, object]) -> None:
    """As JSON, whole or not at all: the name appears when the bytes are on disk."""
    file = location.local
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    with draft.open("w") as stream:
        json.dump({**content, DIGEST: _digest(content)}, stream)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(file)


def read_atomic(location: Location, way_out: str) -> dict[str, Any]:
    """What was written durably; a TidemarkError that ends in the way out where it is not as it was."""
    try:
        content: dict[str, Any] = json.loads(location.local.read_text())
        digest = content.pop(DIGEST)
    except (ValueError, LookupError, AttributeError, TypeError):
        content, digest = {}, None
    if digest != _digest(content):
        raise TidemarkError(f"{location} is not as it was written.\n  {way_out}")
    return content


def sync(path: Path) -> None:
    """A file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
