"""Room on a disk: the one measure of what is free, and when that is little, or nothing."""

import os
from enum import StrEnum
from pathlib import Path

FULL = 32


class Room(StrEnum):
    """Whether a disk has room, by `least_free_bytes` of the conf."""

    FULL = "full"
    """Less than a 32nd of that is free: only the collector is started, which refuses by itself what does not fit."""
    LITTLE = "little"
    """Less than that is free."""
    ENOUGH = "enough"


def free_bytes(folder: Path) -> int:
    """Return the bytes that are free for a folder, also for one that is not there yet; none where no file can be made any more."""
    disk = os.statvfs(next(parent for parent in (folder, *folder.parents) if parent.exists()))
    return disk.f_bavail * disk.f_frsize if disk.f_favail or not disk.f_files else 0


def room(folder: Path, least_free_bytes: int) -> tuple[Room, int]:
    """Return whether the disk of a folder has room, and the bytes that are free."""
    free = free_bytes(folder)
    return Room.FULL if free < least_free_bytes // FULL else Room.LITTLE if free < least_free_bytes else Room.ENOUGH, free
