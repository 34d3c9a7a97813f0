"""Seals: digests of what finished batches left on the disk, so that damage shows before anything builds on it.

A seal lies beside its folder (`silver/readings.seal`, `checkpoints/gold.kitchen.seal`). It is only appended to, behind the batches: a kill
leaves the newest files unsealed, and they are taken as they are found. So are those of a line of the seal that is itself damaged.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from orchestration.location import Location
from orchestration.storage.checkpoints import newest_batch
from orchestration.storage.delta import LOG, files_of, is_draft, is_table, open_table

MOST = 10
"""Damaged files that one error lists."""
CLOCK_LAG = timedelta(seconds=1)
"""How far the clock of a file system may be behind."""
KEPT_BATCHES = 100
"""Batches that Spark can go back (spark.sql.streaming.minBatchesToRetain); files of earlier ones may go."""


class Mark(NamedTuple):
    """A file when it was sealed."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Damage:
    """A file that is not as it was when it was sealed."""

    file: Path | Location
    what: str

    def __str__(self) -> str:
        return f"{self.file} {self.what}"


class Seal:
    """The seal of a folder. What it holds must never change again; a file may go if its owner has no more use for it."""

    def __init__(self, location: Location) -> None:
        """Read the seal as it is on the disk now. `marks`: by path below the folder. `lost`: lines that are damaged."""
        self.location, self.folder = location, location.local
        self.file = self.folder.with_name(f"{location.name}.seal")
        lines = self.file.read_text(errors="replace").split("\n") if self.file.exists() else []
        written = [line for line in lines if line]
        whole = [line for line in written if _is_whole(line)]
        self.marks = {name: Mark(*mark) for line in whole for name, mark in json.loads(line.partition(" ")[2]).items()}
        self.lost = len(written) - len(whole)

    def extend(self, names: Iterable[str]) -> None:
        """Seal files that are not sealed yet. A file that went meanwhile is left out."""
        added = {name: mark for name in names if name not in self.marks and (mark := _mark(self.folder / name)) is not None}
        if added:
            self.marks |= added
            _append(self.file, added)

    def forget(self, names: Iterable[str]) -> None:
        """Leave out files that are of no use any more, or the seal would grow for ever."""
        for name in names:
            del self.marks[name]
        draft = self.file.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        _append(draft, self.marks)
        draft.replace(self.file)

    def break_off(self) -> None:
        self.file.unlink(missing_ok=True)
        self.marks = {}

    def damages(self, names: Iterable[str], is_needed: Callable[[str], bool]) -> list[Damage]:
        """List the sealed files that are not as they were; of files that are gone, only those that are needed."""
        differences = ((name, self.folder / name, _difference(self.folder / name, self.marks[name])) for name in names)
        return [Damage(file, what) for name, file, what in differences if what is not None and (file.exists() or is_needed(name))]


def damaged_checkpoint(checkpoint: Location) -> list[Damage]:
    """Sealed files that are not as they were, or are gone although Spark may need them."""
    if not checkpoint.store.is_disk:
        return []
    seal = Seal(checkpoint)
    of_no_use = {*_purged(seal)}
    return seal.damages(seal.marks, lambda name: name not in of_no_use)


def damaged_log(table: Location) -> list[Damage]:
    """List the damages of a table's log. A log entry may go when a checkpoint of Delta holds all that was before it."""
    if not table.store.is_disk:
        return []
    seal = Seal(table)
    checkpoints = [number(file.name) for file in (table / LOG).glob("*.checkpoint*.parquet")]
    newest = max(checkpoints, default=-1)
    log = (name for name in seal.marks if name.startswith(LOG) and not is_draft(name))
    sealed = seal.damages(log, lambda name: number(Path(name).name) >= newest)
    return [*sealed, *_misleading(table / LOG / "_last_checkpoint", checkpoints)]


def damaged_files(table: Location, since: date | None = None, at: datetime | None = None) -> list[Damage]:
    """Data files of a table whose log is whole; of those that are gone, the ones that its newest version needs.

    `since`: only files that were written on that day (UTC) or later, whoever wrote them. `at`: only those that were written, put in their
    place or otherwise touched at that instant or later, by the clock of the file system.
    """
    if not table.store.is_disk or not is_table(table):
        return []
    seal, needed = Seal(table), {*files_of(open_table(table))}
    files = (name for name in seal.marks if not name.startswith(LOG) and (since is None or _is_written_since(seal.folder / name, since)))
    touched = (name for name in files if at is None or is_touched_since(seal.folder / name, at))
    return seal.damages(touched, lambda name: name in needed)


def damages(table: Location) -> list[Damage]:
    """List those of a table's log, or else of its data files."""
    return damaged_log(table) or damaged_files(table)


def listed(damages: Sequence[Damage]) -> str:
    """The first of them in one sentence."""
    first = "; ".join(map(str, damages[:MOST]))
    return first if len(damages) <= MOST else f"{first}; and {len(damages) - MOST} more"


def number(name: str) -> int:
    """Return the number with which the name of a file begins; -1 for none."""
    digits = re.match(r"\d+", name)
    return int(digits[0]) if digits else -1


def is_touched_since(file: Path, at: datetime) -> bool:
    """Whether a file is gone, or its inode has changed at an instant or later: a time that nobody can set."""
    return not file.exists() or datetime.fromtimestamp(file.stat().st_ctime, UTC) >= at - CLOCK_LAG


def touched_since(table: Location, names: Collection[str], at: datetime) -> set[str]:
    """Return the files of a table that are gone, or were written at an instant or later, by the clock of the store."""
    if table.store.is_disk:
        return {name for name in names if is_touched_since(table.local / name, at)}
    written_at = {file.below(table): seconds for file, _, seconds in table.entries()}
    return {name for name in names if written_at.get(name, math.inf) >= (at - CLOCK_LAG).timestamp()}


def _is_written_since(file: Path, since: date) -> bool:
    return not file.exists() or datetime.fromtimestamp(file.stat().st_mtime, UTC).date() >= since


def _misleading(hint: Location, checkpoints: Sequence[int]) -> Iterator[Damage]:
    """Delta does without this file, but not with one that leads nowhere."""
    if hint.exists():
        try:
            is_right = json.loads(hint.read())["version"] in checkpoints
        except (ValueError, LookupError, TypeError):
            is_right = False
        if not is_right:
            yield Damage(hint, "leads to no checkpoint: delete it")


def _purged(seal: Seal) -> Iterator[str]:
    """Entries of logs and state of batches that Spark cannot go back to. SST files have numbers of their own: Spark tells if one lacks."""
    newest = newest_batch(seal.location / "offsets")
    for name in seal.marks:
        batch = 0 if name.endswith(".sst") else number(Path(name).name)
        if 0 <= batch <= newest - KEPT_BATCHES:
            yield name


def _is_whole(line: str) -> bool:
    digest, _, marks = line.partition(" ")
    return digest == _short_digest(marks)


def _append(file: Path, marks: Mapping[str, Mark]) -> None:
    """A line that begins with its end of line, so that it holds whatever a kill left of the one before."""
    line = json.dumps(marks)
    with file.open("a") as stream:
        stream.write(f"\n{_short_digest(line)} {line}")
        stream.flush()
        os.fsync(stream.fileno())


def _short_digest(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:16]


def _mark(file: Path) -> Mark | None:
    """Mark a file once it is on the disk: or a power failure would leave the seal of a file that it took away."""
    try:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
            return Mark(os.fstat(stream.fileno()).st_size, hashlib.file_digest(stream, "sha256").hexdigest())
    except FileNotFoundError:
        return None


def _difference(file: Path, mark: Mark) -> str | None:
    try:
        size = file.stat().st_size
        if size != mark.size:
            return f"has {size} bytes and had {mark.size}"
        with file.open("rb") as stream:
            is_same = hashlib.file_digest(stream, "sha256").hexdigest() == mark.sha256
        return None if is_same else "holds other bytes than were written"
    except FileNotFoundError:
        return "is gone"
