"""Measurements that a replay would accept, and what it would leave in each table of silver. Without Spark.

Recorded readings are judged by today's rules and put into the groups that they would have. Payloads are read again only of events with a
row in quarantine or among the duplicates, and of all where conf reads payloads otherwise now.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from expectations.condition import condition
from gold.windows.spec import Group
from orchestration.jobs.ranges import pieces
from orchestration.storage.bindings import is_read_otherwise
from orchestration.storage.delta import is_table, path_of, table_of
from orchestration.storage.references import TABLE as REFERENCES
from orchestration.storage.seals import damages
from orchestration.storage.silver_inputs import silver_config
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.tables import LakeStore
from silver import account
from silver.enrich import ReferenceData
from silver.judging import judged
from silver.judging_again import still_good
from silver.rules import READING
from silver.schema import SOMETHING_IS_MEASURED

OF_SILVER = ("silver.readings", "silver.quarantine", "silver.late", "silver.duplicates")
GOOD = {
    "device_id": "varchar",
    "metric": "varchar",
    "event_time": "timestamptz",
    "groups": "varchar[]",
    "bronze_batch": "bigint",
    "bronze_row": "bigint",
    "part": "int",
    "kind": "varchar",
}
"""Types by column. Grain: one accepted measurement. `kind`: late, duplicate, or null for a reading."""
NEW = """
  delete from good where rowid in (
    select row from (
      select good.rowid as row, row_number() over (
        partition by device_id, metric, event_time order by bronze_batch, coalesce(kind = 'duplicate', false), bronze_row, part
      ) as place
      from good semi join new using (device_id, metric, event_time)
    ) where place > 1
  )
"""
"""Keep one of several measurements of one key: see silver.readings.REPLAYED. All that is recorded has keys of its own already."""


class TableChange(NamedTuple):
    """COLUMNS. `device_group`: None for tables of silver. `rows_before`: None where the table is damaged."""

    device_group: str | None
    table: str
    rows_before: int | None
    rows_after: int
    windows_that_vanish: int | None = None


class Inputs(NamedTuple):
    """The inputs of a replay. `first`: the first bronze batch that is judged again; None: none, as only gold is built.

    `counting`: the registry as the next generation counts devices.
    """

    lake: LakeStore
    snapshot: Snapshot
    first: int | None
    groups: Sequence[Group]
    counting: pa.Table


def silver_after(store: duckdb.DuckDBPyConnection, inputs: Inputs) -> Iterator[TableChange]:
    """Make `good`, one row a key: readings, and late rows where `kind` is late. Yield what becomes of the tables of silver."""
    lake, up_to = inputs.lake, inputs.snapshot.bronze_batch
    first = up_to + 1 if inputs.first is None else inputs.first
    columns = ", ".join(f"{name} {kind}" for name, kind in GOOD.items())
    store.execute(f"create table good ({columns}); create table new ({columns})")
    is_damaged = inputs.first is not None and any(damages(lake.table_path(name)) for name in OF_SILVER[:2])
    is_whole = is_damaged or (inputs.first is not None and _needs_payloads(inputs))
    broken = 0
    if not is_damaged:
        last = first - 1 if is_whole else up_to
        for name, is_late in (("silver.readings", "false"), ("silver.late", f"cause = 'late' or bronze_batch < {first}")):
            recorded_rows = pieces(lake, name, f"select *, {is_late} as is_late from rows where bronze_batch <= {last}")
            broken += sum(_add_recorded(store, inputs, first, rows) for rows in recorded_rows)
    duplicates = 0
    if inputs.first is not None:
        broken += _judge_payloads(store, inputs, is_whole=is_whole)
        measured = store.sql("select count(*) from good").fetchall()[0][0]
        store.execute(NEW)
        duplicates = measured - store.sql("select count(*) from good").fetchall()[0][0]
        recorded = {name: None if is_damaged and name in OF_SILVER[:2] else _count(lake, name, up_to) for name in OF_SILVER}
        before_first = {name: _count(lake, name, first - 1) if first else 0 for name in ("silver.quarantine", "silver.duplicates")}
        kept = dict(store.sql("select coalesce(kind = 'late', false), count(*) from good group by all").fetchall())
        after = {"silver.readings": kept.get(False, 0), "silver.late": kept.get(True, 0)}
        after |= {"silver.quarantine": broken + before_first["silver.quarantine"]}
        after |= {"silver.duplicates": duplicates + before_first["silver.duplicates"]}
        yield from (TableChange(None, name, recorded[name], after[name]) for name in OF_SILVER)


def _needs_payloads(inputs: Inputs) -> bool:
    """Whether recorded columns do not say what conf makes of the payloads now."""
    lake, conf = inputs.lake, inputs.lake.conf
    if is_read_otherwise(lake):
        return True
    rules = [condition(rule.holds, READING) for rule in conf.rules]
    # Recorded attributes are also those of references, and recorded zones also those of the registry; rules see only those of the event.
    asks_for_attributes = any(rule.attributes for rule in rules) and is_table(path_of(conf.lake, REFERENCES))
    return asks_for_attributes or any("zone" in rule.columns for rule in rules)


def _reference_data(inputs: Inputs) -> ReferenceData:
    path = path_of(inputs.lake.conf.lake, REFERENCES)
    return ReferenceData(inputs.counting, table_of(path).combine_chunks() if is_table(path) else None)


def _add_recorded(store: duckdb.DuckDBPyConnection, inputs: Inputs, first: int, rows: pa.Table) -> int:
    """Add recorded rows that keep the rules to `good`, in their groups; returns how many do not."""
    rows = rows.append_column("kind", pc.if_else(rows["is_late"], pa.scalar("late"), pa.scalar(None, pa.string())))
    is_judged = pc.greater_equal(rows["bronze_batch"], first)
    copied, again = rows.filter(pc.invert(is_judged)), rows.filter(is_judged)
    _insert(store, "good", copied)
    if not len(again):
        return 0
    good = still_good(again, inputs.counting, silver_config(inputs.lake.conf))
    kinds = account.joined(good, account.IDENTITY, again.select([*account.IDENTITY, "kind"]))
    _insert(store, "good", good.append_column("kind", kinds["kind"]))
    return len(again) - len(good)


def _judge_payloads(store: duckdb.DuckDBPyConnection, inputs: Inputs, *, is_whole: bool) -> int:
    """Add measurements that are recorded as no reading, and good now, to `new` and `good`; returns how many are broken.

    `is_whole`: all events are read, and nothing is recorded of them but which were late, and which duplicates.
    """
    lake, first, up_to = inputs.lake, inputs.first, inputs.snapshot.bronze_batch
    in_reach = f"bronze_batch >= {first} and bronze_batch <= {up_to}"
    kinds = {"duplicate": _identities(lake, "silver.duplicates", in_reach)}
    kinds |= {"late": _identities(lake, "silver.late", f"{in_reach} and cause = 'late'")} if is_whole else {}
    of_kind = pa.concat_tables(rows.append_column("kind", pa.repeat(kind, len(rows))) for kind, rows in kinds.items())
    elsewhere = [] if is_whole else [_identities(lake, name, in_reach) for name in ("silver.readings", "silver.late")]
    wanted = None if is_whole else pa.concat_tables([kinds["duplicate"], _identities(lake, "silver.quarantine", in_reach)])
    config, references, broken = silver_config(lake.conf), _reference_data(inputs), 0
    for events in pieces(lake, "bronze.events", f"select * from rows where {in_reach}"):
        asked = events if wanted is None else account.among(events, account.OF_EVENT, wanted)
        for measured in judged(asked, references, config) if len(asked) else ():
            for placed in elsewhere:
                measured = account.among(measured, account.IDENTITY, placed, "left anti")  # noqa: PLW2901
            bad, good = account.split(measured)
            broken += sum(rules != [SOMETHING_IS_MEASURED] for rules in bad["broken_rules"].to_pylist())
            added = good.append_column("kind", account.joined(good, account.IDENTITY, of_kind)["kind"])
            for table in ("good", "new"):
                _insert(store, table, added)
    return broken


def _identities(lake: LakeStore, name: str, where: str) -> pa.Table:
    columns = ", ".join(account.IDENTITY)
    schema = pa.schema([("bronze_batch", pa.int64()), ("bronze_row", pa.int64()), ("part", pa.int32())])
    if not is_table(lake.table_path(name)):
        return schema.empty_table()
    return pa.concat_tables(
        [schema.empty_table(), *(rows.cast(schema) for rows in pieces(lake, name, f"select {columns} from rows where {where}"))]
    )


def _count(lake: LakeStore, name: str, up_to: int) -> int:
    condition = f"bronze_batch <= {up_to}"
    if name == "silver.quarantine":
        condition += f" and not array_to_string(broken_rules, ',') = '{SOMETHING_IS_MEASURED}'"
    rows = pa.concat_tables(pieces(lake, name, f"select count(*) as n from rows where {condition}"))
    return int(rows["n"][0].as_py())


def _insert(store: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    if len(rows):
        store.register("arriving", rows.select([*GOOD]))
        store.execute(f"insert into {table} from arriving")
        store.unregister("arriving")
