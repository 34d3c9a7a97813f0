"""Whether the tables hold what ops.ledger counted: events = what bronze has, and readings, quarantine, late and duplicates as it says.

Rows are counted by bronze batch; `tidemark ledger` proves the same by their identities.
"""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from orchestration.quality.measures.context import Context
from orchestration.quality.measures.findings import Row, judged, not_checked
from orchestration.quality.outcome import Outcome

TABLES = {
    "events": "bronze.events",
    "readings": "silver.readings",
    "quarantined": "silver.quarantine",
    "late": "silver.late",
    "duplicates": "silver.duplicates",
}
BALANCE = """
  with said as (select bronze_batch, unnest([{names}]) as kind, unnest([{counts}]) as n from written),
  found as ({found}),
  expected as (select bronze_batch, kind, sum(n) as said from said group by all),
  counted as (select bronze_batch, kind, sum(n) as found from found where bronze_batch <= $accounted group by all)
  select bronze_batch, kind, coalesce(said, 0) as said, coalesce(found, 0) as found
  from expected full join counted using (bronze_batch, kind)
  where said is distinct from found and coalesce(said, 0) <> coalesce(found, 0) order by bronze_batch, kind
"""


def balanced(context: Context, table: str) -> Outcome:
    """In every bronze batch that the ledger has passed the tables hold as many rows as it says."""
    from orchestration.jobs.retry import begun

    lake = context.lake
    if begun(lake) is not None:
        return not_checked("a retry of quarantine is under way")
    if context.ledger is None:
        return not_checked("there is no account to compare with")
    context.store.register("written", context.ledger)
    try:
        (passed,) = context.ask("select max(bronze_batch) as batch, count(distinct bronze_batch) as batches, sum(events) as n from written")
        found = " union all ".join(
            f"""select bronze_batch, '{kind}' as kind, count(*) as n from "{context.shown(name)}" group by all"""
            for kind, name in TABLES.items()
        )
        names, counts = ", ".join(f"'{kind}'" for kind in TABLES), ", ".join(TABLES)
        wrong = context.ask(BALANCE.format(names=names, counts=counts, found=found), accounted=passed["batch"])
    finally:
        context.store.unregister("written")
    return judged(wrong, _told, f"{passed['n']:,} events of {passed['batches']:,} bronze batches are accounted for")


def _told(row: Row) -> str:
    return f"bronze batch {row['bronze_batch']}: {TABLES[row['kind']]} holds {row['found']:,} rows, ops.ledger counted {row['said']:,}"


def ledger(path: Path) -> pa.Table | None:
    """Rows of ops.ledger; None without any."""
    rows = DeltaTable(path).to_pyarrow_table() if DeltaTable.is_deltatable(str(path)) else None
    return rows if rows is not None and rows.num_rows else None
