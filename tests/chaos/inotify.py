"""What the kernel tells of a folder and everything below it, as it happens: inotify of Linux, through ctypes."""

import ctypes
import os
import select
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path


class Event(IntFlag):
    """Of <sys/inotify.h>."""

    CLOSED = 0x8  # after writing
    RENAMED = 0x80  # to this name
    MADE = 0x100


FOLDER = 0x40000000
EVENTS = Event.CLOSED | Event.RENAMED | Event.MADE
HEADER = struct.Struct("iIII")
"""Watch, event, cookie, length of the name that follows."""


@dataclass(frozen=True)
class Seen:
    """A file, and what happened to it."""

    event: Event
    file: Path


class Watch:
    """The folder and all folders below it, those that are made later too."""

    def __init__(self, folder: Path) -> None:
        """From now on."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._heard = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._folders: dict[int, Path] = {}
        list(self._watched(folder))

    def __enter__(self) -> "Watch":
        """The watch."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hear no more."""
        os.close(self._heard)

    def seen(self, seconds: float) -> Iterator[Seen]:
        """What happened since the last look, in order; waits for something to happen, but no longer than `seconds`."""
        if not select.select([self._heard], [], [], seconds)[0]:
            return
        told, place = os.read(self._heard, 1 << 16), 0
        while place < len(told):
            watch, mask, _, length = HEADER.unpack_from(told, place)
            name = told[place + HEADER.size : place + HEADER.size + length].rstrip(b"\0").decode()
            place += HEADER.size + length
            if mask & FOLDER and mask & EVENTS:
                yield from self._watched(self._folders[watch] / name)
            elif mask & EVENTS:
                yield Seen(Event(mask & EVENTS), self._folders[watch] / name)

    def _watched(self, folder: Path) -> Iterator[Seen]:
        """Files that were made before the kernel listened are told as if they were made now."""
        watch = self._libc.inotify_add_watch(self._heard, os.fsencode(folder), EVENTS)
        if watch >= 0:  # else it is gone again
            self._folders[watch] = folder
            for entry in os.scandir(folder):
                if entry.is_dir(follow_symlinks=False):
                    yield from self._watched(Path(entry.path))
                else:
                    yield Seen(Event.MADE, Path(entry.path))
