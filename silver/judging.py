"""Measurements of events, judged by every rule: with what catalogue, registry and references know of them. Pure, of Arrow and DuckDB.

The one way from payloads to readings: workers of a stream or a replay ask it, and so do the account, a retry and a preview. A rule that is
null for a measurement is broken.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from bronze.schema import INSTANT
from silver.enrich import REFERENCE_KEYS, Enrichment, ReferenceData, referred
from silver.measurements import ATTRIBUTES, measured
from silver.policy import FormerConfig, SilverConfig
from silver.rules import rules_of
from silver.schema import READING_COLUMNS

PLAIN_INSTANT = pa.timestamp("us")
"""In UTC too, and does not say so: DuckDB then compares instants as numbers."""
WITH_REFERRED = """
  select case when attributes is null then referred else map_from_entries(list_concat(
    list_transform(map_entries(attributes), lambda e: {'key': e.key, 'value': coalesce(e.value, referred[e.key])}),
    list_filter(map_entries(referred), lambda e: not list_contains(map_keys(attributes), e.key)))) end as attributes
  from both_attributes
"""
"""An attribute that the event has stays as it is: the device knows better, as with its zone."""


def conditions(config: SilverConfig) -> dict[str, str]:
    """Every rule by its name, in SQL of DuckDB: true or false of each measurement. Workers get it, and need no parser."""
    return {name: f"coalesce({holds}, false)" for name, holds in rules_of(config.policy, config.rules, config.ahead_seconds).items()}


def judged(
    events: pa.Table, reference_data: ReferenceData, config: SilverConfig, former: Sequence[FormerConfig] = ()
) -> Iterator[pa.Table]:
    """Every measurement of every event, in pieces: `broken_rules`, the names of the rules that it breaks, and READING_COLUMNS.

    `former`: settings of earlier bronze batches, in order.
    """
    configs = (*(earlier.config for earlier in former), config)
    for of_config, cut in zip(configs, cut_by_batch(events, [earlier.end for earlier in former]), strict=True):
        if len(cut):
            with closing(Judge(of_config, conditions(of_config))) as judge:
                yield from judge.judged(cut, reference_data)


def cut_by_batch(events: pa.Table, ends: Sequence[int]) -> Iterator[pa.Table]:
    """Cut events into those of bronze batches before each end, and the rest."""
    for end in ends:
        is_before = pc.less(events["bronze_batch"], end)
        yield events.filter(is_before)
        events = events.filter(pc.invert(is_before))
    yield events


class EnrichedRows:
    """Measurements with all that rules ask for. `store` has one piece of them as `measurement`, so that queries are compiled once. Not for
    several threads."""

    def __init__(self, config: SilverConfig) -> None:
        self._config, self._enrichment = config, Enrichment(config.metrics, config.policy)
        self._rows = ChangingTable(retyped(self._enrichment.empty(), INSTANT, PLAIN_INSTANT))
        self.store = duckdb.connect(config={"threads": 1})
        self.store.register("measurement", self._rows)

    def pieces(self, events: pa.Table, devices: pa.Table) -> Iterator[pa.Table]:
        """MEASURED with all that rules ask for; each piece is what the store has, until the next."""
        for piece in measured(events, self._config):
            enriched = self._enrichment.enriched(piece, devices)
            self._rows.table = retyped(enriched, INSTANT, PLAIN_INSTANT)
            yield enriched


class Judge:
    """The rules and the catalogue of a conf, compiled, which takes 27 ms. Not for several threads."""

    def __init__(self, config: SilverConfig, conditions: Mapping[str, str]) -> None:
        """`conditions`: those of this conf."""
        self._rows = EnrichedRows(config)
        self._store = self._rows.store
        self._store.execute(f"prepare judge as select {' and '.join(conditions.values())} as is_good from measurement")
        names = ", ".join(f"case when {holds} then null else '{name}' end" for name, holds in conditions.items())
        self._broken = f"select list_filter([{names}], lambda name: name is not null) as broken_rules from measurement"

    def close(self) -> None:
        self._store.close()

    def accepted(self, events: pa.Table, reference_data: ReferenceData) -> Iterator[pa.Table]:
        """READING_COLUMNS of the measurements that break no rule, in pieces."""
        for rows in self._rows.pieces(events, reference_data.devices):
            is_good = pa.array(self._store.execute("execute judge").fetchnumpy()["is_good"])
            good = rows.select(READING_COLUMNS)
            yield self._with_references(good if pc.all(is_good).as_py() else good.filter(is_good), reference_data)

    def judged(self, events: pa.Table, reference_data: ReferenceData) -> Iterator[pa.Table]:
        """All measurements: see `judged`."""
        for rows in self._rows.pieces(events, reference_data.devices):
            broken = self._store.sql(self._broken).to_arrow_table()["broken_rules"].cast(pa.list_(pa.string()))
            yield self._with_references(rows.select(READING_COLUMNS), reference_data).add_column(0, "broken_rules", broken)

    def _with_references(self, readings: pa.Table, reference_data: ReferenceData) -> pa.Table:
        """Readings with attributes of references too: rules see those of the event alone."""
        if reference_data.references is None:
            return readings
        for key in REFERENCE_KEYS:
            more = referred(readings, reference_data.references, key)
            if more.null_count < len(more):
                self._store.register("both_attributes", pa.table({"attributes": readings["attributes"], "referred": more}))
                merged = self._store.sql(WITH_REFERRED).to_arrow_table()["attributes"].cast(ATTRIBUTES)
                readings = readings.set_column(readings.column_names.index("attributes"), "attributes", merged)
        return readings


class ChangingTable:
    """The table that a query compiled once reads: another one each time."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.table.schema.__arrow_c_schema__()


def retyped(table: pa.Table, before: pa.DataType, after: pa.DataType) -> pa.Table:
    """Columns of one type as another one."""
    return table.cast(pa.schema([field.with_type(after) if field.type == before else field for field in table.schema]))
