"""A Delta table that somebody else writes: which files of rows its versions added, and what these hold. Nothing is written there.

Its log is read as it lies on the disk, as deltalake does not tell what one version added. Every error that it raises is a TidemarkError.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
MAPPED_NAME = b"delta.columnMapping.physicalName"
READABLE = {DELETION_VECTORS, "columnMapping", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""Features of tables whose rows are what their files hold, but for deleted rows and names of columns."""


@dataclass(frozen=True)
class Added:
    """A file of rows. `partition`: columns that are not in the file. `has_changes`: of a change data feed, with a column `_change_type`.

    `kept`: of each row whether it is left, by the deletion vector of the file; rows behind its end are.
    """

    version: int
    path: str
    length: int
    modified_ms: int
    partition: Mapping[str, pa.Scalar]
    has_changes: bool = False
    kept: pa.BooleanArray | None = None


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
        if features := set(self._table.protocol().reader_features or ()) - READABLE:
            raise TidemarkError(f"the table at {path} uses {' and '.join(sorted(features))}, which Tidemark cannot read")
        self._schema = pa.schema(self._table.schema().to_arrow())
        self._is_mapped = self._table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"

    def present(self, version: int) -> list[Added]:
        """All files that it had at a version, the oldest first."""
        table = self._opened(version)
        log = in_log(table)
        partition = {name.removeprefix("partition."): log[name] for name in log.column_names if name.startswith("partition.")}
        rows = zip(*(log[name].to_pylist() for name in ("path", "size_bytes", "modification_time")), strict=True)
        files = [
            Added(version, unquote(path), size, modified, {name: column[n] for name, column in partition.items()})
            for n, (path, size, modified) in enumerate(rows)
        ]
        if DELETION_VECTORS in (table.protocol().reader_features or ()):
            files = self._with_deletions(table, files)
        return sorted(files, key=lambda file: (file.modified_ms, file.path))

    def commit(self, version: int) -> Commit | None:
        """Read what a version added; None where its entry of the log is gone."""
        try:
            lines = log_of(Location(self._path), version).read().splitlines()
        except FileNotFoundError:
            return None
        actions: dict[str, list[dict[str, Any]]] = {}
        for action in map(json.loads, filter(None, lines)):
            for kind, entry in action.items():
                actions.setdefault(kind, []).append(entry)
        at = next((int(entry["timestamp"]) for entry in actions.get("commitInfo", ()) if "timestamp" in entry), 0)
        if changes := actions.get("cdc"):
            return Commit([self._added(version, entry, at, has_changes=True) for entry in changes])
        removed_paths = [entry["path"] for entry in actions.get("remove", ()) if entry["dataChange"]]
        # A file that is removed and added again got a deletion vector.
        added = [entry for entry in actions.get("add", ()) if entry["dataChange"] and entry["path"] not in removed_paths]
        files, removed = [self._added(version, entry, at) for entry in added], len(removed_paths)
        if any(entry.get("deletionVector") for entry in added):
            files = self._with_deletions(self._opened(version), files)
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
            name = _name_in_file(field) if self._is_mapped else field.name
            if name in added.partition or field.name in added.partition:
                columns[field.name] = pa.repeat(_cast(added.partition.get(name, added.partition.get(field.name)), field.type), len(rows))
            elif name in rows.column_names:
                values = rows[name].combine_chunks()
                columns[field.name] = _cast(pa.array(_Renamed(values, field.type)) if self._is_mapped else values, field.type)
        return pa.table(columns) if columns else rows.select([])

    def _with_deletions(self, table: DeltaTable, files: Sequence[Added]) -> list[Added]:
        """Add to each file what its deletion vector leaves of it; TidemarkError for a vector of none of them."""
        vectors = pa.table(table.deletion_vectors()).to_pydict()
        kept = {_same(urlparse(path).path): mask for path, mask in zip(vectors["filepath"], vectors["selection_vector"], strict=True)}
        masked = [(file, kept.pop(_same(str(self.file_of(file).resolve())), None)) for file in files]
        if kept:
            raise TidemarkError(f"the table at {self._path} has deletion vectors of files that its log does not name: {min(kept)}")
        return [file if mask is None else replace(file, kept=pa.array(mask, pa.bool_())) for file, mask in masked]

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


@dataclass(frozen=True)
class _Renamed:
    """The same values under the names that the table declares: of fields within them too, which a cast would take for others."""

    values: pa.Array
    declared: pa.DataType

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        renamed = _renamed(self.values.type, self.declared)
        return renamed.__arrow_c_schema__(), self.values.__arrow_c_array__()[1]


def _renamed(stored: pa.DataType, declared: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(stored) and pa.types.is_struct(declared):
        fields = {_name_in_file(field): field for field in declared}
        pairs = ((field, fields.get(field.name, field)) for field in stored)
        return pa.struct([field.with_name(named.name).with_type(_renamed(field.type, named.type)) for field, named in pairs])
    if pa.types.is_map(stored) and pa.types.is_map(declared):
        return pa.map_(_renamed(stored.key_type, declared.key_type), _renamed(stored.item_type, declared.item_type))
    if pa.types.is_list(stored) and pa.types.is_list(declared):
        return pa.list_(stored.value_field.with_type(_renamed(stored.value_type, declared.value_type)))
    return stored


def _name_in_file(field: pa.Field) -> str:
    name: bytes = (field.metadata or {}).get(MAPPED_NAME, field.name.encode())
    return name.decode()


def _same(path: str) -> str:
    """Return one name of a file, whether it was encoded once, twice or not at all."""
    return unquote(unquote(path))


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
