"""A landing folder as a source: only whole files are read, and each version of a file once.

A file counts as whole when it has not changed for `settle_seconds` (and, if gzip, unpacks to its end). It is then claimed by a hard link
below the lake (on another disk by a copy), so that its bytes stay when the producer deletes it. Only claims are read. A file that changes
after it was claimed is claimed again as a new version and read from its start: silver drops what was there before as duplicates.

A claim is `intake/<source>/<number>-<version>/<path below the landing folder>`. Numbers only grow, and files that are found together are
numbered by their time; a version is the file's time in nanoseconds since 1970 and its length in bytes. An offset is the number of the last
claim that was read.
"""

import fnmatch
import os
import re
import shutil
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from orchestration.conf.transport_settings import LandingFolder
from orchestration.connectors.sources.file_reader import HIDDEN, events_of, left_out
from orchestration.connectors.sources.source import Notice, Offset, Source, SourceDownError, Unsettled, fitting
from orchestration.utc import from_micros
from silver.spec import PayloadFormat

CLAIM = "claim"
DRAFT = ".draft"  # The name of a copy that is not whole yet. Landing files with a leading dot are never read, so no claim has this name.
FOLDER = re.compile(r"(\d+)-((-?\d+)-(\d+))")


class Claim(NamedTuple):
    """`file`: the hard link or copy below the lake; `position`: the path below the landing folder; `modified_ns`: since 1970."""

    number: int
    version: str
    position: str
    file: Path
    modified_ns: int
    length: int


class Claims:
    """The claims of one source, in a folder that only this process writes."""

    def __init__(self, folder: Path) -> None:
        """Read the claims from the disk, in one walk over all of them. `newest`: the greatest number."""
        self._folder = folder
        self._all = sorted(_claims(folder))
        self._by_position: dict[tuple[str, str], Claim] = {(claim.version, claim.position): claim for claim in self._all}
        # A claim folder may be empty: its file was gone before it could be linked. Its number counts all the same.
        self.newest = max((int(folder.name.partition("-")[0]) for folder in folder.glob("*-*-*")), default=-1)

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._by_position

    def is_of(self, key: tuple[str, str], file: Path) -> bool:
        """Tell whether this very file (by inode) is claimed under this version and position."""
        return (claim := self._by_position.get(key)) is not None and claim.file.exists() and claim.file.samefile(file)

    def add(self, key: tuple[str, str], file: Path, number: int) -> None:
        """Claim a file, unless it is gone. Numbers must grow."""
        version, position = key
        self.newest = number
        claim = self._folder / f"{number:012d}-{version}" / position
        if _claim(file, claim):
            self._all.append(new := _as_claim(self._folder, claim))
            self._by_position[key] = new

    def after(self, number: int) -> list[Claim]:
        """List the claims with a greater number, in ascending order."""
        return self._all[bisect_right(self._all, number, key=lambda claim: claim.number) :]


@dataclass
class Files(Source):
    """`landing` None: of a source that conf no longer names, only what was claimed is read. `others`: folders of claims of such sources."""

    is_remote = False
    claims_folder: Path
    shape: PayloadFormat
    max_batch_bytes: int
    landing: LandingFolder | None = None
    others: Sequence[Path] = ()
    _refused: dict[Path, str] = field(default_factory=dict)  # files and folders that cannot be read, and why
    _ahead: dict[Path, str] = field(default_factory=dict)  # files whose time lies ahead, and what is done with them
    _told: set[Path] = field(default_factory=set)

    def latest_offset(self, start: Offset) -> Offset:
        """Claim what has settled; then step over as many claims as fit a batch, one at least."""
        after = int(start.get(CLAIM, -1))
        if self.landing is not None:
            self._refused = self.claim_settled(self.landing, time.time(), after)
        batch = fitting(self._claims.after(after), self.max_batch_bytes)
        if not batch and self.landing is not None:
            self._refuse_gone(self.landing.path, was_there=after >= 0)
        return {**start, CLAIM: batch[-1].number} if batch else start

    def describe(self, offset: Offset) -> str:
        return f"claim {offset[CLAIM]}" if CLAIM in offset else ""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Claim]:
        return [claim for claim in self._claims.after(int(start.get(CLAIM, -1))) if claim.number <= end[CLAIM]]

    def read(self, partition: Claim) -> Iterator[pa.Table]:
        return events_of(self.name, partition.file, partition.position, partition.modified_ns, self.shape, notices=self._notices)

    def unsettled(self) -> Unsettled | None:
        names = growing(self.landing, time.time(), self._claims) if self.landing else []
        return Unsettled([str(file) for file in names], self.landing.settle_seconds) if self.landing and names else None

    def notices(self) -> Sequence[Notice]:
        new = [*super().notices()]
        for what, files in (("file left out", self._refused), ("file from ahead", self._ahead)):
            new += [Notice(what, {"file": str(file), "reason": why}) for file, why in files.items() if file not in self._told]
            self._told |= files.keys()
        return new

    def odd(self) -> Mapping[str, str]:
        return {str(file): why for file, why in (self._refused | self._ahead).items()}

    def _refuse_gone(self, folder: Path, *, was_there: bool) -> None:
        """SourceDownError where the folder cannot be listed, though files of it were read: an empty one would look the same."""
        try:
            os.scandir(folder).close()
        except OSError as error:
            if was_there or not isinstance(error, FileNotFoundError):
                why = "is gone, or its disk is" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror or error})"
                remedy = "bring it back, or correct the path in sources.yml"
                raise SourceDownError(f"the folder {folder} of source {self.name} {why}; {remedy}.") from None

    def claim_settled(self, landing: LandingFolder, now: float, after: int = -1) -> dict[Path, str]:
        """Claim every whole file that is not claimed yet, by this source or a former one. Return the files that cannot be read, with the
        reason. `now`: seconds since 1970, as file times are. `after`: the last number that was given, also if that claim is gone."""
        refused, whole = dict[Path, str](), []
        self._ahead = {}
        for file, stat in landing_files(landing, refused):
            if stat.st_mtime > now + landing.settle_seconds:
                at = f"{from_micros(stat.st_mtime_ns // 1000):%Y-%m-%d %H:%M:%S} UTC"
                self._ahead[file] = f"its time, {at}, lies ahead; it is read once it has stood still by the clock of this machine"
            key = _key(file, stat, landing)
            is_claimed = key in self._claims or any(other.is_of(key, file) for other in self._former)
            if is_claimed or _is_fresh(stat, landing, now):
                continue
            if why := left_out(file, stat, self.shape):
                refused[file] = why
            else:
                whole.append((stat.st_mtime_ns, file, key))
        for number, (_, file, key) in enumerate(sorted(whole), max(after, self._claims.newest) + 1 if whole else 0):
            self._claims.add(key, file, number)
        return refused

    @cached_property
    def _claims(self) -> Claims:
        return Claims(self.claims_folder)

    @cached_property
    def _former(self) -> list[Claims]:
        return [Claims(folder) for folder in self.others]


def growing(landing: LandingFolder, now: float, claims: Claims | None = None) -> list[Path]:
    """List files that changed less than `settle_seconds` ago, which may not be whole; not those that are claimed, as a link is a change."""
    files = ((file, _key(file, stat, landing)) for file, stat in landing_files(landing) if _is_fresh(stat, landing, now))
    return sorted(file for file, key in files if claims is None or key not in claims)


def _key(file: Path, stat: os.stat_result, landing: LandingFolder) -> tuple[str, str]:
    """Return the version and the position of a file."""
    return f"{stat.st_mtime_ns:020d}-{stat.st_size:012d}", str(file.relative_to(landing.path))


def _is_fresh(stat: os.stat_result, landing: LandingFolder, now: float) -> bool:
    """Say whether a file may still grow. Where its sender gave it a time that lies ahead (zip, rsync -t), the change that the kernel noted
    counts."""
    return now - (stat.st_ctime if stat.st_mtime > now else stat.st_mtime) < landing.settle_seconds


def _claims(folder: Path) -> Iterator[Claim]:
    for within, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if Path(within) != folder or FOLDER.fullmatch(name)]
        if Path(within) != folder:
            yield from (_as_claim(folder, Path(within) / name) for name in names if name != DRAFT)


def _as_claim(folder: Path, file: Path) -> Claim:
    named, *position = file.relative_to(folder).parts
    number, version, modified_ns, length = FOLDER.fullmatch(named).groups()  # type: ignore[union-attr]
    return Claim(int(number), version, "/".join(position), file, int(modified_ns), int(length))


def landing_files(landing: LandingFolder, refused: dict[Path, str] | None = None) -> Iterator[tuple[Path, os.stat_result]]:
    """List the files that match and are neither empty nor hidden, in subfolders too. `refused` gets what may not be looked at, and why."""
    refused = {} if refused is None else refused

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            refused[Path(error.filename)] = f"it may not be looked at ({(error.strerror or '').lower()}): change its owner or its mode"

    for folder, folders, names in os.walk(landing.path, onerror=refuse):
        folders[:] = [name for name in folders if not HIDDEN.match(name)]
        for name in fnmatch.filter(names, landing.files):
            try:
                if not HIDDEN.match(name) and (stat := (file := Path(folder) / name).stat()).st_size:
                    yield file, stat
            except OSError as error:
                refuse(error)


def _claim(file: Path, claim: Path) -> bool:
    """Claim a file by a hard link, or by a copy if it is on another disk or may not be linked. Return False if it is gone."""
    claim.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file.resolve(strict=True), claim)
    except FileNotFoundError:
        return False
    except OSError:
        return _copied(file, claim)
    return True


def _copied(file: Path, claim: Path) -> bool:
    draft = claim.parent / DRAFT
    try:
        shutil.copy2(file, draft)
    except FileNotFoundError:
        return False
    draft.rename(claim)
    return True
