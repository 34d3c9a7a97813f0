"""The ends of sources when a run last looked: `ends/<source>.json` in the lake, for who counts what waits and asks no source."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress

from orchestration.location import Location

FOLDER = "ends"


def note_ends(lake: Location, source: str, ends: Mapping[str, int]) -> None:
    """In the place of those of before; without a word where the disk is full, as nothing depends on it."""
    file = (lake / FOLDER / f"{source}.json").local
    draft = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(ends))
        draft.replace(file)


def noted_ends(lake: Location, source: str) -> Mapping[str, int]:
    """Return the ends by position, as the source names it; empty where none are noted."""
    try:
        ends: dict[str, int] = json.loads((lake / FOLDER / f"{source}.json").local.read_text())
    except (OSError, ValueError):
        return {}
    return ends
