"""A disk of this machine as a store: files get their names when their bytes are on the disk."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from orchestration.stores.store import ChangedError, Condition, Entry

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs as pafs

DRAFT = ".draft"
"""Ends the name of a file that is being written."""


@dataclass(frozen=True)
class Disk:
    """Implements Store. Whoever writes with a condition holds a lock, as a disk has no such write."""

    is_disk = True
    delta_options = None

    @property
    def arrow(self) -> "pafs.FileSystem":
        from pyarrow.fs import LocalFileSystem  # many a command needs no rows

        return LocalFileSystem()

    def uri(self, path: PurePath) -> str:
        return str(path)

    def host_path(self, path: PurePath) -> Path:
        return Path(path)

    def read(self, path: PurePath) -> tuple[bytes, str]:
        content = Path(path).read_bytes()
        return content, _tag(content)

    def read_range(self, path: PurePath, start: int, count: int) -> bytes:
        with Path(path).open("rb") as file:
            file.seek(start)
            return file.read(count)

    def write(self, path: PurePath, content: bytes, condition: Condition | str | None = None) -> str:
        file = Path(path)
        if condition is not None:
            before = self.read(path)[1] if file.exists() else Condition.ABSENT
            if before is not condition and before != condition:
                raise ChangedError(f"{file} was changed meanwhile")
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}{DRAFT}")
        draft.write_bytes(content)
        sync(draft)
        draft.replace(file)
        return _tag(content) if condition is not None else ""

    def delete(self, path: PurePath) -> None:
        Path(path).unlink(missing_ok=True)

    def delete_all(self, path: PurePath) -> None:
        shutil.rmtree(path, ignore_errors=not Path(path).exists())

    def entry(self, path: PurePath) -> Entry:
        status = Path(path).stat()
        return Entry(path, status.st_size, status.st_mtime, f"{status.st_mtime_ns}-{status.st_size}")

    def is_file(self, path: PurePath) -> bool:
        return Path(path).is_file()

    def is_dir(self, path: PurePath) -> bool:
        return Path(path).is_dir()

    def entries(self, path: PurePath) -> Iterator[Entry]:
        for folder, _, names in os.walk(path):
            for name in names:
                try:
                    yield self.entry(Path(folder, name))
                except FileNotFoundError:  # gone meanwhile
                    continue

    def glob(self, path: PurePath, pattern: str) -> Iterator[PurePath]:
        return Path(path).glob(pattern)

    def open_input(self, path: PurePath) -> "pa.NativeFile":
        return self.arrow.open_input_file(str(path))

    def open_output(self, path: PurePath) -> "pa.NativeFile":
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return self.arrow.open_output_stream(str(path))


def host_state() -> Path:
    """Return the folder in which this host keeps what is its own."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tidemark"


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _tag(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
