"""The lease of a lake in an object store: `writer.json`, which its holder writes again every few seconds, each time with other bytes.

Nobody can see whether a process on another machine lives. So a lease is taken over when its object has stood still for STILL_SECONDS, by
the clock of whoever waits. A holder that could not renew it for that long writes nothing before it has done so.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import msgspec

from orchestration.errors import HeldError
from orchestration.location import Location
from orchestration.storage.held_leases import TAKEN_OVER, Holder, this_process
from orchestration.stores.object_store import ObjectStore
from orchestration.stores.store import ChangedError, Condition

FILE = "writer.json"
RENEW_SECONDS, STILL_SECONDS, LOOK_SECONDS = 5.0, 15.0, 1.0
SAFE_SECONDS = 10.0
"""For so long after a renewal nobody can have taken the lease over."""
PATIENCE_SECONDS = 60.0
"""How long a store that cannot be asked delays a write, before the write fails."""
ANSWER_SECONDS, ATTEMPTS = 3, 1
"""A renewal that waits for its answer is no renewal."""


@dataclass(frozen=True)
class Record:
    """Content of the object. `nonce`: of the process that holds it; `counter`: of its renewals."""

    token: int
    nonce: str
    counter: int
    is_released: bool
    holder: Holder


class StoreLease:
    """Implements HeldLease, and renews itself in a thread."""

    def __init__(self, lake: Location, file: Location, record: Record, tag: str, *, is_taken_over: bool) -> None:
        self.token, self.is_taken_over = record.token, is_taken_over
        self._lake, self._file, self._record, self._tag = lake, file, record, tag
        self._renewed, self._is_lost = time.monotonic(), False
        self._lock, self._ended = threading.Lock(), threading.Event()
        threading.Thread(target=self._keep, name="lease", daemon=True).start()

    @property
    def transaction(self) -> tuple[str, int]:
        return f"tidemark/writer/{self._lake.name}", self.token

    @property
    def is_lost(self) -> bool:
        with suppress(OSError):
            self._renew()
        return self._is_lost

    def confirm(self) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not self._is_lost and time.monotonic() - self._renewed > SAFE_SECONDS:
            try:
                self._renew()
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(LOOK_SECONDS)
        if self._is_lost:
            raise HeldError(TAKEN_OVER.format(self._lake))

    def share(self, spark: Any) -> None:
        """Do nothing: commits of a JVM that outlives this process are fenced by their token."""

    def let_go(self) -> None:
        self._ended.set()
        with suppress(OSError):
            self._renew(is_released=True)

    def stop(self) -> None:
        self._ended.set()

    def _keep(self) -> None:
        while not self._ended.wait(RENEW_SECONDS) and not self._is_lost:
            with suppress(OSError):  # the store cannot be asked: `confirm` asks again before anything is written
                self._renew()

    def _renew(self, *, is_released: bool = False) -> None:
        with self._lock:
            if self._is_lost:
                return
            asked, following = time.monotonic(), replace(self._record, counter=self._record.counter + 1, is_released=is_released)
            try:
                self._tag = self._file.write(msgspec.json.encode(following), self._tag)
            except ChangedError:
                # Of an earlier renewal the answer may be lost.
                now, self._tag = _read(self._file)
                if now is None or now.nonce != self._record.nonce:
                    self._is_lost = True
                    return
                self._tag = self._file.write(msgspec.json.encode(following), self._tag)
            self._record, self._renewed = following, asked


@contextmanager
def held_in_store(lake: Location, tell: Callable[[str], None], doing: str) -> Iterator[StoreLease]:
    """Hold the lease of a lake; HeldError where another process holds it and lives."""
    file = _file(lake)
    before, tag = _read(file)
    if before is not None and not before.is_released:
        tell(f"tidemark: {before.holder} has not released its lease of {lake}; this process takes it over if it is not renewed.")
        if not _stands_still(file, tag):
            raise HeldError(f"{before.holder} {doing}; stop it first, or wait for its end.")
    token = max(before.token + 1 if before else 0, int(time.time() * 1000))
    mine = Record(token, uuid4().hex, 0, is_released=False, holder=this_process())
    try:
        tag = file.write(msgspec.json.encode(mine), tag if before else Condition.ABSENT)
    except ChangedError:
        raise HeldError(f"another process {doing}; stop it first, or wait for its end.") from None
    lease = StoreLease(lake, file, mine, tag, is_taken_over=before is not None and not before.is_released)
    try:
        yield lease
    finally:
        lease.stop()


def store_holder(lake: Location) -> Holder | None:
    """Who holds the lease now, or held it last without letting go."""
    record, _ = _read(_file(lake))
    return record.holder if record and not record.is_released else None


def is_held_in_store(lake: Location) -> bool:
    """Whether the lease was renewed lately."""
    if store_holder(lake) is None:
        return False
    return time.time() - lake.store.entry((lake / FILE).path).modified < STILL_SECONDS


def _file(lake: Location) -> Location:
    assert isinstance(lake.store, ObjectStore)
    return Location((lake / FILE).path, replace(lake.store, answer_seconds=ANSWER_SECONDS, attempts=ATTEMPTS))


def _stands_still(file: Location, tag: str) -> bool:
    """Wait until the object has stood still for STILL_SECONDS; False where it changes before."""
    end = time.monotonic() + STILL_SECONDS
    while time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
        try:
            if _read(file)[1] != tag:
                return False
        except OSError:  # the store cannot be asked: then its holder cannot renew it either
            end = time.monotonic() + STILL_SECONDS
    return True


def _read(file: Location) -> tuple[Record | None, str]:
    """Return the record and its tag; None where there is none."""
    try:
        content, tag = file.read_tagged()
    except FileNotFoundError:
        return None, ""
    return msgspec.json.decode(content, type=Record), tag
