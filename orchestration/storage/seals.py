"""Seals: digests of what finished batches left on the disk, so that damage shows before anything builds on it.

A seal lies beside its folder (`silver/readings.seal`, `checkpoints/gold.kitchen.seal`). It is only appended to, behind the batches: a kill
leaves the newest files unsealed, and they are taken as they are found. So are those of a line of the seal that is itself damaged.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path

from orchestration.location import Location

MOST = 10
"""Damaged files that are told at once."""


@dataclass(frozen=True)
class Mark:
    """A file when it was sealed."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Damage:
    """A file that is not as it was when it was sealed."""

    file: Path
    what: str

    def __str__(self) -> str:
        """As a clause."""
        return f"{self.file} {self.what}"


class Seal:
    """The seal of a folder. What it holds must never change again; a file may go if its owner has no more use for it."""

    def __init__(self, location: Location) -> None:
        """As it is on the disk now."""
        self.folder = location.local
        self.file = self.folder.with_name(f"{location.name}.seal")
        self.marks = dict(_read(self.file))

    def extend(self, names: Iterable[str]) -> None:
        """Seal files that are not sealed yet. A file that went meanwhile is left out."""
        found = {name: mark for name in names if name not in self.marks and (mark := _mark(self.folder / name)) is not None}
        if found:
            self.marks |= found
            _append(self.file, found)

    def forget(self, names: Iterable[str]) -> None:
        """Leave out files that are of no use any more, or the seal would grow for ever."""
        for name in names:
            del self.marks[name]
        draft = self.file.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        _append(draft, self.marks)
        draft.replace(self.file)

    def break_off(self) -> None:
        """For a folder that begins anew."""
        self.file.unlink(missing_ok=True)
        self.marks = {}

    def damages(self, names: Iterable[str]) -> Iterator[Damage]:
        """Those of the names that are sealed and not as they were."""
        for name in names:
            if (mark := self.marks.get(name)) is not None and (what := _difference(self.folder / name, mark)) is not None:
                yield Damage(self.folder / name, what)


def listed(damages: Sequence[Damage]) -> str:
    """The first of them in one sentence."""
    told = "; ".join(map(str, damages[:MOST]))
    return told if len(damages) <= MOST else f"{told}; and {len(damages) - MOST} more"


def _read(file: Path) -> Iterator[tuple[str, Mark]]:
    lines = file.read_text(errors="replace").split("\n") if file.exists() else []
    for line in lines:
        digest, _, marks = line.partition(" ")
        if marks and digest == _short_digest(marks):
            yield from ((name, Mark(*mark)) for name, mark in json.loads(marks).items())


def _append(file: Path, marks: Mapping[str, Mark]) -> None:
    """A line that begins with its end of line, so that it holds whatever a kill left of the one before."""
    line = json.dumps({name: list(asdict(mark).values()) for name, mark in marks.items()})
    with file.open("a") as stream:
        stream.write(f"\n{_short_digest(line)} {line}")
        stream.flush()
        os.fsync(stream.fileno())


def _short_digest(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:16]


def _mark(file: Path) -> Mark | None:
    """Of the file on the disk: or a power failure would leave the seal of a file that it took away."""
    try:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
            return Mark(os.fstat(stream.fileno()).st_size, _digest(stream))
    except FileNotFoundError:
        return None


def _difference(file: Path, mark: Mark) -> str | None:
    try:
        size = file.stat().st_size
        if size != mark.size:
            return f"has {size} bytes and had {mark.size}"
        with file.open("rb") as stream:
            return None if _digest(stream) == mark.sha256 else "holds other bytes than were written"
    except FileNotFoundError:
        return "is gone"


def _digest(stream: BufferedReader) -> str:
    return hashlib.file_digest(stream, "sha256").hexdigest()
