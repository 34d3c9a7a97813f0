"""A Delta table that somebody else writes: which files of rows its versions added, and what these hold. Nothing is written there.

Its log is read as it lies on the disk, as deltalake does not tell what one version added. Every error that it raises is a TidemarkError.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from orchestration.errors import TidemarkError
from orchestration.location import Location
from orchestration.storage.delta import LOG, in_log, log_of

DELETION_VECTORS = "deletionVectors"
READABLE = {DELETION_VECTORS, "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""Features of tables whose rows are what their files hold, but for files that have deletion vectors."""


@dataclass(frozen=True)
class Added:
    """A file of rows. `partition`: columns that are not in the file. `has_changes`: of a change data feed, with a column `_change_type`."""

    version: int
    path: str
    length: int
    modified_ms: int
    partition: Mapping[str, pa.Scalar]
    has_changes: bool = False


@dataclass(frozen=True)
class Commit:
    """Files that a version added, and from how many files it took rows away. `is_rewrite`: what it added are not only new rows."""

    files: Sequence[Added]
    removed: int = 0
    is_rewrite: bool = False


def newest_in_log(path: Path) -> int:
    """The newest version that the log of a table has an entry of; -1 for none. Opening a table reads what it says of all files."""
    entries = (file.stem for file in (path / LOG).glob("*.json"))
    return max((int(entry) for entry in entries if entry.isdecimal()), default=-1)


class ForeignTable:
    """A table of another writer, at the version that is its newest when this is made."""

    def __init__(self, path: Path) -> None:
        """TidemarkError where there is no table, or one that cannot be read."""
        self._path = path
        self._table = self._opened(None)
        self.version, self.table_id = self._table.version(), str(self._table.metadata().id)
        features = set(self._table.protocol().reader_features or ()) - READABLE
        if self._table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
            features.add("columnMapping")
        else:
            features.discard("columnMapping")
        if features:
            raise TidemarkError(f"the table at {path} uses {' and '.join(sorted(features))}, which Tidemark cannot read")
        self._schema = pa.schema(self._table.schema().to_arrow())

    def present(self, version: int) -> list[Added]:
        """All files that it had at a version, the oldest first."""
        table = self._opened(version)
        if DELETION_VECTORS in (table.protocol().reader_features or ()) and any(batch.num_rows for batch in table.deletion_vectors()):
            remedy = "purge them (`reorg table .. apply (purge)`), or begin with `starting: latest`"
            raise TidemarkError(f"the table at {self._path} has deletion vectors, which Tidemark cannot read; {remedy}")
        log = in_log(table)
        partition = {name.removeprefix("partition."): log[name] for name in log.column_names if name.startswith("partition.")}
        rows = zip(*(log[name].to_pylist() for name in ("path", "size_bytes", "modification_time")), strict=True)
        files = [
            Added(version, unquote(path), size, modified, {name: column[n] for name, column in partition.items()})
            for n, (path, size, modified) in enumerate(rows)
        ]
        return sorted(files, key=lambda file: (file.modified_ms, file.path))

    def commit(self, version: int) -> Commit | None:
        """Read what a version added; None where its entry of the log is gone."""
        try:
            lines = log_of(Location(self._path), version).local.read_bytes().splitlines()
        except FileNotFoundError:
            return None
        actions: dict[str, list[dict[str, Any]]] = {}
        for action in map(json.loads, filter(None, lines)):
            for kind, entry in action.items():
                actions.setdefault(kind, []).append(entry)
        at = next((int(entry["timestamp"]) for entry in actions.get("commitInfo", ()) if "timestamp" in entry), 0)
        if changes := actions.get("cdc"):
            return Commit([self._added(version, entry, at, has_changes=True) for entry in changes])
        files = [self._added(version, entry, at) for entry in actions.get("add", ()) if entry["dataChange"]]
        removed = sum(entry["dataChange"] for entry in actions.get("remove", ()))
        is_rewrite = bool(files and removed) and not self._has_changes(version)
        return Commit([] if is_rewrite else files, removed, is_rewrite)

    def is_there(self) -> bool:
        """Whether its log can be seen: else it is the disk that is away, and no file of it."""
        return (self._path / LOG).is_dir()

    def file_of(self, added: Added) -> Path:
        """Return the path of a file. A clone names files of its origin."""
        return Path(unquote(urlparse(added.path).path)) if added.path.startswith("file:") else self._path / added.path

    def as_declared(self, rows: pa.Table, added: Added) -> pa.Table:
        """Return rows of a file with the columns of the table, in their types; those that the file lacks are left out."""
        columns = {}
        for field in self._schema:
            if field.name in added.partition:
                columns[field.name] = pa.repeat(_cast(added.partition[field.name], field.type), len(rows))
            elif field.name in rows.column_names:
                columns[field.name] = _cast(rows[field.name], field.type)
        return pa.table(columns) if columns else rows.select([])

    def _added(self, version: int, entry: Mapping[str, Any], at: int, *, has_changes: bool = False) -> Added:
        partition = {name: pa.scalar(value, pa.string()) for name, value in entry["partitionValues"].items()}
        return Added(version, unquote(entry["path"]), entry["size"], at or entry.get("modificationTime", 0), partition, has_changes)

    def _has_changes(self, version: int) -> bool:
        """Whether the feed of changes was on, so that a version without one has replaced whole files."""
        try:
            configuration = self._opened(version).metadata().configuration
        except TidemarkError:
            return False
        return bool(configuration.get("delta.enableChangeDataFeed") == "true")

    def _opened(self, version: int | None) -> DeltaTable:
        try:
            return DeltaTable(str(self._path), version=version)
        except (DeltaError, OSError) as error:
            said = str(error).splitlines()[0].rstrip(".")
            raise TidemarkError(f"there is no Delta table at {self._path} that can be read ({said})") from None


def _cast(values: Any, kind: pa.DataType) -> Any:
    """Cast values to the type that the table declares; where that cannot be, leave them."""
    try:
        if pa.types.is_timestamp(kind) and kind.tz and not (pa.types.is_timestamp(values.type) and values.type.tz):
            values = values.cast(pa.timestamp("us"))  # UTC in files, and in the log, which names no zone
        return values.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return values


def gone(versions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ascending numbers as ranges, each by its first and its last."""
    first = 0
    for n, version in enumerate(versions):
        if n + 1 == len(versions) or versions[n + 1] != version + 1:
            yield versions[first], version
            first = n + 1
