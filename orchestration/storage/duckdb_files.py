"""Files of tables in an object store as DuckDB reads them: the sizes are those of Delta's log, and a file never changes.

So nothing is listed or asked for its size. The end of a file, where Parquet says what is in it, is read once; a small file as a whole.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from io import RawIOBase
from threading import local
from typing import Any

import duckdb
from fsspec import AbstractFileSystem

from orchestration.location import Location

TAIL_BYTES, SMALL_BYTES = 64 * 1024, 256 * 1024
KEPT_TAILS = 256
WRITTEN_AT = datetime(2020, 1, 1, tzinfo=UTC)
"""DuckDB asks whether a file that it keeps was changed since."""


_locations: dict[str, Location] = {}
_sizes: dict[str, int] = {}
"""Files that this process has let DuckDB read, by name."""


def register(connection: duckdb.DuckDBPyConnection, files: Mapping[Location, int]) -> None:
    """Let a connection, and those that it makes, read files of these sizes."""
    _locations.update((str(file), file) for file in files)
    _sizes.update((str(file), size) for file, size in files.items())
    if TableFiles.protocol not in connection.list_filesystems():
        connection.register_filesystem(_files())


@cache
def _files() -> "TableFiles":
    return TableFiles(lambda path, start, count: _locations[path].read_range(start, count), _sizes)


class TableFiles(AbstractFileSystem):  # type: ignore[misc]
    """A file system as `register_filesystem` takes it, for any number of connections and threads.

    `read_range`: bytes of a file from a place on, so many. `sizes` may grow meanwhile. Both take names with `s3://`.
    """

    protocol, root_marker, cachable = "s3", "", False

    def __init__(self, read_range: Callable[[str, int, int], bytes], sizes: Mapping[str, int]) -> None:
        super().__init__()
        self._read_range, self._sizes = read_range, sizes
        self._tail = lru_cache(KEPT_TAILS)(self._read_tail)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def info(self, path: str, **_: object) -> dict[str, Any]:
        return {"name": path, "size": self._size(path), "type": "file"}

    def exists(self, path: str, **_: object) -> bool:
        return path in self._sizes

    isfile = exists

    def modified(self, path: str) -> datetime:
        return WRITTEN_AT

    def glob(self, path: str, **_: object) -> list[str]:
        """Return the name: those of tables are no patterns, whatever letters they have."""
        return [path]

    def open(self, path: str, mode: str = "rb", **_: object) -> "TableFile":
        if "w" in mode or "a" in mode:
            raise PermissionError(f"{path} is only read")
        return TableFile(self, path, self._size(path))

    def range(self, path: str, start: int, count: int) -> bytes:
        """Return bytes of a file from a place on."""
        first = self._first_of_tail(path)
        if count <= 0 or start < first:
            return self._read_range(path, start, count) if count > 0 else b""
        return self._tail(path)[start - first :][:count]

    def _first_of_tail(self, path: str) -> int:
        size = self._size(path)
        return 0 if size <= SMALL_BYTES else size - TAIL_BYTES

    def _read_tail(self, path: str) -> bytes:
        first = self._first_of_tail(path)
        return self._read_range(path, first, self._size(path) - first)

    def _size(self, path: str) -> int:
        if path not in self._sizes:
            raise FileNotFoundError(path)
        return self._sizes[path]


class TableFile(RawIOBase):
    """A file that is open. Threads of DuckDB share it, and each looks for a place before it reads: so each has a position of its own."""

    def __init__(self, files: TableFiles, path: str, size: int) -> None:
        self._files, self._path, self.size, self._of_thread = files, path, size, local()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return getattr(self._of_thread, "position", 0)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._of_thread.position = (0, self.tell(), self.size)[whence] + offset
        return self.tell()

    def read(self, count: int = -1) -> bytes:
        start = self.tell()
        left = max(self.size - start, 0)
        content = self._files.range(self._path, start, left if count < 0 else min(count, left))
        self._of_thread.position = start + len(content)
        return content
