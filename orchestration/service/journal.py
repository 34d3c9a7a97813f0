"""The journal of `tidemark up`: lines `<instant> <part> <line>` in `up/journal.log`, of which the last 50 MB are kept."""

import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

from orchestration.location import Location
from orchestration.supervisor.service_state import folder_of

FILE_BYTES, FILES = 10_000_000, 5
NAMES = ("flow", "job", "sink", "source", "suite")
"""Under which a JSON line of a run says what it is about."""
POLL_SECONDS = 0.2


class Journal:
    """Written by one process; its threads may write at once."""

    def __init__(self, lake: Location) -> None:
        """`lake`: whose folder `up` is there already."""
        self._handler = _Handler(file_of(lake), maxBytes=FILE_BYTES, backupCount=FILES - 1, encoding="utf-8")

    def write(self, part: str, line: str) -> None:
        text = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + f"Z {part} {line}"
        self._handler.handle(logging.LogRecord(part, logging.INFO, "", 0, text, None, None))


class _Handler(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """Lose lines while the disk is full; the parts go on."""


def file_of(lake: Location) -> Path:
    """Return the file of the newest lines; older ones are in files with .1 to .4 after its name."""
    return folder_of(lake).local / "journal.log"


def lines(lake: Location, about: str | None, *, follow: bool) -> Iterator[str]:
    """From the oldest on, those of a part, or about a flow, job, sink or source of that name. `follow`: also those to come."""
    newest = file_of(lake)
    for number in range(FILES - 1, 0, -1):
        older = newest.with_name(f"{newest.name}.{number}")
        if older.exists():
            yield from (line for line in older.read_text(encoding="utf-8").splitlines() if _is_about(line, about))
    yield from (line for line in _of_newest(newest, follow=follow) if _is_about(line, about))


def _of_newest(file: Path, *, follow: bool) -> Iterator[str]:
    """Whole lines of the file, and where it is followed of the one that takes its name."""
    while follow or file.exists():
        if file.exists():
            with file.open(encoding="utf-8") as stream:
                inode, rest = file.stat().st_ino, ""
                while True:
                    *whole, rest = (rest + stream.read()).split("\n")
                    yield from whole
                    if not follow:
                        return
                    if not file.exists() or file.stat().st_ino != inode:
                        break
                    time.sleep(POLL_SECONDS)
        else:
            time.sleep(POLL_SECONDS)


def _is_about(line: str, about: str | None) -> bool:
    _, part, text = f"{line}  ".split(" ", 2)
    return about in (None, part) or any(parsed(text).get(name) == about for name in NAMES)


def parsed(text: str) -> dict[str, object]:
    """The facts of a JSON line; none of any other."""
    try:
        facts = json.loads(text) if text.startswith("{") else {}
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}
