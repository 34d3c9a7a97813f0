"""Tables and files that the holder of the lease of a lake in a store keeps in memory, as each look at a store is a request.

Nobody else writes what is kept, so what this process read or wrote last is the newest. Who holds no lease is refused to write it: whoever
lets another process write it learns that at once. Everything else is asked for each time.
"""

import re
from collections import defaultdict
from functools import lru_cache
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

from orchestration.errors import HeldError
from orchestration.location import Location
from orchestration.storage.held_leases import HeldLease, lease_above

OF_HOLDER = re.compile(
    r"/(bronze/events|silver/(readings|quarantine|late|duplicates|references)|gold/\w+"
    r"|ops/(clock|confs|dead_letters|dead_rows|gaps|generations|ledger|maintenance|notifications|snapshots|ticks))$"
    r"|/checkpoints/(bronze|silver|gold)[.][^/]+/([^/]+/)?[^/]+[.]json$|/(sources|fields)[.]json$"
)
"""Tables and state files that only the holder of the lease writes, in each generation."""
_KEPT: WeakKeyDictionary[HeldLease, dict[Location, Any]] = WeakKeyDictionary()
_LOCKS: defaultdict[Location, RLock] = defaultdict(RLock)


def is_of_holder(path: Location) -> bool:
    """Whether it is in a store, and only the holder of the lease writes it."""
    return not path.store.is_disk and OF_HOLDER.search(str(path)) is not None


def refuse_others(path: Location) -> None:
    """HeldError where this process is about to write what a holder may keep, and holds no lease."""
    if is_of_holder(path) and lease_above(path) is None:
        raise HeldError(f"{path} is written by the holder of the lease of its lake alone, and this process holds none.")


def writing(path: Location) -> RLock:
    """Return the lock of a place in this process: of who writes there, and of who reads what is to be kept."""
    return _LOCKS[path]


def kept_beside(path: Location) -> dict[Location, Any] | None:
    """Return what is kept, by place; None where this one is not to be kept, or this process holds no lease."""
    lease = lease_above(path) if is_of_holder(path) else None
    return None if lease is None else _KEPT.setdefault(lease, {})


def forget(folder: Location) -> None:
    """Ask the store for all in a folder when it is needed next: it changed by more than writes of this process, or is gone."""
    for kept in [*_KEPT.values()]:
        for path in [path for path in [*kept] if folder.path in {path.path, *path.path.parents}]:
            kept.pop(path, None)


def delete_all(folder: Location) -> None:
    """Delete a folder in which something may be kept."""
    folder.delete_all()
    forget(folder)
    _unchanging.cache_clear()


def content_of(file: Location) -> bytes:
    """Read a file that never changes once it is there: the holder of the lease reads it once."""
    lease = None if file.store.is_disk else lease_above(file)
    return file.read() if lease is None else _unchanging(lease.token, file)


@lru_cache(1024)
def _unchanging(_lease: int, file: Location) -> bytes:
    return file.read()
