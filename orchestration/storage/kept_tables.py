"""Open tables. The holder of a lake in a store keeps some open, as each opening takes five requests and more.

Nobody else commits to those, so each stays the newest version until this process commits. `commit` refuses to write them without the lease:
whoever lets another process write one of them learns it at once. All other tables are opened each time.
"""

import re
from collections import defaultdict
from threading import RLock
from weakref import WeakKeyDictionary

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from orchestration.location import Location
from orchestration.storage.damaged_logs import NoTableError, damaged_log_error
from orchestration.storage.held_leases import HeldLease, lease_above

LOG = "_delta_log"
"""The folder of the log, in the folder of its table."""
NONE_THERE = "{} is no table: no commit made one there."
OF_HOLDER = re.compile(
    r"bronze/events|silver/(readings|quarantine|late|duplicates|references)|gold/\w+"
    r"|ops/(clock|confs|dead_letters|dead_rows|gaps|generations|ledger|maintenance|notifications|snapshots|ticks)"
)
"""Tables that only the holder of the lease writes, by folder and name, in each generation."""


class _Table(DeltaTable):
    """A table at one version. It looks for the transactions of an application once, as each look reads the log."""

    def transaction_version(self, app_id: str) -> int | None:
        versions = transactions(self)
        if app_id not in versions:
            versions[app_id] = super().transaction_version(app_id)
        return versions[app_id]

    def update_incremental(self) -> None:
        super().update_incremental()
        transactions(self).clear()


_KEPT: WeakKeyDictionary[HeldLease, dict[Location, DeltaTable | None]] = WeakKeyDictionary()
"""Newest versions, by lease and table; None where there is no table."""
_LOCKS: defaultdict[Location, RLock] = defaultdict(RLock)


def is_of_holder(path: Location) -> bool:
    """Whether it is a table in a store that only the holder of the lease writes."""
    return not path.store.is_disk and OF_HOLDER.fullmatch("/".join(path.path.parts[-2:])) is not None


def is_kept(path: Location) -> bool:
    """Whether this process keeps the table open, so that asking for it costs nothing."""
    return _kept_beside(path) is not None


def writing(path: Location) -> RLock:
    """Return the lock of a table in this process: of who commits, and of who opens what is kept."""
    return _LOCKS[path]


def opened(path: Location, version: int | None) -> DeltaTable:
    """Return a table at a version, None for the newest; NoTableError where there is none, DamagedLogError names what cannot be read."""
    if (tables := _kept_beside(path)) is None:
        return asked(path, version)
    with writing(path):  # or what another thread commits meanwhile would be hidden
        if path not in tables:
            tables[path] = _asked_if_there(path)
        newest = tables[path]
    if newest is None:
        raise NoTableError(NONE_THERE.format(path))
    return newest if version in {None, newest.version()} else asked(path, version)


def _asked_if_there(path: Location) -> DeltaTable | None:
    try:
        return asked(path)
    except NoTableError:
        return None


def keep(path: Location, newest: DeltaTable) -> DeltaTable:
    """Keep what this process opened or made; only under the lock of `writing`."""
    if (tables := _kept_beside(path)) is not None:
        tables[path] = newest
    return newest


def asked(path: Location, version: int | None = None) -> DeltaTable:
    """Ask the store, whatever is kept."""
    try:
        return _Table(str(path), version=version, storage_options=path.store.delta_options)
    except TableNotFoundError as error:
        raise NoTableError(NONE_THERE.format(path)) from error
    except DeltaError as error:
        raise damaged_log_error(path / LOG, error) from error


def transactions(table: DeltaTable) -> dict[str, int | None]:
    """Return the newest transactions of the applications that a table was asked for."""
    versions: dict[str, int | None] = vars(table).setdefault("_transactions", {})
    return versions


def forget(folder: Location) -> None:
    """Open tables in a folder anew when they are asked for next: they changed by more than commits of this process, or are gone."""
    for tables in [*_KEPT.values()]:
        for path in [path for path in [*tables] if folder.path in {path.path, *path.path.parents}]:
            tables.pop(path, None)


def _kept_beside(path: Location) -> dict[Location, DeltaTable | None] | None:
    """Return the tables that are kept with this one; None where it is not to be kept, or this process holds no lease."""
    lease = lease_above(path) if is_of_holder(path) else None
    return None if lease is None else _KEPT.setdefault(lease, {})
