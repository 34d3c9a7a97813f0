"""Tables of a snapshot and their columns, read from the Delta logs without an engine."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from orchestration.storage.delta import OpenTable, in_log, open_table
from orchestration.storage.duckdb_view import duckdb_type
from orchestration.storage.live_views import TYPES, LiveView, duckdb_views
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.views import Plant, View, views


@dataclass
class SnapshotTables:
    """Tables of one snapshot, None for a lake without one. `marts_snapshot`: the snapshot of the marts, if there are any.

    Every table is opened once.
    """

    plant: Plant
    snapshot: Snapshot | None
    marts_snapshot: Snapshot | None = None
    _opened: dict[str, OpenTable] = field(default_factory=dict, init=False)

    @cached_property
    def views(self) -> Mapping[str, View]:
        """Return the views by SQL name."""
        marts = {} if self.marts_snapshot is None else views(self.plant, self.marts_snapshot)
        return duckdb_views(self.plant, self.snapshot) | {name: view for name, view in marts.items() if name.startswith("marts.")}

    def table(self, name: str) -> str | None:
        """The SQL name of a table, given in any case, with or without quotes; None if there is none."""
        return {table.lower(): table for table in self.views}.get(name.replace('"', "").lower())

    def columns(self, name: str) -> list[tuple[str, str]]:
        """Names and types, as DuckDB writes them, of a table by its SQL name."""
        if isinstance(view := self.views[name], LiveView):
            return [(column, TYPES[column]) for column in view.columns]
        fields = {field["name"]: field["type"] for field in json.loads(self._open(name).schema().to_json())["fields"]}
        return [(column, duckdb_type(fields[column])) for column in view.columns or fields]

    def version_and_rows(self, name: str) -> tuple[int, int | None]:
        """The version that queries read, and the number of rows in its files, before any filter; None if the log does not say.

        It does not of a device group, and not of several tables.
        """
        table, view = self._open(name), self.views[name]
        if name.startswith("gold.") and view.parts[0].where:
            return table.version(), None
        counts = in_log(table, "num_records")["num_records"].to_pylist()
        return table.version(), None if None in counts else sum(counts)

    def _open(self, name: str) -> OpenTable:
        if name not in self._opened:
            part = self.views[name].parts[0]
            self._opened[name] = open_table(part.location, part.version)
        return self._opened[name]
