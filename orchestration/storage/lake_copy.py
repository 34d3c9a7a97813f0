"""Copies a lake to another place, from disk to store or back: all files, logs of tables last, and the copy is compared with its source.

No file of a lake names the place where the lake is, so none is written anew. Until the copy is whole a marker lies in it, which refuses
every writer but a copy that goes on with it.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import groupby

from orchestration.errors import ConfError, TidemarkError
from orchestration.location import Location
from orchestration.storage.delta import LOG, in_log, is_table, open_table, path_of
from orchestration.storage.lake_layout import CLAIMS, OF_HOST
from orchestration.storage.lease import COPYING, LEASE, sole_writer
from orchestration.storage.seals import Seal
from orchestration.storage.state_file import StateFile
from orchestration.storage.store_lease import FILE
from orchestration.stores.disk import sync

LEFT_OUT = re.compile(
    rf"^(?!{CLAIMS}/)((up|mapped)/|dbt/(?!pending_build)|spark[.]log|(.*/)?(writer[.][^/]+|[^/]+[.](lock|draft)|[.][^/]+[.]crc)$)"
)
"""Files of processes, and what is made anew. Hadoop's checksums are of disks alone: after a store they would be of old bytes."""
CLAIM, SEALED = re.compile(rf"{CLAIMS}/[^/]+/\d+-"), re.compile(rf"/({LOG}|offsets|commits|state)/")
THREADS, PIECE_BYTES = 8, 16 * 1024 * 1024
BRONZE = "bronze.events"
Files = dict[str, tuple[Location, int, float]]


@dataclass(frozen=True)
class Copying:
    """Content of the marker: the source of the copy that is under way."""

    source: str


@dataclass(frozen=True)
class Copied:
    """Counts of a copy; `copied_files`: those that were not there before."""

    files: int
    copied_files: int
    bytes: int
    tables: int
    rows: int


def copy_lake(source: Location, target: Location, progress: Callable[[int, int], None] = lambda *_: None) -> Copied:
    """Copy a lake and compare the copy with it; `progress` hears how many bytes of all are done.

    ConfError where there is no lake, or the target holds anything but the remains of such a copy; HeldError where anybody writes either.
    """
    _refuse(source, target)
    with ExitStack() as leases:
        for folder in [source, *_leased(source)]:
            leases.enter_context(sole_writer(folder))
        lease = leases.enter_context(sole_writer(target, is_copied=True))
        _refuse(source, target)
        marker = _marker(target)
        marker.write(Copying(str(source)))
        files, before = _files(source, target), _files(target, target)
        for name in before.keys() - files.keys():
            before[name][0].delete()
        missing = [name for name, file in files.items() if not _is_there(file, before.get(name))]
        _copy(files, missing, _sealed(source, files), target, progress)
        tables, rows = _compared(source, target, files)
        lease.confirm()
        marker.remove()
    return Copied(len(files), len(missing), sum(size for _, size, _ in files.values()), tables, rows)


def _refuse(source: Location, target: Location) -> None:
    if target.path in (source.path, *source.path.parents) or source.path in target.path.parents:
        raise ConfError(f"{target} and {source} are not apart; name another place for the copy")
    if not is_table(path_of(source, BRONZE)):
        raise ConfError(f"there is no lake at {source}: it has no {BRONZE}")
    copying = _marker(target).read()
    if copying is None and (other := next(_others(target), None)):
        raise ConfError(f"{target} is not empty: there is {other}; name an empty place for the copy")
    if copying is not None and copying.source != str(source):
        raise ConfError(f"{target} holds a part of a copy of {copying.source}; go on with that one, or name another place")


def _others(target: Location) -> Iterator[Location]:
    return (file for folder in _places(target) for file, _, _ in folder.entries() if not file.name.startswith("writer."))


def _marker(target: Location) -> StateFile[Copying]:
    return StateFile(target / COPYING, Copying, "Remove all that is there, and copy again.")


def _places(lake: Location) -> list[Location]:
    return [lake] if lake.store.is_disk else [lake, lake.on_host]


def _leased(lake: Location) -> list[Location]:
    """Folders with a lease of their own: spools, quality, a generation that is built, what `up` runs."""
    files = (file for folder in _places(lake) for file, _, _ in folder.entries() if file.name in (LEASE, FILE))
    return sorted({file.parent for file in files} - set(_places(lake)))


def _files(lake: Location, target: Location) -> Files:
    """Return the files of a lake that a copy at the target has, by their path in the lake. Seals are of disks alone."""
    files = {file.below(folder): (file, size, at) for folder in _places(lake) for file, size, at in folder.entries()}
    seals = () if target.store.is_disk else (".seal",)
    return {name: file for name, file in files.items() if name != COPYING and not LEFT_OUT.search(name) and not name.endswith(seals)}


def _is_there(file: tuple[Location, int, float], before: tuple[Location, int, float] | None) -> bool:
    """Whether an earlier copy, that was cut, has it; a file that changed since is copied again."""
    return before is not None and before[1] == file[1] and before[2] > file[2]


def _copy(files: Files, missing: list[str], sealed: dict[str, str], target: Location, progress: Callable[[int, int], None]) -> None:
    """Copy data before logs, and bronze's log last: without it there is no lake."""

    def rank(name: str) -> tuple[bool, bool]:
        return f"/{LOG}/" in name, name.startswith(BRONZE.replace(".", "/"))

    done, total = 0, sum(files[name][1] for name in missing)
    with ThreadPoolExecutor(THREADS) as threads:
        for _, names in groupby(sorted(missing, key=rank), rank):
            for size in threads.map(lambda name: _copy_file(name, files[name], target, sealed.get(name)), [*names]):
                done += size
                progress(done, total)


def _copy_file(name: str, file: tuple[Location, int, float], target: Location, sealed: str | None) -> int:
    source, size, _ = file
    copied = (target.on_host if OF_HOST.match(name) else target) / name
    if CLAIM.match(name) and _is_linked(source, copied):
        return size
    digest = _write(source, size, copied)
    if sealed not in (None, digest):
        raise TidemarkError(f"{source} holds other bytes than were written.\n  Restore it: `tidemark ledger` names all such files.")
    return size


def _is_linked(claim: Location, copied: Location) -> bool:
    """Link a claim, whose file the landing folder may still have; False where only its bytes can be had."""
    copied.local.parent.mkdir(parents=True, exist_ok=True)
    copied.delete()
    with suppress(OSError):
        os.link(claim.local, copied.local)
        return True
    return False


def _write(source: Location, size: int, copied: Location) -> str:
    """Write the bytes of a file, a large one in pieces, and return their SHA-256."""
    if size <= PIECE_BYTES:
        content = source.read()
        copied.write(content)
        return hashlib.sha256(content).hexdigest()
    digest = hashlib.sha256()
    with source.open_input() as stream, copied.open_output() as output:
        while piece := stream.read(PIECE_BYTES):
            digest.update(piece)
            output.write(piece)
    if copied.store.is_disk:
        sync(copied.local)
    return digest.hexdigest()


def _sealed(source: Location, files: Files) -> dict[str, str]:
    """Return the digests that seals have of files, by path in the lake; on a disk each table and checkpoint may have a seal."""
    folders = {name[: inner.start()] for name in files if (inner := SEALED.search(name))}
    return {f"{folder}/{name}": mark.sha256 for folder in folders for name, mark in Seal(source / folder).marks.items()}


def _compared(source: Location, target: Location, files: Files) -> tuple[int, int]:
    """Count tables and their rows. TidemarkError names what is not as in the source, which may have been written meanwhile."""
    now, copied = _files(source, target), _files(target, target)
    odd = [name for name, _ in (files.items() ^ now.items()) | (_sizes(files) ^ _sizes(copied))]
    tables = sorted({name.partition(f"/{LOG}/")[0] for name in files if f"/{LOG}/" in name})
    counted = {name: _version_and_rows(source / name) for name in tables}
    odd = odd or [name for name in tables if counted[name] != _version_and_rows(target / name)]
    if odd:
        raise TidemarkError(
            f"{len(odd)} files or tables at {target} are not as those at {source}, which changed meanwhile, such as {min(odd)}.\n"
            "  Repeat the command: it copies what differs."
        )
    return len(tables), sum(rows for _, rows in counted.values())


def _version_and_rows(table: Location) -> tuple[int, int]:
    opened = open_table(table)
    log = in_log(opened, "num_records")
    return opened.version(), sum(filter(None, log["num_records"].to_pylist())) if log.num_columns else 0


def _sizes(files: Files) -> set[tuple[str, int]]:
    return {(name, size) for name, (_, size, _) in files.items()}
