"""What is in silver.quarantine now: without Spark, and beside a running pipeline."""

from collections.abc import Iterator
from typing import Any

from orchestration.audit.reconciliation.account import SETTINGS, Rows
from orchestration.engine.lake import Lake
from orchestration.rendering import values
from orchestration.storage.delta import ask, is_table, literal, open_table

TABLE = "silver.quarantine"
COUNTED = ("rule", "source", "rows", "first_ingested_at", "last_ingested_at")
IDENTITY = ("bronze_batch", "bronze_row", "part")
OF_EVENT = ("source", "position", "received_at", "ingested_at")
SHOWN = (*IDENTITY, *OF_EVENT, "broken_rules", "device_id", "metric", "event_time", "value", "payload")

BY_RULE = """
  select rule, source, count(*) as rows, min(ingested_at) as first_ingested_at, max(ingested_at) as last_ingested_at
  from (select unnest(broken_rules) as rule, source, ingested_at from quarantine where {of})
  group by rule, source order by rows desc, rule, source
"""
EXAMPLE = f"select {', '.join(SHOWN)} from quarantine where {{of}} and array_has(broken_rules, {{rule}}) and source = {{source}} limit 1"
NEWEST = f"select {', '.join(SHOWN)} from quarantine where {{of}} order by ingested_at desc, {', '.join(IDENTITY)} limit {{limit}}"


def is_there(lake: Lake) -> bool:
    """Whether the lake has a quarantine, however empty."""
    return is_table(lake.table_path(TABLE))


def counted(lake: Lake, of: str = "true") -> Rows:
    """One row a rule and source, COUNTED; a measurement that breaks two rules counts under both. `of`: SQL, which rows."""
    return _ask(lake, BY_RULE.format(of=of))


def shown(lake: Lake, rule: str | None, source: str | None, limit: int) -> Rows:
    """The newest rows of that rule and source, SHOWN; None: of any."""
    of_rule = "true" if rule is None else f"array_has(broken_rules, {literal(rule)})"
    of_source = "true" if source is None else f"source = {literal(source)}"
    return _ask(lake, NEWEST.format(of=f"{of_rule} and {of_source}", limit=limit))


def examples(lake: Lake, of: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The same rows, each with one row of quarantine that it counts, SHOWN."""
    for row in counted(lake, of):
        (example,) = _ask(lake, EXAMPLE.format(of=of, rule=literal(row["rule"]), source=literal(row["source"])))
        yield row, example


def _ask(lake: Lake, sql: str) -> Rows:
    if not is_there(lake):
        return []
    rows = ask(sql, {"quarantine": open_table(lake.table_path(TABLE))}, SETTINGS).read_all()
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*map(values, rows.columns), strict=True)]
