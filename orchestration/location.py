"""A place in the store of a lake, and all below it: the one type for it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING

from orchestration.stores.disk import Disk
from orchestration.stores.object_store import SCHEME, ObjectStore
from orchestration.stores.store import Condition, Store

if TYPE_CHECKING:
    import pyarrow as pa

DISK = Disk()


@dataclass(frozen=True, order=True)
class Location:
    """A file or a folder in a store. Rooms pass it on and go below it by `/`.

    Errors are OSErrors, of every store; FileNotFoundError where a file is not there.
    """

    path: PurePath
    store: Store = field(default=DISK, compare=False)

    def __truediv__(self, name: str) -> "Location":
        """The place of that name below this one; the name may have several parts."""
        return Location(self.path / name, self.store)

    def __str__(self) -> str:
        """The name by which Spark, delta-rs and people know it: a path, or s3://BUCKET/KEY."""
        return self.store.uri(self.path)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def stem(self) -> str:
        return self.path.stem

    @property
    def suffix(self) -> str:
        return self.path.suffix

    @property
    def parent(self) -> "Location":
        return Location(self.path.parent, self.store)

    @property
    def local(self) -> Path:
        """The path at which this host keeps locks, spools, logs and scratch that belong here: on a disk the place itself."""
        return self.store.host_path(self.path)

    @property
    def on_host(self) -> "Location":
        """The same as `local`, for files of state."""
        return Location(self.local)

    def below(self, other: "Location") -> str:
        """The path below another place, with `/`; ValueError where it is not below it."""
        return self.path.relative_to(other.path).as_posix()

    def exists(self) -> bool:
        """Whether it is a file. See is_dir."""
        return self.store.is_file(self.path)

    def is_dir(self) -> bool:
        return self.store.is_dir(self.path)

    def read(self) -> bytes:
        return self.store.read(self.path)[0]

    def read_text(self) -> str:
        return self.read().decode()

    def read_range(self, start: int, count: int) -> bytes:
        """Return so many bytes from a place on."""
        return self.store.read_range(self.path, start, count)

    def read_tagged(self) -> tuple[bytes, str]:
        """Return the content of a file, and the tag by which a write says that it is unchanged."""
        return self.store.read(self.path)

    def write(self, content: bytes, condition: Condition | str | None = None) -> str:
        """Write a file, whole or not at all, and return its tag. `condition`: that it is absent, or the tag that it must have.

        ChangedError where the condition does not hold.
        """
        return self.store.write(self.path, content, condition)

    def delete(self) -> None:
        """Delete a file, if it is there."""
        self.store.delete(self.path)

    def delete_all(self) -> None:
        """Delete all files below it, if there are any."""
        self.store.delete_all(self.path)

    def size(self) -> int:
        return self.store.entry(self.path).size

    def tag(self) -> str | None:
        """Tell its content from another one without reading it; None where it is not there."""
        try:
            return self.store.entry(self.path).tag
        except FileNotFoundError:
            return None

    def entries(self) -> "Iterator[tuple[Location, int, float]]":
        """Yield all files below it, however deep, in no order, each with its size and when it was written, in seconds since 1970."""
        return ((Location(entry.path, self.store), entry.size, entry.modified) for entry in self.store.entries(self.path))

    def glob(self, pattern: str) -> "Iterator[Location]":
        """Yield files and folders below it by a pattern without `**`, in no order."""
        return (Location(path, self.store) for path in self.store.glob(self.path, pattern))

    def open_input(self) -> "pa.NativeFile":
        return self.store.open_input(self.path)

    def open_output(self) -> "pa.NativeFile":
        return self.store.open_output(self.path)


def lake_at(address: str | Path, store: ObjectStore | None = None) -> Location:
    """The lake at a path, or in a store at s3://BUCKET/PREFIX."""
    text = str(address)
    if text.startswith(SCHEME):
        return Location(PurePosixPath(text.removeprefix(SCHEME)), store or ObjectStore())
    return Location(Path(address))
