"""Open tables, of which the holder of a lake in a store keeps some: each opening takes five requests and more."""

import re
from errno import EIO
from typing import Any, cast
from weakref import ref

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from orchestration.location import Location
from orchestration.storage.damaged_logs import NoTableError, damaged_log_error
from orchestration.storage.kept import kept_beside, writing

LOG = "_delta_log"
"""The folder of the log, in the folder of its table."""
NONE_THERE = "{} is no table: no commit made one there."


OLDER = "@"
"""Below a table: the older version that was asked for last, such as the one that a query has read."""


class _Table(DeltaTable):
    """A table at one version. It looks for the transactions of an application once, as each look reads the log.

    `before`: the version before, as long as somebody reads it, and what delta-rs has of it.
    """

    before: "tuple[ref[DeltaTable], Any] | None" = None

    def transaction_version(self, app_id: str) -> int | None:
        versions = transactions(self)
        if app_id not in versions:
            versions[app_id] = super().transaction_version(app_id)
        return versions[app_id]

    def update_incremental(self) -> None:
        super().update_incremental()
        transactions(self).clear()


def is_kept(path: Location) -> bool:
    """Whether this process keeps the table open, so that asking for it costs nothing."""
    return kept_beside(path) is not None


def opened(path: Location, version: int | None) -> DeltaTable:
    """Return a table at a version, None for the newest; NoTableError where there is none, DamagedLogError names what cannot be read."""
    if (tables := kept_beside(path)) is None:
        return asked(path, version)
    with writing(path):  # or what another thread commits meanwhile would be hidden
        if path not in tables:
            tables[path] = _asked_if_there(path)
        newest, older = tables[path], tables.get(path / OLDER)
        if newest is None:
            raise NoTableError(NONE_THERE.format(path))
        if version in {None, newest.version()}:
            return cast(DeltaTable, newest)
        if older is None or older.version() != version:
            tables[path / OLDER] = older = asked(path, version)
        return cast(DeltaTable, older)


def _asked_if_there(path: Location) -> DeltaTable | None:
    try:
        return asked(path)
    except NoTableError:
        return None


def keep(path: Location, newest: DeltaTable) -> DeltaTable:
    """Keep what this process opened or made; only under the lock of `writing`."""
    if (tables := kept_beside(path)) is not None:
        tables[path] = newest
    return newest


def asked(path: Location, version: int | None = None) -> _Table:
    """Ask the store, whatever is kept."""
    try:
        return _Table(str(path), version=version, storage_options=path.store.delta_options)
    except TableNotFoundError as error:
        raise NoTableError(NONE_THERE.format(path)) from error
    except DeltaError as error:
        raise damaged_log_error(path / LOG, error) from error
    except OSError as error:
        if path.store.is_disk:
            raise
        cause = re.sub(r"\x1b\[\d+m", "", str(error)).strip().rpartition("\u21b3")[2].strip(" .")  # the last of a chain of causes
        raise OSError(EIO, f"the store cannot be asked: {cause}", str(path)) from error


def following(path: Location, table: DeltaTable) -> DeltaTable:
    """Return the version after a kept one. What others may read is not changed; what nobody reads any more is brought up to date."""
    (kept_beside(path) or {}).pop(path, None)
    reader, handle = vars(table).pop("before", (None, None))
    if reader is None or reader() is not None:
        newest = asked(path)
    else:
        newest = _Table.__new__(_Table)
        newest._storage_options, newest._table = path.store.delta_options, handle
        newest.update_incremental()
    newest.before = ref(table), table._table
    return keep(path, newest)


def transactions(table: DeltaTable) -> dict[str, int | None]:
    """Return the newest transactions of the applications that a table was asked for."""
    versions: dict[str, int | None] = vars(table).setdefault("_transactions", {})
    return versions
