"""The part of `tidemark doctor` that looks at disks, and at files of a lake that `ledger`, `verify` and `status` would refuse.

It reads the ends of data files and no rows: `tidemark ledger` and `verify` say whether their bytes are those that were written.
"""

import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from orchestration.audit.verify.anomalies import lost_models
from orchestration.conf.model import Conf
from orchestration.engine.java import cache
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.service.finding import Finding
from orchestration.storage.bindings import refuse_unbound
from orchestration.storage.damaged_logs import first_damage, footer_damage
from orchestration.storage.delta import LOG, in_log, is_table, open_table
from orchestration.storage.disk import Room, room
from orchestration.storage.lease import holder_of, is_held
from orchestration.storage.sealing import refuse_damage, refuse_older_tables, sealed_tables
from orchestration.storage.seals import Seal
from orchestration.storage.state_file import DAMAGED, FOREIGN, odd_files
from orchestration.storage.tables import LakeStore
from orchestration.supervisor.status import flows

SCRATCH_OF_JAVA = Path("/tmp")
VERDICTS = {Room.FULL: "bad", Room.LITTLE: "warning", Room.ENOUGH: "good"}
RIGHTS = "change the owner, the mode, or how it is mounted"
MOST = 3
"""Files of one kind that a finding lists."""


def of_disks(conf: Conf) -> Iterator[Finding]:
    """Look at each disk that is written: its room, and the right to write to it."""
    folders = {"lake": conf.lake.local, "scratch": Path(tempfile.gettempdir()), "scratch of Java": SCRATCH_OF_JAVA, "cache": cache()}
    folders |= {f"sink {name}": Path(sink.files.path) for name, sink in conf.sinks.items() if sink.files}
    by_disk = defaultdict[int, dict[str, Path]](dict)
    for name, folder in folders.items():
        there = next(parent for parent in (folder, *folder.parents) if parent.exists())
        by_disk[there.stat().st_dev][name] = there
        if reason := _unwritable(there):
            yield Finding(f"rights: {name}", "bad", f"{there} cannot be written: {reason}", RIGHTS)
    for folders in by_disk.values():
        left, free = room(next(iter(folders.values())), conf.maintenance.least_free_bytes)
        verdict = VERDICTS[left]
        command = "" if verdict == "good" else f"{conf.command} maintain" if "lake" in folders else "make room"
        shown = ", ".join(f"{name} ({folder})" for name, folder in folders.items())
        yield Finding("disk", verdict, f"{free / 1024**3:.1f} GiB are free for {shown}", command)


def of_lake(conf: Conf) -> Iterator[Finding]:
    if not conf.lake.is_dir():
        yield Finding("lake", "good", f"{conf.lake} is made by the first run")
    if is_held(conf.lake):
        yield Finding("lease", "good", f"written by {holder_of(conf.lake) or 'another process'}")
    locked = [(folder, reason) for folder in _folders(conf.lake.local) if (reason := _unwritable(folder))]
    if locked:
        text = f"{len(locked)} folders cannot be written, such as {locked[0][0]}: {locked[0][1]}"
        yield Finding("rights of the lake", "bad", text, RIGHTS)


def of_logs(conf: Conf) -> Iterator[Finding]:
    store = LakeStore(conf)
    damaged = [f"the log of {name} is damaged: {damage}" for name, path in _tables(store).items() if (damage := first_damage(path / LOG))]
    if damaged:
        yield Finding("tables and checkpoints", "bad", _listed(damaged), f"{conf.command} replay")
        return
    names = [name for name, *_ in flows(conf, store.generation)]
    try:
        refuse_damage(store, names)
        refuse_older_tables(store)
        refuse_unbound(store, names)
    except TidemarkError as error:
        yield Finding("tables and checkpoints", "bad", str(error), f"{conf.command} replay")
    else:
        yield Finding("tables and checkpoints", "good", "logs and checkpoints are as they were written")


def of_seals(conf: Conf) -> Iterator[Finding]:
    """Look for files that nothing can be compared with: of a seal that is gone, or of its damaged lines."""
    store = LakeStore(conf)
    sealed = {name: location for name, location in sealed_tables(store).items() if location.store.is_disk and is_table(location)}
    checkpoints = {f"checkpoint of {name}": store.checkpoint(name) for name, *_ in flows(conf, store.generation)}
    sealed |= {name: location for name, location in checkpoints.items() if (location / "commits").is_dir() and location.store.is_disk}
    seals = {name: Seal(location) for name, location in sealed.items()}
    gone = [name for name, seal in seals.items() if not seal.marks and not seal.lost]
    cut = [f"{name} ({seal.lost} lines of {seal.file})" for name, seal in seals.items() if seal.lost]
    command = f"{conf.command} verify"
    if gone:
        yield Finding("seals", "warning", f"gone, so that damage before the next run is not seen, are those of {_listed(gone)}", command)
    if cut:
        yield Finding("seals", "warning", f"damaged are those of {_listed(cut)}", command)
    if not gone and not cut:
        yield Finding("seals", "good", "each table and checkpoint has its seal")


def of_state_files(conf: Conf) -> Iterator[Finding]:
    files = [*odd_files(conf.lake)]
    if damaged := [f"{file} {what}" for file, what in files if what == DAMAGED]:
        yield Finding("state files", "bad", _listed(damaged), "restore it; the command that reads it says what else can be done")
    if foreign := [f"{file} {what}" for file, what in files if what == FOREIGN]:
        yield Finding("other files", "warning", _listed(foreign), "move it out of the lake")
    if not damaged:
        yield Finding("state files", "good", "as they were written")


def of_data_files(conf: Conf) -> Iterator[Finding]:
    damaged = []
    for name, folder in _tables(LakeStore(conf)).items():
        log = in_log(open_table(folder), "path", "size_bytes")
        files = [(folder / unquote(path), size) for path, size in zip(*(column.to_pylist() for column in log.columns), strict=True)]
        damaged += [f"{name}: {file} {damage}" for file, size in files if (damage := footer_damage(file, size))]
    if damaged:
        yield Finding("data files", "bad", _listed(damaged), f"{conf.command} verify")
    else:
        yield Finding("data files", "good", "each has its length, and the end of a Parquet file")


def of_models(conf: Conf) -> Iterator[Finding]:
    """Look at the files of the models by which groups are judged."""
    lost = [f"{of_group.row}: {of_group.in_table}" for outcome in lost_models(conf) for of_group in outcome.first]
    if lost:
        yield Finding("models", "bad", _listed(lost), "restore the file: rows were judged by it")
    elif any(group.anomalies for group in conf.groups.values()):
        yield Finding("models", "good", "the files of those in force are as they were written")


def _tables(store: LakeStore) -> dict[str, Location]:
    """Return the folder of each table that is there, by its SQL name."""
    return {name: location for name, location in sealed_tables(store).items() if (location / LOG).is_dir()}


def _folders(lake: Path) -> Iterator[Path]:
    """Yield the folders of a lake in which files are made; each partition of a table is not looked at."""
    for pattern in ("", "*", "*/*", f"*/*/{LOG}"):
        yield from (folder for folder in lake.glob(pattern) if folder.is_dir()) if pattern else (lake,) if lake.is_dir() else ()


def _unwritable(folder: Path) -> str | None:
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return "its disk is mounted read-only"
    return None if os.access(folder, os.R_OK | os.W_OK | os.X_OK) else "permission denied"


def _listed(findings: list[str]) -> str:
    more = f"; and {len(findings) - MOST} more" if len(findings) > MOST else ""
    return "; ".join(findings[:MOST]) + more
