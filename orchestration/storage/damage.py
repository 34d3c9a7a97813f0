"""What is damaged: files that are not as their seal says, and are of use to somebody."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from urllib.parse import unquote

from orchestration.location import Location
from orchestration.storage.delta import is_table, open_table
from orchestration.storage.delta_log import LOG, is_draft
from orchestration.storage.seals import Damage, Seal

KEPT_BATCHES = 100
"""As many batches Spark can go back (spark.sql.streaming.minBatchesToRetain); files of earlier ones may go."""


def damaged_checkpoint(checkpoint: Location) -> list[Damage]:
    """Sealed files that are not as they were, or are gone although Spark may need them."""
    seal = Seal(checkpoint)
    of_no_use = {*_purged(seal), *_compacted(seal)}
    return [damage for damage in seal.damages(seal.marks) if damage.file.exists() or name_of(seal, damage.file) not in of_no_use]


def damaged_log(table: Location) -> list[Damage]:
    """Of the log of a table. A log entry may go when a checkpoint of Delta holds all that was before it."""
    seal = Seal(table)
    checkpoints = [number(file) for file in (seal.folder / LOG).glob("*.checkpoint*.parquet")]
    newest = max(checkpoints, default=-1)
    log = (name for name in seal.marks if name.startswith(LOG) and not is_draft(Path(name)))
    sealed = [damage for damage in seal.damages(log) if damage.file.exists() or number(damage.file) >= newest]
    return [*sealed, *_misleading(seal.folder / LOG / "_last_checkpoint", checkpoints)]


def damaged_files(table: Location, since: date | None = None) -> list[Damage]:
    """Data files of a table whose log is whole; of those that are gone, the ones that its newest version needs.

    `since`: only files that were written on that day (UTC) or later, whoever wrote them.
    """
    if not is_table(table):
        return []
    seal, needed = Seal(table), {unquote(path) for path in open_table(table).get_add_actions().column("path").to_pylist()}
    files = (name for name in seal.marks if not name.startswith(LOG) and (since is None or _is_written_since(seal.folder / name, since)))
    return [damage for damage in seal.damages(files) if damage.file.exists() or name_of(seal, damage.file) in needed]


def _is_written_since(file: Path, since: date) -> bool:
    """Also when it is gone."""
    return not file.exists() or datetime.fromtimestamp(file.stat().st_mtime, UTC).date() >= since


def _misleading(hint: Path, checkpoints: Sequence[int]) -> Iterator[Damage]:
    """Delta does without this file, but not with one that leads nowhere."""
    if hint.exists():
        try:
            is_right = json.loads(hint.read_text())["version"] in checkpoints
        except (ValueError, LookupError, TypeError):
            is_right = False
        if not is_right:
            yield Damage(hint, "leads to no checkpoint: delete it")


def _purged(seal: Seal) -> Iterator[str]:
    """Entries of logs and state of batches that Spark cannot go back to. SST files have numbers of their own: Spark tells if one lacks."""
    newest = max(numbers(seal.folder / "offsets"), default=-1)
    for name in seal.marks:
        batch = 0 if name.endswith(".sst") else number(Path(name))
        if 0 <= batch <= newest - KEPT_BATCHES and not name.startswith("sources/"):
            yield name


def _compacted(seal: Seal) -> Iterator[str]:
    """Entries of a file source's log that a later `<number>.compact` holds as well."""
    for folder in {Path(name).parent for name in seal.marks if name.startswith("sources/")}:
        newest = max((number(file) for file in (seal.folder / folder).glob("*.compact")), default=-1)
        yield from (name for name in seal.marks if Path(name).parent == folder and number(Path(name)) < newest)


def numbers(folder: Path) -> Iterator[int]:
    """Entries of one of a checkpoint's logs."""
    return (int(file.name) for file in folder.glob("*") if file.name.isdecimal())


def number(file: Path) -> int:
    """That with which the name begins."""
    found = re.match(r"\d+", file.name)
    return int(found[0]) if found else -1


def name_of(seal: Seal, file: Path) -> str:
    """Under which a seal holds the file."""
    return file.relative_to(seal.folder).as_posix()
