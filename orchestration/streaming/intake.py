"""Intake of landing folders: only whole files are handed to Spark, and each version of a file once.

A file counts as whole when it has not changed for `settle_seconds` (and, if gzip, unpacks to its end). It is then claimed by a
hard link below the lake, so that its bytes stay ours when the producer deletes it; Spark reads the links, never the landing
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
from urllib.parse import quote, unquote

from pyspark.sql import Column
from pyspark.sql import functions as F

from orchestration.conf.model import Source

VERSION_WIDTH = 33
"""Characters of `<mtime in ns, 20 digits>-<size, 12 digits>`, the folder of a version."""
FAR = 2**31 - 1
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
    return lake / "intake" / source


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


def position_of(file: Column, claims: Path) -> Column:
    """Path below the landing folder, from the URI under which Spark read the claim; `claims` is the folder of all claims of the source."""
    folder = f"file:{claims.as_uri().removeprefix('file://')}/"
    # Bytes, since characters are counted from the start of each path, for each line (measured: two fifths of the CPU of bronze).
    after_folder = F.substring(file.cast("binary"), len(folder) + VERSION_WIDTH + 2, FAR).cast("string")
    marker = f"/{claims.parent.name}/{claims.name}/"
    after_marker = F.substring(file, F.locate(marker, file) + len(marker) + VERSION_WIDTH + 1, F.length(file))
    # Hadoop writes some characters of URIs in another way.
    below = F.when(F.startswith(file, F.lit(folder)), after_folder).otherwise(after_marker)
    return F.when(F.contains(below, F.lit("%")), F.try_url_decode(F.try_url_decode(below))).otherwise(below)


def first_line(file: str) -> str | None:
    """The first line of a claim, given as the URI under which Spark read it; None for a file that is empty or starts with no text."""
    path = Path(unquote(file.removeprefix("file:").replace("///", "/")))
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        line = stream.readline(1 << 20).removesuffix(b"\n")
    # Without the byte order mark, which Spark leaves out of a file's first line too.
    return line.decode("utf-8-sig", errors="replace") or None


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
    """A cut gzip file would end Spark's query, or be cut in silence."""
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
