"""Intake of landing folders: only whole files are read, and each version of a file once.

A file counts as whole when it has not changed for `settle_seconds` (and, if gzip, unpacks to its end). It is then claimed by a
hard link below the lake (on another disk by a copy), so that its bytes stay ours when the producer deletes it; claims are read, never
the landing folder. A file that changes after it was claimed is claimed again as a new version and read again from its start: what
was there before arrives a second time, and silver drops duplicates.
"""

import fnmatch
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from bronze.events import LINE_FEED
from orchestration.conf.model import Source
from orchestration.connectors.sources.file_reader import opened
from orchestration.location import Location
from orchestration.storage.retired_sources import claims_folder

LONGEST_LINE = 1 << 30
"""In bytes. Arrow, Parquet and Spark hold less than two of these in one value, and no machine of ours in one row."""
REFUSED_BY_HADOOP = re.compile(r"[:%+\\*?\[\]{}^\x00-\x1f\ud800-\udfff]")


@dataclass
class ScanResult:
    """What one look at a landing folder found."""

    claimed: int = 0
    claimed_bytes: int = 0
    still_growing: list[Path] = field(default_factory=list)
    refused: dict[Path, str] = field(default_factory=dict)
    """With the reason."""


def claim_settled(source: Source, lake: Location, now: float, former: Sequence[str] = ()) -> ScanResult:
    """Claim every whole file that is not claimed yet, by this source or by one of the `former` ones: a source may get another name.

    `now` is in seconds since 1970, as file times are.
    """
    scan = ScanResult()
    claims = claims_folder(lake, source.name).local
    claims.mkdir(parents=True, exist_ok=True)
    for file in sorted(_files(source)):
        try:
            stat = file.stat()
        except FileNotFoundError:
            continue
        place = Path(f"{stat.st_mtime_ns:020d}-{stat.st_size:012d}") / _safe(str(file.relative_to(source.path)))
        claim = claims / place
        earlier = (claims_folder(lake, name).local / place for name in former)
        if stat.st_size == 0 or os.path.lexists(claim) or any(other.exists() and other.samefile(file) for other in earlier):
            continue
        if now - stat.st_mtime < source.settle_seconds:
            scan.still_growing.append(file)
        elif why := _trouble(file, stat.st_size, stat.st_ctime_ns):
            scan.refused[file] = why
        elif _claim(file, claim):
            scan.claimed += 1
            scan.claimed_bytes += stat.st_size
    return scan


def _safe(name: str) -> str:
    """Hadoop cannot list some names that file systems allow, a colon among them."""
    return REFUSED_BY_HADOOP.sub(lambda character: quote(character[0], safe="", errors="surrogateescape"), name)


def _files(source: Source) -> Iterator[Path]:
    """Files that match, below the folder too; hidden ones (a leading dot or underscore) are somebody's work in progress."""
    for folder, folders, names in os.walk(source.path):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in fnmatch.filter(names, source.files):
            if not name.startswith((".", "_")):
                yield Path(folder) / name


@lru_cache(maxsize=1000)
def _trouble(file: Path, size: int, changed_ns: int) -> str | None:
    """Why a file in this state would end the query, if it would."""
    is_packed = file.suffix == ".gz"
    if not is_packed and size <= LONGEST_LINE:
        return None
    try:
        with opened(file) as stream:
            return f"it has a line of more than {LONGEST_LINE} bytes" if _has_long_line(stream) else None
    except (EOFError, OSError, zlib.error):
        return "it is not a whole gzip file" if is_packed else "it cannot be read"


def _has_long_line(stream: BinaryIO) -> bool:
    length = 0
    while block := stream.read(1 << 20):
        first = block.find(LINE_FEED)
        if length + (len(block) if first < 0 else first) > LONGEST_LINE:
            return True
        length = length + len(block) if first < 0 else len(block) - 1 - block.rfind(LINE_FEED)
    return False


def _claim(file: Path, claim: Path) -> bool:
    """By a hard link; by a copy where the landing folder is on another disk or not ours to link. False where the file is gone."""
    claim.parent.mkdir(parents=True, exist_ok=True)
    try:
        if file.stat().st_mtime_ns < 0:
            return _copied(file, claim)
        os.link(file.resolve(strict=True), claim)
    except FileExistsError:
        pass
    except FileNotFoundError:
        return False
    except OSError:
        return _copied(file, claim)
    return True


def _copied(file: Path, claim: Path) -> bool:
    draft = claim.parent / ".draft"  # Spark reads no hidden file
    try:
        shutil.copy2(file, draft)
    except FileNotFoundError:
        return False
    if draft.stat().st_mtime_ns < 0:  # Spark passes over what is from before 1970, in silence (measured)
        os.utime(draft, (0, 0))
    draft.rename(claim)
    return True
