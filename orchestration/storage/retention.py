"""Find what is still needed of a table, by its log and the checkpoints that read it: without Spark, without reading a row.

A file is needed by the newest version; by every version that a retained snapshot pins; and by a stream that has yet to read the commit
that brought it. Tables only ever grow, and compaction puts the rows of some files into another: so a file is in all versions from the one
that added it up to the one that removed it.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from orchestration.location import Location
from orchestration.storage.checkpoints import last_batch, offsets
from orchestration.storage.damaged_logs import DamagedLogError
from orchestration.storage.delta import LOG, OpenTable, actions, added, committed_at, files_of, in_log, log_of, open_table, version_of
from orchestration.storage.generations import FOLDER

SILVER = "silver.readings"
"""The flow that reads its table from the first version on, commit by commit."""
ORPHANED_SECONDS = 86_400.0
"""A file that no commit names is being written, or its writer was killed; no batch takes a day."""
DATA_FILE = re.compile(rf"^(?!{LOG}/)(.*/)?[^./][^/]*\.parquet")
"""A data file of a table, or delta-rs's draft of one: `*.parquet#1`."""
LOG_ENTRY = re.compile(r"\.?(\d{20})\.")


@dataclass(frozen=True)
class RetentionNeeds:
    """`pinned`: versions that snapshots pin, ascending. `unread_since`: the oldest version that a stream has yet to read in full, None
    where no stream reads the table. `before`: what was superseded after that instant is needed in any case. `entry`: a version whose entry
    in the log says more than which files there are.
    """

    pinned: Sequence[int]
    unread_since: int | None
    before: datetime
    entry: int | None = None


@dataclass(frozen=True)
class Log:
    """Versions by file, as the log names it. `added`: which, and whether it brought rows; `removed`: which, and when."""

    added: dict[str, tuple[int, bool]]
    removed: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Position:
    """Next version of a table that a stream reads. `is_state`: the stream has begun with all that the version holds."""

    version: int
    is_state: bool = False


def positions(lake: Location, table: OpenTable) -> list[Position]:
    """Find the positions of every checkpoint in the lake, of whatever generation, that reads the table."""
    table_id = str(table.metadata().id)
    checkpoints = [path for root in (lake, *lake.glob(f"{FOLDER}/*")) for path in (root / "checkpoints").glob("*")]
    return [position for checkpoint in checkpoints for position in _positions(checkpoint, table_id)]


def removable_files(table: Location, needs: RetentionNeeds, now: datetime) -> list[Location]:
    stored = {file.below(table): (file, modified) for file, _, modified in table.entries() if DATA_FILE.search(file.below(table))}
    log = _log(table)  # after the listing, so that whatever was committed meanwhile is known
    newest = {*files_of(open_table(table))}
    return [
        file
        for name, (file, modified) in stored.items()
        if name not in newest and not _is_needed(name, log, needs, is_young=now.timestamp() - modified < ORPHANED_SECONDS)
    ]


def remove(file: Location) -> None:
    """Remove a file with the checksum that Hadoop keeps beside it."""
    file.delete()
    if file.store.is_disk:
        (file.parent / f".{file.name}.crc").delete()


def removable_log(table: Location, needs: RetentionNeeds) -> list[Location]:
    """Entries of the log before the newest checkpoint from which every needed version can be read; in ascending order."""
    log = table / LOG
    entries = sorted(_entries(log))
    young = [version for version, file in entries if file.suffix == ".json" and committed_at(table, version) >= needs.before]
    # A stream that has read nothing of a version yet asks for the one before it, and a reader may have begun with it.
    following = [*young, *([] if needs.unread_since is None else [needs.unread_since])]
    hint = log / "_last_checkpoint"  # where Spark begins to look
    hinted = json.loads(hint.read())["version"] if hint.exists() else -1
    floor = min([hinted, *needs.pinned, *([] if needs.entry is None else [needs.entry]), *(version - 1 for version in following)])
    checkpoints = (version for version, file in entries if file.name == f"{version:020d}.checkpoint.parquet" and version <= floor)
    for base in sorted(checkpoints, reverse=True):
        if _is_whole(log, base):
            return [file for version, file in entries if version < base]
    return []


def _positions(checkpoint: Location, table_id: str) -> list[Position]:
    """Read the positions of a checkpoint; of a damaged one, which is of an earlier generation, the first, so that all is kept."""
    try:
        return [*_known_positions(checkpoint, table_id)]
    except (ValueError, LookupError, TypeError):
        return [Position(0)]


def _known_positions(checkpoint: Location, table_id: str) -> Iterator[Position]:
    """Read the positions of a whole checkpoint; of a gold stream those of its amendments, if they have seen less than the stream."""
    batch, amended = last_batch(checkpoint).last_batch, checkpoint / "amendments.json"
    if batch is not None and amended.exists():
        batch = min(batch, int(json.loads(amended.read())["after"]["gold_batch"]))
    # When a query starts, Spark asks its source for the last batch again, from where the one before it ended.
    last_begun = max((batch or 0) - 1, 0)
    is_known = (checkpoint / "offsets" / str(last_begun)).exists()
    if batch is not None and not is_known:
        yield Position(0)
    for offset in offsets(checkpoint, last_begun).read.values() if is_known else ():
        if offset.get("reservoirId") == table_id:
            yield _position(checkpoint, offset, is_done=batch is not None)


def _position(checkpoint: Location, offset: Mapping[str, Any], *, is_done: bool) -> Position:
    """A first batch that is begun and not done: silver reads from the first version on, gold what the version before the next one holds."""
    version, is_state = int(offset["reservoirVersion"]), bool(offset["isStartingVersion"])
    if is_done or is_state:
        return Position(version, is_state)
    return Position(0) if checkpoint.name.partition("@")[0] == SILVER else Position(version - 1, is_state=True)


def _is_needed(name: str, log: Log, needs: RetentionNeeds, *, is_young: bool) -> bool:
    added, brought_rows = log.added.get(name, (-1, False))
    if name not in log.removed:
        return name in log.added or is_young
    removed, at = log.removed[name]
    before = bisect_left(needs.pinned, removed)
    is_pinned = before > 0 and needs.pinned[before - 1] >= added
    is_unread = brought_rows and needs.unread_since is not None and added >= needs.unread_since
    return is_pinned or is_unread or at >= needs.before.timestamp() * 1000


def _log(table: Location) -> Log:
    log = Log({}, {})
    for entry in (table / LOG).glob("*.json"):
        version = int(entry.stem)
        for action in actions(entry, "add", "remove"):
            if "add" in action:
                log.added[unquote(action["add"]["path"])] = version, bool(action["add"]["dataChange"])
            else:
                log.removed[unquote(action["remove"]["path"])] = version, int(action["remove"]["deletionTimestamp"])
    return log


def is_whole(table: Location, version: int) -> bool:
    """Whether every commit of the table from a version on is in its log, and every file that one brought is on the disk."""
    if version <= version_of(table) and not log_of(table, version).exists():
        return False
    brought = (name for name, (added, brought_rows) in _log(table).added.items() if brought_rows and added >= version)
    return all((table / name).exists() for name in brought)


def first_version(table: Location, is_reached: Callable[[Mapping[str, Any]], bool]) -> int:
    """The first version that brought a file whose greatest values, as the log tells them, fulfil a condition; else the first there is.

    0 where that was before the entries that are still there: then nobody can read from it on.
    """
    versions = sorted(int(file.stem) for file in (table / LOG).glob("*.json") if file.stem.isdecimal())
    if versions[0] and any(map(is_reached, _greatest(table, versions[0]))):
        return 0
    for version in versions:
        files = [json.loads(add["stats"]) for add in added(table, version) if add["dataChange"]]
        if any(file["numRecords"] and is_reached(file["maxValues"]) for file in files):
            return version
    return versions[0]


def _greatest(table: Location, version: int) -> Iterator[dict[str, Any]]:
    """Read the greatest values of each file of a version, instants as text."""
    log = in_log(open_table(table, version))
    # By Arrow: Python has no instant before the year 1.
    columns = {
        name.removeprefix("max."): log[name].cast(pa.string()) if pa.types.is_timestamp(log[name].type) else log[name]
        for name in log.column_names
        if name.startswith("max.")
    }
    for file in pa.table(columns).to_pylist():
        if greatest := {name: value for name, value in file.items() if value is not None}:
            yield greatest


def _entries(log: Location) -> Iterator[tuple[int, Location]]:
    return ((int(name[1]), file) for file in log.glob("*") if (name := LOG_ENTRY.match(file.name)))


def _is_whole(log: Location, base: int) -> bool:
    """Whether a checkpoint tells what the entries before it tell: one that was cut or exchanged must not outlive them."""
    own = [log / f"{base:020d}.checkpoint.parquet", log / f"{base:020d}.json"]
    before = [file for version, file in _entries(log) if version <= base and file != own[0]]
    apps = {action["txn"]["appId"] for file in before if file.suffix == ".json" for action in actions(file, "txn")}
    try:
        return own[1].exists() and _content(own, base, apps) == _content(before, base, apps)
    except (DamagedLogError, ValueError, OSError):
        return False


def _content(entries: Iterable[Location], version: int, apps: Iterable[str]) -> tuple[set[str], dict[str, int | None]]:
    """Files of a version and what each application wrote last, according to these entries alone."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / LOG
        log.mkdir()
        for entry in entries:
            (log / entry.name).write_bytes(entry.read())
        table = open_table(Location(Path(folder)), version)
        return set(in_log(table, "path")["path"].to_pylist()), {app: table.transaction_version(app) for app in apps}
