"""Facts that runs have told, a JSON line each, by day in UTC: `history/2026-01-05.jsonl` of this host. The last eight days are kept."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orchestration.location import Location

FOLDER, SUFFIX = "history", ".jsonl"
DAYS = 8
HOUR_BYTES = 4 * 1024 * 1024


def note(lake: Location, facts: Mapping[str, Any]) -> None:
    """Note facts, in the process that writes the lake; without a word where the disk is full: a run does not end for it."""
    now = datetime.now(UTC)
    file = (lake / FOLDER / f"{now:%Y-%m-%d}{SUFFIX}").local
    with suppress(OSError):
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            for old in file.parent.glob(f"*{SUFFIX}"):
                if old.name < f"{now - timedelta(days=DAYS):%Y-%m-%d}":
                    old.unlink()
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"at": now.isoformat(timespec="milliseconds"), **facts}) + "\n")


def history(lake: Location, since: datetime, until: datetime) -> Iterator[dict[str, Any]]:
    """Yield facts in order; a line that a kill has cut off is left out."""
    for file in _files(lake):
        if file.name >= f"{since:%Y-%m-%d}":
            for line in file.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError):
                    facts = json.loads(line)
                    if since <= datetime.fromisoformat(facts["at"]) <= until:
                        yield facts


def newer(lake: Location, read: dict[Path, int]) -> Iterator[dict[str, Any]]:
    """Facts that were noted since the last call with this `read`, bytes by file; in the first one those of some thousand lines."""
    for file in _files(lake)[-2:]:
        with file.open("rb") as stream:
            read[file] = stream.seek(read.get(file, max(file.stat().st_size - HOUR_BYTES, 0)))
            whole = stream.read().rpartition(b"\n")[0]  # the last line may be half written
            read[file] += len(whole)
        for line in whole.splitlines():
            with suppress(ValueError):
                yield json.loads(line)


def _files(lake: Location) -> list[Path]:
    return sorted((lake / FOLDER).local.glob(f"*{SUFFIX}"))
