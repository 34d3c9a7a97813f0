"""`silver.references`: what tables of the user say of devices and zones, one row a version of a key, append only.

A version counts for events ingested from its `registered_at` on, until the next one of the same key; so the streams, a replay and a check
give the same answer, whatever has become of the tables. Only the process that runs the flows writes it.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from orchestration.conf.model import Conf
from orchestration.conf.reference_file import Rows, check_columns, csv_rows, keyed_rows
from orchestration.conf.reference_settings import ReferenceSettings
from orchestration.errors import ConfError
from orchestration.location import Location
from orchestration.storage.commit import append_rows
from orchestration.storage.delta import UnreadableTableError, is_table, log_of, open_table, path_of, rows_of, table_of
from orchestration.storage.foreign_table import newest_in_log
from orchestration.storage.registry import ALWAYS, NOTICE
from orchestration.utc import MICROSECOND
from silver.schema import REFERENCES

TABLE = "silver.references"
SETTLE_SECONDS = 2.0
"""A table that has changed within so many may still be being written."""
Key = tuple[str, str]
"""device_id or zone, and its value."""
Stamp = tuple[str, int, int] | None
"""Tells whether a table has changed: the file that does, its size and its time; None where there is none."""


@dataclass
class ReferenceTables:
    """The tables that conf names as they were read last, for the one process that writes the lake."""

    conf: Conf
    _rows: dict[str, Rows] = field(default_factory=dict)
    _stamps: dict[str, Stamp] = field(default_factory=dict)
    """Of what was read last, or could not be read."""
    _changing: dict[str, tuple[Stamp, float]] = field(default_factory=dict)
    """What another stamp has been since when, by the clock of the process."""

    def begin(self, now: datetime) -> int:
        """Read all of them, and record what changed as of `now`; how many versions. ConfError names every mistake in them."""
        self._stamps = {name: _stamp(of.path) for name, of in self.conf.references.items()}
        self._rows = rows_of_all(self.conf)
        return self._record(now)

    def look_again(self) -> list[str]:
        """Read those again that have changed; what changed counts from shortly on. Of one that cannot be read, the last rows go on
        counting; returns why, once.
        """
        problems, count = [], len(changed := [name for name in self.conf.references if self._has_settled(name)])
        for name in changed:
            self._stamps[name], _ = self._changing.pop(name)
            try:
                self._rows[name] = rows_in(name, self.conf.references[name])
            except ConfError as error:
                problems.append(f"what reference {name} said last goes on counting: {error}")
        if count > len(problems):
            self._record(datetime.now(UTC) + NOTICE)
        return problems

    def _has_settled(self, name: str) -> bool:
        stamp, now = _stamp(self.conf.references[name].path), time.monotonic()
        if stamp == self._stamps[name]:
            self._changing.pop(name, None)
            return False
        if name not in self._changing or self._changing[name][0] != stamp:
            self._changing[name] = stamp, now
        return now - self._changing[name][1] >= SETTLE_SECONDS

    def _record(self, at: datetime) -> int:
        """Nothing where no reference was ever declared: then the lake has no such table, and no plan asks for it."""
        is_there = is_table(path_of(self.conf.lake, TABLE))
        return record(self.conf.lake, by_key(self.conf, self._rows), at) if self.conf.references or is_there else 0


def record(lake: Location, said: Mapping[Key, Mapping[str, str]], at: datetime) -> int:
    """Append what differs from the newest versions, as of `at`; the number of versions. Repeated, it appends nothing."""
    known = newest(lake)
    nothing: dict[str, Any] = {"attributes": None}
    changed = {key for key in said.keys() | known.keys() if (said.get(key) or None) != known.get(key, nothing)["attributes"]}
    # What is said last must hold, also where the version before counts only from shortly on.
    instants = {key: max(at, known[key]["registered_at"] + MICROSECOND) if key in known else at for key in changed}
    append_rows(path_of(lake, TABLE), versions({key: said.get(key, {}) for key in sorted(changed)}, instants))
    return len(changed)


def versions(said: Mapping[Key, Mapping[str, str]], instants: Mapping[Key, datetime]) -> pa.Table:
    """Rows of the table."""
    rows = [(*key, sorted(attributes.items()) or None, instants[key]) for key, attributes in said.items()]
    return pa.Table.from_pylist([dict(zip(REFERENCES.names, row, strict=True)) for row in rows], REFERENCES)


def newest(lake: Location) -> dict[Key, dict[str, Any]]:
    """The version of each key that holds in the end."""
    rows = sorted(rows_of(path_of(lake, TABLE)), key=lambda row: row["registered_at"])
    return {(row["key_of"], row["key"]): row for row in rows}


def present(conf: Conf) -> pa.Table | None:
    """What the tables say now, as if it had always been so; None where conf names none. ConfError as of `begin`."""
    said = by_key(conf, rows_of_all(conf))
    return versions(said, dict.fromkeys(said, ALWAYS)) if conf.references else None


def by_key(conf: Conf, rows: Mapping[str, Rows]) -> dict[Key, dict[str, str]]:
    """What all of them say together of each key; conf gives no attribute twice."""
    said: dict[Key, dict[str, str]] = {}
    for name, of in conf.references.items():
        for key, attributes in rows[name].items():
            said.setdefault((of.chosen[0], key), {}).update(attributes)
    return said


def rows_of_all(conf: Conf) -> dict[str, Rows]:
    """By reference. ConfError names every mistake."""
    rows, mistakes = {}, []
    for name, of in conf.references.items():
        try:
            rows[name] = rows_in(name, of)
        except ConfError as error:
            mistakes.append(str(error))
    if mistakes:
        raise ConfError("\n".join(mistakes))
    return rows


def rows_in(name: str, of: ReferenceSettings) -> Rows:
    """As the table is now; ConfError names every mistake."""
    try:
        return _delta_rows(name, of) if of.path.is_dir() else csv_rows(name, of)
    except OSError as error:
        remedy = f"put a CSV or a Delta table there, or correct references.{name}.path"
        raise ConfError(f"{of.path}: cannot be read ({error.strerror or error}); {remedy}") from None


def _delta_rows(name: str, of: ReferenceSettings) -> Rows:
    path = Location(of.path)
    try:
        check_columns(name, of, [column.name for column in open_table(path).schema().fields])
        columns = [of.key_column, *of.attributes.values()]
        rows = table_of(path, list(dict.fromkeys(columns)))
    except UnreadableTableError as error:
        said = str(error).splitlines()[0].rstrip(".")
        raise ConfError(f"{of.path}: is no Delta table that can be read ({said}); correct references.{name}.path") from None
    texts = {column: _texts(of, column, rows[column]) for column in rows.column_names}
    return keyed_rows(of, ((0, cells) for cells in zip(*(texts[column] for column in columns), strict=True)))


def _texts(of: ReferenceSettings, column: str, values: pa.ChunkedArray) -> list[str | None]:
    try:
        return [text and text.strip() for text in values.cast(pa.string()).to_pylist()]
    except pa.ArrowNotImplementedError:
        raise ConfError(f"{of.path}: column {column} is {values.type}, which is no text; name another column") from None


def _stamp(path: Path) -> Stamp:
    """Of a Delta table its newest version."""
    file = log_of(Location(path), newest_in_log(path)).local if path.is_dir() else path
    try:
        found = file.stat()
    except OSError:
        return None
    return file.name, found.st_size, found.st_mtime_ns
