"""Measurements that a replay would accept, and how many rows it would leave in each table of silver. Judges payloads, without Spark."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import duckdb
import pyarrow as pa

from gold.windows.spec import Group
from orchestration.jobs.ranges import pieces
from orchestration.jobs.replay import OF_SILVER
from orchestration.storage.seals import damages
from orchestration.storage.silver_inputs import reference_data, silver_config
from orchestration.storage.snapshot import Snapshot
from orchestration.storage.tables import LakeStore
from silver import account
from silver.judging import judged
from silver.schema import SOMETHING_IS_MEASURED

IDENTITY = pa.schema([("bronze_batch", pa.int64()), ("bronze_row", pa.int64()), ("part", pa.int32())])
GOOD = ("device_id", "metric", "event_time", "ingested_at", "groups", *IDENTITY.names, "kind")
"""Columns of `good`. Grain: one accepted measurement. `kind`: as it is recorded: late, duplicate, or null."""
MEASURED = """
  create table measured (
    device_id varchar, metric varchar, event_time timestamptz, ingested_at timestamptz, groups varchar[],
    bronze_batch bigint, bronze_row bigint, part int, kind varchar
  )
"""
KEPT = """
  create table good as
  from measured qualify row_number() over (
    partition by device_id, metric, event_time order by bronze_batch, coalesce(kind = 'duplicate', false), bronze_row, part
  ) = 1
"""
"""One of several measurements of a key: see silver.readings.REPLAYED."""


class TableChange(NamedTuple):
    """`device_group`: None for tables of silver. `rows_before`: None where the table is damaged."""

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
    """Make `good`, and yield what becomes of the tables of silver."""
    lake, up_to = inputs.lake, inputs.snapshot.bronze_batch
    first = up_to + 1 if inputs.first is None else inputs.first
    store.execute(MEASURED)
    for name, kind in (("silver.readings", None), ("silver.late", "late")) if first else ():
        for rows in pieces(lake, name, f"select * from rows where bronze_batch <= {min(first - 1, up_to)}"):
            _insert(store, rows.append_column("kind", pa.repeat(pa.scalar(kind, pa.string()), len(rows))))
    broken = _judge_again(store, inputs, first)
    store.execute(KEPT)
    if inputs.first is None:
        return
    kept = dict(store.sql("select coalesce(kind = 'late', false), count(*) from good group by all").fetchall())
    measured = store.sql("select count(*) from measured").fetchall()[0][0]
    copied = {name: _count(lake, name, first - 1) if first else 0 for name in ("silver.quarantine", "silver.duplicates")}
    after = {
        "silver.readings": kept.get(False, 0),
        "silver.quarantine": broken + copied["silver.quarantine"],
        "silver.late": kept.get(True, 0),
        "silver.duplicates": measured - sum(kept.values()) + copied["silver.duplicates"],
    }
    for name in OF_SILVER:
        yield TableChange(None, name, None if damages(lake.table_path(name)) else _count(lake, name, up_to), after[name])


def _judge_again(store: duckdb.DuckDBPyConnection, inputs: Inputs, first: int) -> int:
    """Add good measurements of bronze batches from `first` on to `measured`; returns how many are broken."""
    lake, in_reach = inputs.lake, f"bronze_batch >= {first} and bronze_batch <= {inputs.snapshot.bronze_batch}"
    recorded = {"duplicate": ("silver.duplicates", in_reach), "late": ("silver.late", f"{in_reach} and cause = 'late'")}
    kinds = pa.concat_tables(
        rows.append_column("kind", pa.repeat(kind, len(rows)))
        for kind, (name, where) in recorded.items()
        for rows in (IDENTITY.empty_table(), *pieces(lake, name, f"select {', '.join(IDENTITY.names)} from rows where {where}"))
    )
    devices, config, broken = reference_data(lake)._replace(devices=inputs.counting), silver_config(lake.conf), 0
    for events in pieces(lake, "bronze.events", f"select * from rows where {in_reach}"):
        for measurements in judged(events, devices, config):
            bad, good = account.split(measurements)
            broken += sum(rules != [SOMETHING_IS_MEASURED] for rules in bad["broken_rules"].to_pylist())
            _insert(store, good.append_column("kind", account.joined(good, account.IDENTITY, kinds)["kind"]))
    return broken


def _count(lake: LakeStore, name: str, up_to: int) -> int:
    condition = f"bronze_batch <= {up_to}"
    if name == "silver.quarantine":
        condition += f" and not array_to_string(broken_rules, ',') = '{SOMETHING_IS_MEASURED}'"
    return sum(row["n"] for rows in pieces(lake, name, f"select count(*) as n from rows where {condition}") for row in rows.to_pylist())


def _insert(store: duckdb.DuckDBPyConnection, rows: pa.Table) -> None:
    if len(rows):
        store.register("arriving", rows.select([*GOOD]))
        store.execute("insert into measured from arriving")
        store.unregister("arriving")
