"""The lease of a lake: one process writes it, since two that append to one Delta table on a local disk lose acknowledged commits.

The kernel lets go of a lease however its process ends. But a JVM outlives its killed Python for a moment and may go on writing, so it
holds a lock of its own, and the next writer waits until that is gone.

Locks can be lost while their holder sleeps: a stopped process, a network disk. So each holder has a token, higher than those before it,
which its commits carry (commit.py): what it writes when another one has begun is refused.
"""

import fcntl
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from orchestration.errors import HeldError, TidemarkError
from orchestration.location import Location
from orchestration.storage.held_leases import HELD, TAKEN_OVER, HeldLease, Holder, this_process
from orchestration.storage.state_file import StateFile
from orchestration.storage.store_lease import held_in_store, is_held_in_store, store_holder

LEASE, OF_JVM, TOKEN = "writer.lock", "writer.jvm.lock", "writer.token.json"
COPYING = "copy.json"
"""Lies in a lake that is a part of a copy: see lake_copy.py."""
A_LOOK_SECONDS = 0.5
"""`is_held` holds the lease as well, for a moment."""
JVM_LEAVES_SECONDS = 120
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class _Token:
    """`is_released`: the holder of that number has let go."""

    token: int
    is_released: bool


class Lease:
    """Held by this process. `token`: its number. `is_taken_over`: the holder before it did not let go, and may only sleep."""

    def __init__(self, lake: Location, file: TextIO) -> None:
        self._token_file = StateFile(lake / TOKEN, _Token, "Remove it, once no process writes the lake.")
        before = self._token_file.read() or _Token(0, is_released=True)
        # Also higher than what a lost file held.
        self.token, self.is_taken_over = max(before.token + 1, int(time.time() * 1000)), not before.is_released
        self._token_file.write(_Token(self.token, is_released=False))
        self._lake, self._file = lake, file
        self._of_jvm: Any = None
        self._holder = this_process()
        self._tell(self._holder)

    @property
    def transaction(self) -> tuple[str, int]:
        """The transaction by which a table knows the holder."""
        return f"tidemark/writer/{self._lake.name}", self.token

    def share(self, spark: Any) -> None:
        """Let the JVM of a session hold it as well, for as long as it lives: nothing that it writes comes after its lease."""
        if self._of_jvm is not None:
            return
        jvm: Any = spark._jvm
        self._of_jvm = jvm.java.io.RandomAccessFile(str(self._lake / OF_JVM), "rw").getChannel().lock()
        # What only Python refers to, the JVM may close when Python is gone.
        jvm.java.lang.System.getProperties().put(f"tidemark.lease.{self._lake}", self._of_jvm)
        self._tell(Holder(**asdict(self._holder) | {"jvm": jvm.java.lang.ProcessHandle.current().pid()}))

    @property
    def is_lost(self) -> bool:
        """Whether another process holds it now, or has held it since."""
        held = self._token_file.read()
        return held is None or held.token != self.token

    def confirm(self) -> None:
        """Do nothing: who holds the lock holds the lease, and the tables refuse one that lost it."""

    def let_go(self) -> None:
        """Let the lease go after work that came to its end: the JVM has nothing left to write."""
        if self._of_jvm is not None:
            self._of_jvm.channel().close()
        if not self.is_lost:
            self._token_file.write(_Token(self.token, is_released=True))

    def _tell(self, holder: Holder) -> None:
        self._file.truncate(0)
        self._file.write(json.dumps(asdict(holder)))
        self._file.flush()


@contextmanager
def sole_writer(
    lake: Location,
    tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr),
    doing: str | None = None,
    *,
    is_copied: bool = False,
) -> Iterator[HeldLease]:
    """Hold a lake or another folder; HeldError if another process is `doing` so. `tell` hears of take-overs and of waiting.

    TidemarkError where the lake is a part of a copy, unless it `is_copied` by this process.
    """
    if not is_copied and (lake / COPYING).exists():
        raise TidemarkError(f"{lake} is a part of a copy.\n  Go on with that: repeat `tidemark lake copy` as it was called.")
    lake.local.mkdir(parents=True, exist_ok=True)
    hold = _held_on_disk if lake.store.is_disk else held_in_store
    with hold(lake, tell, doing or f"writes the lake at {lake}") as lease:
        HELD[lake] = lease
        try:
            yield lease
            lease.let_go()
        except Exception as error:
            # Of two that write, Spark may see the other one's checkpoint before Delta sees its commit.
            if lease.is_lost and not isinstance(error, HeldError):
                raise HeldError(TAKEN_OVER.format(lake)) from error
            raise
        finally:
            HELD.pop(lake, None)


@contextmanager
def _held_on_disk(lake: Location, tell: Callable[[str], None], doing: str) -> Iterator[HeldLease]:
    with (lake / LEASE).local.open("a+") as file:
        if not _within(A_LOOK_SECONDS, lambda: _locked(file, fcntl.flock)):
            other = _holder(file) or "another process"
            raise HeldError(f"{other} {doing}; stop it first, or wait for its end.")
        gone = _holder(file)
        if gone is not None:
            tell(f"tidemark: {gone} ended without releasing its lease of {lake}; this process takes it over.")
        _await_jvm(lake, gone, tell)
        try:
            yield Lease(lake, file)
        finally:
            file.truncate(0)


@contextmanager
def holding(file: Path) -> Iterator[None]:
    """Hold a file for a moment, as soon as no other process does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_held(lake: Location) -> bool:
    """Whether some process writes the lake now, or the JVM of one that is gone."""
    if not lake.store.is_disk:
        return is_held_in_store(lake)
    return not (_is_free(lake / LEASE, fcntl.flock) and _is_free(lake / OF_JVM, fcntl.lockf))


def holder_of(lake: Location) -> Holder | None:
    """Who holds it now, or held it last without letting go; None where nobody did."""
    if not lake.store.is_disk:
        return store_holder(lake)
    with (lake / LEASE).local.open() as file:
        return _holder(file)


def _await_jvm(lake: Location, gone: Holder | None, tell: Callable[[str], None]) -> None:
    with (lake / OF_JVM).local.open("a+") as file:
        if _locked(file, fcntl.lockf):
            return
        name = f"the JVM of {gone}" if gone else "the JVM of a process that is gone"
        tell(f"tidemark: waiting for {name}, which has not ended yet.")
        if not _within(JVM_LEAVES_SECONDS, lambda: _locked(file, fcntl.lockf)):
            process = f" {gone.jvm}" if gone and gone.jvm else ""
            raise HeldError(f"{name} still writes the lake at {lake}; end its process{process}, or wait for its end.")


def _is_free(path: Location, lock: Callable[[TextIO, int], None]) -> bool:
    if not path.local.exists():
        return True
    with path.local.open() as file:
        return _locked(file, lock, fcntl.LOCK_SH)


def _locked(file: TextIO, lock: Callable[[TextIO, int], None], kind: int = fcntl.LOCK_EX) -> bool:
    try:
        lock(file, kind | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # either, by POSIX
        return False
    return True


def _within(seconds: float, is_done: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not (done := is_done()) and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    return done


def _holder(file: TextIO) -> Holder | None:
    """Read the holder from the file of the lease; None in one that was let go of, or that a kill left half-written."""
    file.seek(0)
    try:
        return Holder(**json.loads(file.read()))
    except (ValueError, TypeError):
        return None
