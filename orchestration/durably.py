"""Small files that a crash leaves whole."""

import json
import os
from collections.abc import Mapping
from pathlib import Path


def write_durably(file: Path, content: Mapping[str, object]) -> None:
    """As JSON, whole or not at all: the name appears when the bytes are on disk."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    with draft.open("w") as stream:
        json.dump(content, stream)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(file)
