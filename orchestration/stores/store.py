"""A store: where bytes are kept under paths. disk.py and object_store.py are the two there are; location.py is what rooms use."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs as pafs


class Condition(Enum):
    """A condition of a write. The other one is a tag: that of the content that must still be there."""

    ABSENT = "absent"


class ChangedError(OSError):
    """The condition of a write did not hold: another process wrote before. Nothing was written."""


@dataclass(frozen=True)
class Entry:
    """A file of a store. `modified`: in seconds since 1970. `tag`: another one when it has another content."""

    path: PurePath
    size: int
    modified: float
    tag: str


class Store(Protocol):
    """Whatever fails is an OSError with `strerror`; FileNotFoundError where a file that is asked for is not there."""

    @property
    def is_disk(self) -> bool:
        """Whether its files are files of this machine, which locks, seals and hard links need."""

    @property
    def delta_options(self) -> dict[str, str] | None:
        """Options of delta-rs; None on a disk."""

    @property
    def arrow(self) -> "pafs.FileSystem":
        """The same files for Arrow, by `arrow_path`."""

    def uri(self, path: PurePath) -> str:
        """The name by which Spark and delta-rs know a path."""

    def host_path(self, path: PurePath) -> Path:
        """Return the path at which this host keeps what belongs to a path: locks, spools, logs, scratch. On a disk that is the path."""

    def read(self, path: PurePath) -> tuple[bytes, str]:
        """Return the content of a file, and its tag, which another content does not have."""

    def read_range(self, path: PurePath, start: int, count: int) -> bytes:
        """Return so many bytes of a file from a place on."""

    def write(self, path: PurePath, content: bytes, condition: "Condition | str | None" = None) -> str:
        """Write a file, whole or not at all, and return its tag; ChangedError where the condition does not hold."""

    def delete(self, path: PurePath) -> None:
        """Delete a file, if it is there."""

    def delete_all(self, path: PurePath) -> None:
        """Delete all files below a path."""

    def entry(self, path: PurePath) -> Entry:
        """Say how large a file is, and of when."""

    def is_file(self, path: PurePath) -> bool: ...

    def is_dir(self, path: PurePath) -> bool:
        """Whether there are files below the path; on a disk also an empty folder."""

    def entries(self, path: PurePath) -> Iterator[Entry]:
        """Yield all files below a path, however deep, in no order; none where nothing is there."""

    def glob(self, path: PurePath, pattern: str) -> Iterator[PurePath]:
        """Yield files and folders below a path by a pattern of pathlib without `**`, each once."""

    def open_input(self, path: PurePath) -> "pa.NativeFile":
        """Open a file for reading at any position."""

    def open_output(self, path: PurePath) -> "pa.NativeFile":
        """Open a new file for writing; it is there when it is closed."""
