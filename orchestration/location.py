"""The location of a lake and of all below it: the one type for it. Local disks today."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class Location:
    """A place in the store of a lake.

    Rooms pass it on and go below it by `/`. Only storage looks inside, so that another kind of store is added there. `local` is for what
    needs a file of this machine: locks, logs, scratch, hard links of intake, folders of Spark and dbt.
    """

    local: Path

    def __truediv__(self, name: str) -> "Location":
        """The place of that name below this one; the name may have several parts."""
        return Location(self.local / name)

    def __str__(self) -> str:
        return str(self.local)

    @property
    def name(self) -> str:
        return self.local.name

    @property
    def parent(self) -> "Location":
        return Location(self.local.parent)

    def exists(self) -> bool:
        return self.local.exists()

    def is_dir(self) -> bool:
        return self.local.is_dir()

    def glob(self, pattern: str) -> Iterator["Location"]:
        """Places below this one by a pattern, in no order."""
        return map(Location, self.local.glob(pattern))
