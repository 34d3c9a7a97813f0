"""Small records in files: a crash leaves a file whole, and a file that is not as it was written is refused by name, with the way out."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from orchestration.errors import HeldError, TidemarkError
from orchestration.location import Location
from orchestration.storage.held_leases import TAKEN_OVER, HeldLease, lease_above
from orchestration.storage.kept import forget, kept_beside, refuse_others, writing
from orchestration.storage.lake_layout import state_files
from orchestration.stores.store import ChangedError, Condition

if TYPE_CHECKING:
    import pyarrow as pa

SEPARATOR, MARK = b", ", b'"sha256": "'
ENDING, DAMAGED, FOREIGN = ".json", "is not as it was written", "is none that Tidemark writes"
_TAGS: dict[Location, str] = {}
"""Files of lakes in stores that this process has read or written: the content that its next write replaces."""
T = TypeVar("T")


@dataclass(frozen=True)
class StateFile(Generic[T]):
    """One value of `kind`, a dataclass or a dict, as JSON that ends in its digest. `way_out`: what to do where the file is damaged."""

    location: Location
    kind: type[T]
    way_out: str

    def __post_init__(self) -> None:
        """Refuse another ending, by which nobody would look whether the file is damaged."""
        if not self.location.name.endswith(ENDING):
            raise ValueError(f"{self.location} does not end in {ENDING}")

    def read(self) -> T | None:
        """Return the value that was written; None where there is no file. A damaged one is a TidemarkError that ends in the way out."""
        try:
            whole = _newest(self.location)
        except OSError as error:
            raise TidemarkError(f"{self.location} cannot be read: {error.strerror}.\n  {self.way_out}") from error
        if whole is None:
            return None
        content, digest = _parts(whole)
        if not _is_of(content, digest):
            raise _damaged(self.location, self.way_out)
        return msgspec.convert(msgspec.json.decode(content), self.kind)

    def write(self, value: T | msgspec.Raw) -> None:
        """Write the value, whole or not at all: the name appears when the bytes are on the disk. `Raw`: it is JSON already.

        The digest is of the bytes before it, so that other threads wait for no second encoding: that of fast alerts is large.
        """
        content = msgspec.json.encode(value)
        parts = (content[:-1], b"" if content == b"{}" else SEPARATOR, MARK, _digest(content).encode(), b'"}')
        refuse_others(self.location)
        if lease := lease_above(self.location):
            lease.confirm()
        if lease is None or self.location.store.is_disk:
            self.location.write(b"".join(parts))
        else:
            _replace(self.location, b"".join(parts), lease)

    def remove(self) -> None:
        with writing(self.location):
            forget(self.location)
            _TAGS.pop(self.location, None)
            self.location.delete()


def _newest(file: Location) -> bytes | None:
    """Return the content of a file, None where it is not there; the holder of the lease asks a store once, until it writes."""
    if (kept := kept_beside(file)) is None:
        return _asked(file)
    with writing(file):
        content: bytes | None = kept[file] if file in kept else _asked(file)
        kept[file] = content
        return content


def _asked(file: Location) -> bytes | None:
    try:
        content, tag = file.read_tagged()
    except FileNotFoundError:
        return None
    if not file.store.is_disk:
        _TAGS[file] = tag
    return content


def _replace(file: Location, content: bytes, lease: HeldLease) -> None:
    """Write a file of a store unless another process did: a request may arrive when that one has taken over the lease."""
    with writing(file):
        forget(file)
        while True:
            tag = _TAGS.get(file) or file.tag()
            try:
                _TAGS[file] = file.write(content, tag or Condition.ABSENT)
                break
            except (ChangedError, FileNotFoundError):
                _TAGS.pop(file, None)
                if lease.is_lost:
                    raise HeldError(TAKEN_OVER.format(file)) from None
        if (kept := kept_beside(file)) is not None:
            kept[file] = content


def odd_files(lake: Location) -> Iterator[tuple[Location, str]]:
    """Yield state files of a lake that are not as they were written, or cannot be read, and files that nobody here writes."""
    for file in state_files(lake):
        if not file.name.endswith(ENDING):
            yield file, FOREIGN
            continue
        try:
            content = file.read()
            json.loads(content)
            if MARK in content and not _is_of(*_parts(content)):
                yield file, DAMAGED
        except FileNotFoundError:
            pass
        except (OSError, ValueError):
            yield file, DAMAGED


def write_rows(location: Location, rows: "pa.Table") -> str:
    """Write rows as a file of Arrow, whole or not at all; returns its digest, which its owner keeps."""
    import pyarrow as pa  # many a command that reads a state has no need of it

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as stream:
        stream.write_table(rows)
    content = sink.getvalue().to_pybytes()
    location.write(content)
    return _digest(content)


def read_rows(location: Location, digest: str, way_out: str) -> "pa.Table":
    """Read such a file; TidemarkError, which ends in the way out, where it is gone or is not as it was written."""
    import pyarrow as pa

    content = location.read() if location.exists() else b""
    if _digest(content) != digest:
        raise _damaged(location, way_out)
    return pa.ipc.open_file(pa.py_buffer(content)).read_all()


def _damaged(location: Location, way_out: str) -> TidemarkError:
    state = "damaged: its bytes differ from those that were written" if location.exists() else "gone"
    return TidemarkError(f"{location} is {state}.\n  {way_out}")


def _parts(content: bytes) -> tuple[bytes, bytes]:
    """Return the JSON of the value, and its digest."""
    before, _, end = content.rpartition(MARK)
    return before.removesuffix(SEPARATOR) + b"}", end.removesuffix(b'"}')


def _is_of(content: bytes, digest: bytes) -> bool:
    return digest in (_digest(content).encode(), _digest_of_sorted(content))


def _digest_of_sorted(content: bytes) -> bytes | None:
    """Return the digest that lakes have which were made before the digest was of the bytes."""
    try:
        return _digest(json.dumps(json.loads(content), sort_keys=True).encode()).encode()
    except ValueError:
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
