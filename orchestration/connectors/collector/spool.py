"""Writes a spool: what is stored is acknowledged once it is on the disk, and one sync is for all that wait.

Called from one event loop; a thread writes. While a group is written, the next one gathers. The format: sources/spool_records.py.
"""

import asyncio
import errno
import os
import secrets
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from orchestration import crash
from orchestration.connectors.sources.spool_records import MARK_BYTES, encoded, segment_file, segments
from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.disk import free_bytes
from orchestration.storage.lease import sole_writer
from orchestration.stores.disk import sync

SEGMENT_BYTES = 64 * 1024 * 1024
MAX_WAITING_BYTES = 16 * 1024 * 1024  # above it connections are not read: senders are faster than the disk
SPARE_BYTES = 64 * 1024  # left of a disk
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
LOOK_SECONDS, PAUSE_SECONDS = 0.2, 1.0  # between two looks at a full spool, and after a write that failed


Stored: TypeAlias = "asyncio.Future[BaseException | None]"
"""None once it is on the disk, or why it could not be written."""


@dataclass
class Group:
    """The records of one sync."""

    done: Stored
    records: list[bytes] = field(default_factory=list)


class SpoolWriter:
    """A writer of one source's spool. `mark`: identifies this writer. `folder`: also for the state that the source keeps.

    `first`: no segment gets a lower number, such as one that bronze has read and somebody has removed by hand.
    """

    def __init__(self, folder: Path, max_bytes: int, first: int = 0) -> None:
        """Takes the spool for this process; HeldError if another one has it. On a full disk each write tries it again."""
        self._lock, self._is_open = ExitStack(), False
        self.mark = secrets.token_bytes(MARK_BYTES)
        self.folder, self._max_bytes, self._first = folder, max_bytes, first
        self._segment: int | None = None
        self._number = self._length = self._on_disk = 0
        self._group: Group | None = None
        self._is_writing = False
        self._waiting_bytes = 0
        self._looked, self._broken_until = 0.0, 0.0
        self._thread = ThreadPoolExecutor(1, "spool")
        try:
            self._open()
        except OSError as error:
            if error.errno not in NO_ROOM:
                self._lock.close()  # the collector tries again in the same process
                raise TidemarkError(f"the spool {folder} cannot be written: {error.strerror}.") from error
            self._broken_until = time.monotonic() + PAUSE_SECONDS

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        _require_room(self.folder, 0)
        self._lock.enter_context(sole_writer(Location(self.folder), doing=f"collects the events of source {self.folder.name}"))
        for made in (self.folder, self.folder.parent, self.folder.parent.parent):
            sync(made)
        self._number, self._on_disk = max([self._first - 1, *segments(self.folder)]), self._measured()
        self._is_open = True

    def store(self, name: str, first: int, payloads: Sequence[bytes]) -> Stored:
        """Events of a request or connection; `first`: number of the first of them in it. The future is that of the whole group."""
        record = encoded(self.mark, time.time_ns() // 1000, name, first, payloads)
        self._waiting_bytes += len(record)
        if self._group is None:
            loop = asyncio.get_running_loop()
            self._group = Group(loop.create_future())
            if not self._is_writing:
                loop.call_soon(self._write_group)  # behind all that has come by now
        self._group.records.append(record)
        return self._group.done

    @property
    def is_broken(self) -> bool:
        """The disk has refused the last write, a moment ago."""
        return time.monotonic() < self._broken_until

    def is_full(self) -> bool:
        """Whether as much waits on the disk as may. What a run has read is gone then at the next look."""
        if self._on_disk + self._waiting_bytes < self._max_bytes:
            return False
        if time.monotonic() > self._looked + LOOK_SECONDS:
            self._on_disk, self._looked = self._measured(), time.monotonic()
            if self._on_disk >= self._max_bytes and self._length and not self._is_writing:
                with suppress(OSError):
                    self._begin_segment()  # or the one that is written would stay, however much of it was read
        return self._on_disk + self._waiting_bytes >= self._max_bytes

    def has_room(self) -> bool:
        """Whether more should be taken from senders that can wait."""
        return not (self._waiting_bytes > MAX_WAITING_BYTES or self.is_broken or self.is_full())

    async def drain(self) -> None:
        while self._is_writing or self._group is not None:
            await asyncio.sleep(0.001)

    def close(self) -> None:
        self._thread.shutdown()
        self._end_segment()
        self._lock.close()

    def _write_group(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            self._is_writing = True
            written = asyncio.get_running_loop().run_in_executor(self._thread, self._write, group.records)
            written.add_done_callback(lambda _: self._settle(group, written))

    def _settle(self, group: Group, written: "asyncio.Future[int]") -> None:
        self._is_writing = False
        self._waiting_bytes -= sum(map(len, group.records))
        error = written.exception()
        if error is None:
            self._on_disk += written.result()
        else:
            self._broken_until = time.monotonic() + PAUSE_SECONDS
        group.done.set_result(error)
        self._write_group()

    def _write(self, records: Sequence[bytes]) -> int:
        """In the thread: on the disk when it returns. A write that ends in the middle ends its segment: a reader may know it."""
        if not self._is_open:
            self._open()
        _require_room(self.folder, sum(map(len, records)))  # or each try would begin a segment
        if self._segment is None or self._length >= min(SEGMENT_BYTES, self._max_bytes // 4):
            self._begin_segment()
        assert self._segment is not None
        left = content = memoryview(b"".join(records if self._length else (self.mark, *records)))
        try:
            while left:
                left = left[os.write(self._segment, left) :]
            os.fdatasync(self._segment)
        except OSError:
            if len(left) < len(content):
                with suppress(OSError):
                    os.ftruncate(self._segment, self._length)
                self._end_segment()
            raise
        self._length += len(content)
        crash.point(crash.Point.EVENTS_SPOOLED)
        return len(content)

    def _begin_segment(self) -> None:
        self._end_segment()
        file = segment_file(self.folder, self._number + 1)
        self._segment = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o600)
        self._number += 1
        sync(self.folder)

    def _end_segment(self) -> None:
        if self._segment is not None:
            os.close(self._segment)
        self._segment, self._length = None, 0

    def _measured(self) -> int:
        total = 0
        for file in segments(self.folder).values():
            with suppress(FileNotFoundError):  # a run has just removed it
                total += file.stat().st_size
        return total


def _require_room(folder: Path, length: int) -> None:
    if free_bytes(folder) < length + SPARE_BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
