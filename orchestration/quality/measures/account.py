"""Compares row counts of bronze and silver with ops.ledger, by bronze batch. `tidemark ledger` proves the same by identities."""

import pyarrow as pa

from orchestration.location import Location
from orchestration.quality.measures.context import Context
from orchestration.quality.measures.findings import Row, not_checked, outcome_of
from orchestration.quality.outcome import Outcome
from orchestration.quality.store import copy_rows
from orchestration.storage.delta import is_table, open_table

COUNTED = {
    "events": "bronze.events",
    "readings": "silver.readings",
    "quarantined": "silver.quarantine",
    "late": "silver.late",
    "duplicates": "silver.duplicates",
}
BALANCE = """
  with expected as (
    select bronze_batch, kind, sum(n) as said from (unpivot (select bronze_batch, {counts} from written) on {counts} into name kind value n)
    group by all
  ),
  counted as (select bronze_batch, kind, sum(n) as found from ({counted}) where bronze_batch <= $accounted group by all)
  select bronze_batch, kind, coalesce(said, 0) as said, coalesce(found, 0) as found
  from expected full join counted using (bronze_batch, kind)
  where said is distinct from found and coalesce(said, 0) <> coalesce(found, 0) order by bronze_batch, kind
"""


def balanced(context: Context, table: str) -> Outcome:
    """In every bronze batch up to the ledger's newest, the tables hold as many rows as it counted."""
    from orchestration.jobs.retry import pending

    lake = context.lake
    if pending(lake) is not None:
        return not_checked("a retry of quarantine is under way")
    if context.ledger is None:
        return not_checked("there is no account to compare with")
    copy_rows(context.store, "written", context.ledger)
    (passed,) = context.ask("select max(bronze_batch) as batch, count(distinct bronze_batch) as batches, sum(events) as n from written")
    counts_of_tables = " union all ".join(
        f"""select bronze_batch, '{kind}' as kind, count(*) as n from "{context.view_of(name)}" group by all"""
        for kind, name in COUNTED.items()
    )
    wrong = context.ask(BALANCE.format(counts=", ".join(COUNTED), counted=counts_of_tables), accounted=passed["batch"])
    return outcome_of(wrong, _describe, f"{passed['n']:,} events of {passed['batches']:,} bronze batches are accounted for")


def _describe(row: Row) -> str:
    return f"bronze batch {row['bronze_batch']}: {COUNTED[row['kind']]} holds {row['found']:,} rows, ops.ledger counted {row['said']:,}"


def ledger(path: Location) -> pa.Table | None:
    """Rows of ops.ledger; None without any."""
    rows = open_table(path).to_pyarrow_table() if is_table(path) else None
    return rows if rows is not None and rows.num_rows else None
