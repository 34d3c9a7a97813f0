"""`silver.references`: what tables of the user say of devices and zones, one row a version of a key, append only.

A version counts for events ingested from its `registered_at` on, until the next one of the same key; so the streams, a replay and a check
give the same answer, whatever has become of the tables. Only the process that runs the flows writes it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from orchestration.conf.model import Conf
from orchestration.conf.reference_tables import ReferenceSettings, RowKey, Rows, check_columns, csv_rows, keyed_rows
from orchestration.errors import ConfError
from orchestration.location import Location
from orchestration.storage.commit import append_rows
from orchestration.storage.damaged_logs import DamagedLogError
from orchestration.storage.delta import is_table, log_of, open_table, path_of, rows_of, table_of
from orchestration.storage.foreign_table import newest_in_log
from orchestration.storage.registry import ALWAYS, NOTICE
from orchestration.utc import MICROSECOND
from silver.schema import REFERENCES

TABLE = "silver.references"
Fingerprint = tuple[str, int, int] | None
"""Name, size and time of the file that shows whether a table has changed; None where there is none."""


@dataclass
class ReferenceTables:
    """The tables that conf names, by name, as they were read last; for the one process that writes the lake."""

    conf: Conf
    _rows: dict[str, Rows] = field(default_factory=dict)
    _read: dict[str, Fingerprint] = field(default_factory=dict)
    """Fingerprints of the tables that were read last, or could not be read."""
    _seen: dict[str, Fingerprint] = field(default_factory=dict)

    def begin(self, now: datetime) -> int:
        """Read all of them, and record what changed as of `now`; how many versions. ConfError names every mistake in them."""
        self._read, self._rows = self._fingerprints(), rows_of_all(self.conf)
        return self._record(now)

    def look_again(self) -> list[str]:
        """Read those that have changed and rested since, to count from shortly on; return, once, why one cannot be read: its rows stay."""
        before, self._seen, problems = self._seen, self._fingerprints(), []
        changed = {name: now for name, now in self._seen.items() if now != self._read[name] and now == before.get(name)}
        self._read |= changed
        for name in changed:
            try:
                self._rows[name] = rows_in(name, self.conf.references[name])
            except ConfError as error:
                problems.append(f"what reference {name} said last goes on counting: {error}")
        if changed:
            self._record(datetime.now(UTC) + NOTICE)
        return problems

    def _fingerprints(self) -> dict[str, Fingerprint]:
        return {name: _fingerprint(settings) for name, settings in self.conf.references.items()}

    def _record(self, at: datetime) -> int:
        """Record changes; none where no reference was ever declared: then the lake has no such table, and no plan asks for it."""
        is_needed = self.conf.references or is_table(path_of(self.conf.lake, TABLE))
        return record(self.conf.lake, together(self._rows), at) if is_needed else 0


def record(lake: Location, said: Rows, at: datetime) -> int:
    """Append what differs from the newest versions, as of `at`; the number of versions. Repeated, it appends nothing."""
    history = sorted(rows_of(path_of(lake, TABLE)), key=lambda row: row["registered_at"])
    newest = {(row["key_of"], row["key"]): row for row in history}
    recorded = {key: row["attributes"] or {} for key, row in newest.items()}
    changed = [key for key in sorted({**recorded, **said}) if said.get(key, {}) != recorded.get(key, {})]
    # What is said last must hold, also where the version before counts only from shortly on.
    since = {key: max(at, newest[key]["registered_at"] + MICROSECOND) if key in newest else at for key in changed}
    append_rows(path_of(lake, TABLE), versions(said, since))
    return len(changed)


def versions(said: Rows, since: Mapping[RowKey, datetime]) -> pa.Table:
    """Make rows of the table for these keys."""
    rows = [(*key, sorted(said.get(key, {}).items()) or None, at) for key, at in since.items()]
    return pa.Table.from_pylist([dict(zip(REFERENCES.names, row, strict=True)) for row in rows], REFERENCES)


def present(conf: Conf) -> pa.Table | None:
    """Read what the tables say now, as if it had always been so; None where conf names none. ConfError names every mistake in them."""
    said = together(rows_of_all(conf))
    return versions(said, dict.fromkeys(said, ALWAYS)) if conf.references else None


def together(rows: Mapping[str, Rows]) -> Rows:
    """Merge what all tables say of each key; conf gives no attribute twice."""
    said: Rows = {}
    for key, attributes in (item for of_table in rows.values() for item in of_table.items()):
        said.setdefault(key, {}).update(attributes)
    return said


def rows_of_all(conf: Conf) -> dict[str, Rows]:
    """Read the rows of all references, by name. ConfError names every mistake."""
    rows, mistakes = {}, []
    for name, settings in conf.references.items():
        try:
            rows[name] = rows_in(name, settings)
        except ConfError as error:
            mistakes.append(str(error))
    if mistakes:
        raise ConfError("\n".join(mistakes))
    return rows


def rows_in(name: str, settings: ReferenceSettings) -> Rows:
    """Read the rows of a reference as its table is now; ConfError names every mistake."""
    try:
        return _delta_rows(name, settings) if settings.path.is_dir() else csv_rows(name, settings)
    except (OSError, DamagedLogError, pa.ArrowNotImplementedError) as error:
        said = (getattr(error, "strerror", None) or str(error)).splitlines()[0].rstrip(".")
        raise ConfError(
            f"{settings.path}: cannot be read ({said}); put a CSV or a Delta table there, or correct references.{name}"
        ) from None


def _delta_rows(name: str, settings: ReferenceSettings) -> Rows:
    """Read a Delta table of columns that can be texts."""
    columns = [settings.key_column, *settings.attributes.values()]
    check_columns(name, settings, [column.name for column in open_table(Location(settings.path)).schema().fields])
    rows = table_of(Location(settings.path), list(dict.fromkeys(columns)))
    texts = [rows[column].cast(pa.string()).to_pylist() for column in columns]
    return keyed_rows(settings, ((0, cells) for cells in zip(*texts, strict=True)))


def _fingerprint(settings: ReferenceSettings) -> Fingerprint:
    """Take the fingerprint of a file; of a Delta table, the log entry of its newest version."""
    try:
        file = log_of(Location(settings.path), newest_in_log(settings.path)).local if settings.path.is_dir() else settings.path
        return file.name, file.stat().st_size, file.stat().st_mtime_ns
    except OSError:
        return None
