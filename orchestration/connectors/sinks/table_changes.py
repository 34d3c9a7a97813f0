"""Rows that the table of a sink has at a snapshot beyond what it had at an earlier one, without Spark.

Rows are told apart by their lineage, not by the files that brought them: compaction changes no answer. Silver grows by `bronze_batch`, and
what a retry re-admits has a higher `retry`. Gold grows by `gold_batch`; an amendment carries the newest one, which may be sent already, so
rows of that one are compared with the earlier version, which is kept as long as a sink has it (sink_states.snapshots_of_sinks). Of flows
and alerts, which have no such number and few rows, all are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from gold.schema import FLOW_KINDS
from orchestration.conf.model import Conf
from orchestration.connectors.sinks.sink_states import SinkPosition
from orchestration.errors import TidemarkError, first_line
from orchestration.location import Location
from orchestration.storage.delta import OpenTable, ask, max_in_log, open_table, table_id
from orchestration.storage.generations import numbered
from orchestration.storage.marts import made, newest
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.snapshots import is_kept
from orchestration.storage.tables import LakeStore
from orchestration.storage.views import Part, View, views

MEASUREMENT = ("bronze_batch", "bronze_row", "part")
KEYS = {
    "gold.sessions": FLOW_KINDS["sessions"][1],
    "gold.states": (*FLOW_KINDS["states"][1], "state"),
    "gold.measures": FLOW_KINDS["measures"][1],
    "gold.alerts": ("alert", "entity", "changed_at", "state", "previous_state"),
}
"""Keys of the rows of one flow, and of alerts. No flow of pairs: either side may be absent."""


@dataclass(frozen=True)
class PinnedTable:
    """A view of one table, at a snapshot. `key`: of what readers see; empty for a mart, whose rows have none that is known."""

    lake: Location
    view: View
    key: tuple[str, ...]
    position: SinkPosition

    @cached_property
    def opened(self) -> OpenTable:
        (part,) = self.view.parts
        return open_table(part.location, part.version)

    @cached_property
    def schema(self) -> pa.Schema:
        whole = pa.schema(self.opened.schema().to_arrow())
        return pa.schema([whole.field(name) for name in self.view.columns or whole.names])

    @property
    def has_no_mark(self) -> bool:
        """Whether it is of a flow or of alerts: no number of its rows grows."""
        return self.key in KEYS.values()

    def is_replaced_since(self, after: SinkPosition | None) -> bool:
        """Whether all rows are to be sent: there was nothing, or another table, or the lake is an earlier one, restored from a backup.

        A mart is made anew each time, and a retry empties quarantine.
        """
        if after is None or after.table_id != self.position.table_id or after.snapshot_id > self.position.snapshot_id or not self.key:
            return True
        if self.has_no_mark:
            return not is_kept(self.lake, after.snapshot_id)
        return self.view.name == "silver.quarantine" and after.retry != self.position.retry

    def columns_since(self, after: SinkPosition | None) -> list[str]:
        """List the columns that the table got since; none where it is another table, or cannot be read as it was."""
        (part,) = self.view.parts
        if after is None or after.table_id != self.position.table_id or not is_kept(self.lake, after.snapshot_id):
            return []
        before = {field.name for field in open_table(part.location, after.version).schema().fields}
        return [field.name for field in self.opened.schema().fields if field.name not in before]

    def rows(self, after: SinkPosition | None, *, is_ordered: bool = False) -> Iterator[pa.Table]:
        """All rows, or those beyond `after`, a chunk at a time; of gold the newest revision of each. `is_ordered`: by the key."""
        sql, tables = self._query(after)
        order = ", ".join(self.key or self.schema.names)
        try:
            for batch in ask(f"{sql} order by {order}" if is_ordered else sql, tables):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch]).select(self.schema.names).cast(self.schema)
        except pa.ArrowInvalid as error:
            hint = "Correct the model: a text has to be UTF-8." if not self.key else "`tidemark verify` looks at its files."
            raise TidemarkError(f"{self.view.name} cannot be read: {first_line(str(error))}.\n  {hint}") from error

    def count(self, after: SinkPosition | None) -> int:
        sql, tables = self._query(after)
        return int(ask(f"select count(*) as rows from ({sql}) as beyond", tables).read_all()["rows"][0].as_py())

    def _query(self, after: SinkPosition | None) -> tuple[str, dict[str, OpenTable]]:
        (part,) = self.view.parts
        tables = {"pinned": self.opened}
        if after is None:
            return self.view.select(["pinned"]), tables
        if self.view.name.startswith("silver."):
            beyond = f"bronze_batch > {after.mark}"
            if "retry" in self.schema.names:
                beyond = f"{beyond} or retry > {after.retry}"
            return self.view.select([f"(select * from pinned where {beyond}) as beyond"]), tables
        if self.has_no_mark:
            tables["earlier"] = open_table(part.location, after.version)
            return self.view.select(["(select * from pinned except select * from earlier) as beyond"]), tables
        of_group = f"{part.where} and gold_batch >= {after.mark}"
        beyond = f"select * from pinned where {of_group}"
        if is_kept(self.lake, after.snapshot_id):
            tables["earlier"] = open_table(part.location, after.version)
            key = (*self.key, "revision") if self.view.key else self.key
            same = " and ".join(f"rows.{name} = sent.{name}" for name in key)
            beyond = f"select rows.* from ({beyond}) as rows left anti join (select * from earlier where {of_group}) as sent on {same}"
        return self.view.select([f"({beyond}) as beyond"]), tables


def pinned_table(conf: Conf, name: str, snapshot: Snapshot) -> PinnedTable | None:
    """A table of silver, of a group, a flow, of alerts or, the newest build, of marts. None where it is not there yet."""
    lake, store = conf.lake, LakeStore(conf, numbered(conf.lake, snapshot.generation))
    if name.startswith("marts."):
        return _pinned_mart(lake, name)
    view = views(conf, snapshot, name).get(name)
    if view is None or view.parts[0].version is None:
        return None
    location, version = view.parts[0].location, view.parts[0].version
    if name.startswith("silver."):
        marks = snapshot.bronze_batch, _retried(lake, snapshot)
        return PinnedTable(lake, view, MEASUREMENT, SinkPosition(snapshot.snapshot_id, table_id(location), version, *marks))
    if key := KEYS.get(store.stored(name)):
        return PinnedTable(lake, view, key, SinkPosition(snapshot.snapshot_id, table_id(location), version, -1))
    stream = conf.stream_of[name.removeprefix("gold.").rpartition("_")[0]]
    mark = store.newest_gold_batch(stream, name.rpartition("_")[2], version)
    position = SinkPosition(snapshot.snapshot_id, table_id(location), version, mark)
    return PinnedTable(lake, view, view.key or (*MEASUREMENT, "window_end"), position)


def _pinned_mart(lake: Location, name: str) -> PinnedTable | None:
    builds = made(lake, name)
    build = newest(lake, builds) if builds else None
    if build is None or name not in build.versions:
        return None
    part = Part(lake / name.replace(".", "/", 1), build.versions[name])
    position = SinkPosition(build.snapshot_id, table_id(part.location), build.versions[name], build.build)
    return PinnedTable(lake, View(name, (part,)), (), position)


def _retried(lake: Location, snapshot: Snapshot) -> int:
    """The newest retry of the quarantine that a snapshot knows; -1 before the first."""
    generation = numbered(lake, snapshot.generation)
    places = ((generation.table(lake, name), snapshot.versions.get(name)) for name in ("silver.late", "silver.duplicates"))
    marks = (max_in_log(location, "retry", version) for location, version in places if version is not None)
    return max((int(mark) for mark in marks if mark is not None), default=-1)
