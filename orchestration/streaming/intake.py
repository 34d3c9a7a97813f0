"""Intake of landing folders: only whole files are read, and each version of a file once.

A file counts as whole when it has not changed for `settle_seconds` (and, if gzip, unpacks to its end). It is then claimed by a
hard link below the lake, so that its bytes stay ours when the producer deletes it; links are read, never the landing
folder. A file that changes after it was claimed is claimed again as a new version and read again from its start: what
was there before arrives a second time, and silver drops duplicates.
"""

import fnmatch
import gzip
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from orchestration.conf.model import Source

INTAKE = "intake"
REFUSED_BY_HADOOP = re.compile(r"[:%+\\*?\[\]{}^\x00-\x1f\ud800-\udfff]")


@dataclass
class Look:
    """What one look at a landing folder found."""

    claimed: int = 0
    claimed_bytes: int = 0
    unsettled: list[Path] = field(default_factory=list)
    damaged: list[Path] = field(default_factory=list)


def claims_folder(lake: Path, source: str) -> Path:
    """Where the links of a source are: `<version>/<path below the landing folder>`."""
    return lake / INTAKE / source


def claim_settled(source: Source, lake: Path, now: float, former: Sequence[str] = ()) -> Look:
    """Claim every whole file that is not claimed yet, by this source or by one of the `former` ones: a source may get another name.

    `now` is in seconds since 1970, as file times are.
    """
    look = Look()
    claims = claims_folder(lake, source.name)
    claims.mkdir(parents=True, exist_ok=True)
    for file in sorted(_files(source)):
        try:
            stat = file.stat()
        except FileNotFoundError:
            continue
        place = Path(f"{stat.st_mtime_ns:020d}-{stat.st_size:012d}") / _safe(str(file.relative_to(source.path)))
        claim = claims / place
        if stat.st_size == 0 or os.path.lexists(claim) or any(_is(file, claims_folder(lake, name) / place) for name in former):
            continue
        if now - stat.st_mtime < source.settle_seconds:
            look.unsettled.append(file)
        elif file.suffix == ".gz" and not _unpacks(file):
            look.damaged.append(file)
        else:
            _link(file, claim)
            look.claimed += 1
            look.claimed_bytes += stat.st_size
    return look


def _safe(name: str) -> str:
    """Hadoop cannot list some names that file systems allow, a colon among them."""
    return REFUSED_BY_HADOOP.sub(lambda found: quote(found[0], safe="", errors="surrogateescape"), name)


def _files(source: Source) -> Iterator[Path]:
    """Files that match, below the folder too; hidden ones (a leading dot or underscore) are somebody's work in progress."""
    for folder, folders, names in os.walk(source.path):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in fnmatch.filter(names, source.files):
            if not name.startswith((".", "_")):
                yield Path(folder) / name


def _is(file: Path, claim: Path) -> bool:
    return claim.exists() and claim.samefile(file)


def _unpacks(file: Path) -> bool:
    """A cut gzip file would end the query."""
    try:
        with gzip.open(file) as stream:
            while stream.read(1 << 20):
                pass
    except (EOFError, OSError, zlib.error):
        return False
    return True


def _link(file: Path, claim: Path) -> None:
    """A hard link; a symbolic one where the landing folder is on another disk or not ours to link."""
    claim.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, claim)
    except FileExistsError:
        return
    except OSError:
        claim.symlink_to(file.resolve())
