"""`silver.references`: what tables of the user say of devices and zones, one row a version of a key, append only.

A version counts for events ingested from its `registered_at` on, until the next one of the same key; so the streams, a replay and a check
give the same answer, whatever has become of the tables. Only the process that runs the flows writes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from orchestration.conf.model import Conf
from orchestration.conf.reference_file import Key, Rows, check_columns, csv_rows, keyed_rows
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
Stamp = tuple[str, int, int] | None
"""Tells whether a table has changed: the file that does, its size and its time; None where there is none."""


@dataclass
class ReferenceTables:
    """The tables that conf names, by name, as they were read last; for the one process that writes the lake."""

    conf: Conf
    _rows: dict[str, Rows] = field(default_factory=dict)
    _read: dict[str, Stamp] = field(default_factory=dict)
    """Of what was read last, or could not be read."""
    _seen: dict[str, Stamp] = field(default_factory=dict)

    def begin(self, now: datetime) -> int:
        """Read all of them, and record what changed as of `now`; how many versions. ConfError names every mistake in them."""
        self._read, self._rows = self._stamps(), rows_of_all(self.conf)
        return self._record(now)

    def look_again(self) -> list[str]:
        """Read those that have changed, and rested since the look before; what they say counts from shortly on.

        Of one that cannot be read, the last rows go on counting; returns why, once.
        """
        before, self._seen, problems = self._seen, self._stamps(), []
        changed = {name: stamp for name, stamp in self._seen.items() if stamp != self._read[name] and stamp == before.get(name)}
        self._read |= changed
        for name in changed:
            try:
                self._rows[name] = rows_in(name, self.conf.references[name])
            except ConfError as error:
                problems.append(f"what reference {name} said last goes on counting: {error}")
        if changed:
            self._record(datetime.now(UTC) + NOTICE)
        return problems

    def _stamps(self) -> dict[str, Stamp]:
        return {name: _stamp(of) for name, of in self.conf.references.items()}

    def _record(self, at: datetime) -> int:
        """Nothing where no reference was ever declared: then the lake has no such table, and no plan asks for it."""
        is_needed = self.conf.references or is_table(path_of(self.conf.lake, TABLE))
        return record(self.conf.lake, together(self._rows), at) if is_needed else 0


def record(lake: Location, said: Rows, at: datetime) -> int:
    """Append what differs from the newest versions, as of `at`; the number of versions. Repeated, it appends nothing."""
    history = sorted(rows_of(path_of(lake, TABLE)), key=lambda row: row["registered_at"])
    newest = {(row["key_of"], row["key"]): row for row in history}
    known = {key: row["attributes"] or {} for key, row in newest.items()}
    changed = [key for key in sorted({**known, **said}) if said.get(key, {}) != known.get(key, {})]
    # What is said last must hold, also where the version before counts only from shortly on.
    since = {key: max(at, newest[key]["registered_at"] + MICROSECOND) if key in newest else at for key in changed}
    append_rows(path_of(lake, TABLE), versions(said, since))
    return len(changed)


def versions(said: Rows, since: Mapping[Key, datetime]) -> pa.Table:
    """Rows of the table, of these keys."""
    rows = [(*key, sorted(said.get(key, {}).items()) or None, at) for key, at in since.items()]
    return pa.Table.from_pylist([dict(zip(REFERENCES.names, row, strict=True)) for row in rows], REFERENCES)


def present(conf: Conf) -> pa.Table | None:
    """What the tables say now, as if it had always been so; None where conf names none. ConfError names every mistake in them."""
    said = together(rows_of_all(conf))
    return versions(said, dict.fromkeys(said, ALWAYS)) if conf.references else None


def together(rows: Mapping[str, Rows]) -> Rows:
    """What all of them say of each key; conf gives no attribute twice."""
    said: Rows = {}
    for key, attributes in (item for of_table in rows.values() for item in of_table.items()):
        said.setdefault(key, {}).update(attributes)
    return said


def rows_of_all(conf: Conf) -> dict[str, Rows]:
    """By name. ConfError names every mistake."""
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
    except (OSError, UnreadableTableError, pa.ArrowNotImplementedError) as error:
        said = (getattr(error, "strerror", None) or str(error)).splitlines()[0].rstrip(".")
        raise ConfError(f"{of.path}: cannot be read ({said}); put a CSV or a Delta table there, or correct references.{name}") from None


def _delta_rows(name: str, of: ReferenceSettings) -> Rows:
    """Of columns that can be texts."""
    columns = [of.key_column, *of.attributes.values()]
    check_columns(name, of, [column.name for column in open_table(Location(of.path)).schema().fields])
    rows = table_of(Location(of.path), list(dict.fromkeys(columns)))
    texts = [rows[column].cast(pa.string()).to_pylist() for column in columns]
    return keyed_rows(of, ((0, cells) for cells in zip(*texts, strict=True)))


def _stamp(of: ReferenceSettings) -> Stamp:
    """Of a Delta table that of its newest version."""
    try:
        file = log_of(Location(of.path), newest_in_log(of.path)).local if of.path.is_dir() else of.path
        return file.name, file.stat().st_size, file.stat().st_mtime_ns
    except OSError:
        return None
