"""Which messages of sources with an `id` are repeats, from one batch of bronze to the next."""

import pyarrow as pa

from bronze.events import ARRIVED
from orchestration.storage.delta import ask, is_table, literal, open_table
from orchestration.storage.payload_formats import payload_formats
from orchestration.storage.tables import LakeStore
from silver.repeats import Repeats
from silver.spec import PayloadFormat

EVENTS = "bronze.events"


class RepeatedMessages:
    """The messages that bronze has. If a commit fails, its messages come again and repeat nothing: all are then read from bronze anew."""

    def __init__(self, lake: LakeStore) -> None:
        self._lake, self._next = lake, -1
        self._by_source: dict[str, Repeats] = {}

    def begin(self, bronze_batch: int) -> None:
        """Events of this batch follow."""
        if bronze_batch != self._next:
            self._by_source.clear()
        self._next = -1

    def end(self, bronze_batch: int) -> None:
        """Bronze has this batch."""
        self._next = bronze_batch + 1

    def marked(self, name: str, events: pa.Table) -> pa.Table:
        """The next events (ARRIVED) of a source, with a header in those that repeat one."""
        source = self._lake.conf.sources.get(name)
        if source is None or source.payload_format.id is None or not len(events):
            return events
        shape = payload_formats(self._lake.conf)[name]
        if name not in self._by_source:
            self._by_source[name] = self._read(name, shape)
        return self._by_source[name].marked(events, shape)

    def _read(self, name: str, shape: PayloadFormat) -> Repeats:
        """The messages that came within the lateness before the last one."""
        lateness, path = self._lake.conf.bounds[name].lateness_seconds, self._lake.table_path(EVENTS)
        repeats, of_source = Repeats(lateness), f"from rows where source = {literal(name)}"
        if is_table(path):
            since = f"(select max(ingested_at) {of_source}) - interval '{lateness} seconds'"
            columns = ", ".join(ARRIVED.names)
            sql = f"select {columns} {of_source} and ingested_at >= {since} order by bronze_batch, bronze_row"
            for batch in ask(sql, {"rows": open_table(path)}):
                repeats.marked(pa.Table.from_batches([batch]).cast(ARRIVED), shape)
        return repeats
