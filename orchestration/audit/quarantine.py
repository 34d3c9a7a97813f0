"""The content of silver.quarantine now: without Spark, and beside a running pipeline."""

from collections.abc import Iterator
from typing import Any

from orchestration.audit.reconciliation.account import SETTINGS, Rows
from orchestration.engine.lake import Lake
from orchestration.rendering import values
from orchestration.storage.delta import ask, is_table, literal, open_table
from orchestration.storage.silver_inputs import silver_config
from orchestration.storage.views import CONDITIONS
from silver.reasons import Reasons

TABLE = "silver.quarantine"
COUNTED = ("rule", "source", "rows", "first_ingested_at", "last_ingested_at")
IDENTITY = ("bronze_batch", "bronze_row", "part")
OF_EVENT = ("source", "position", "received_at", "ingested_at")
SHOWN = (*IDENTITY, *OF_EVENT, "broken_rules", "reason", "device_id", "metric", "event_time", "value", "payload")

BY_RULE = """
  select rule, source, count(*) as rows, min(ingested_at) as first_ingested_at, max(ingested_at) as last_ingested_at
  from (select unnest(broken_rules) as rule, source, ingested_at from quarantine where {of})
  group by rule, source order by rows desc, rule, source
"""
BY_FILE = """
  select source, regexp_replace(position, '[/ ][0-9]+$', '') as file, count(*) as rows, max(ingested_at) as last_ingested_at
  from quarantine where array_has(broken_rules, {rule}) group by 1, 2 order by rows desc, file limit {limit}
"""
"""A file, or what a message came by: a topic and its partition, or a request."""
STORED = ", ".join(name for name in (*SHOWN, "header") if name != "reason")
NEWEST = f"select {STORED} from quarantine where {{of}} order by ingested_at desc, {', '.join(IDENTITY)} limit {{limit}}"


def is_there(lake: Lake) -> bool:
    """Whether the lake has a quarantine, however empty."""
    return is_table(lake.table_path(TABLE))


def counted(lake: Lake, condition: str = "true") -> Rows:
    """One row a rule and source, COUNTED; a measurement that breaks two rules counts under both. `of`: SQL, which rows."""
    return _ask(lake, BY_RULE.format(of=condition))


def shown(lake: Lake, rule: str | None, source: str | None, limit: int) -> Rows:
    """The newest rows of that rule and source, SHOWN; None: of any defect, or any source. `reason`: by today's conf, of all its rules."""
    of_rule = CONDITIONS[TABLE] if rule is None else f"array_has(broken_rules, {literal(rule)})"
    of_source = "true" if source is None else f"source = {literal(source)}"
    rows, reasons = _ask(lake, NEWEST.format(of=f"{of_rule} and {of_source}", limit=limit)), _reasons(lake)
    return [row | {"reason": "; ".join(dict.fromkeys(reasons.of(row).values()))} for row in rows]


def counted_by_file(lake: Lake, rule: str, limit: int) -> Rows:
    """Count the rows that break a rule by source and file, the most first."""
    return _ask(lake, BY_FILE.format(rule=literal(rule), limit=limit))


def examples(lake: Lake, condition: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the rows of `counted`, each with the newest row that it counts, SHOWN; its reason is that of the rule."""
    reasons = _reasons(lake)
    for row in counted(lake, condition):
        of_row = f"array_has(broken_rules, {literal(row['rule'])}) and source = {literal(row['source'])} and {condition}"
        (example,) = _ask(lake, NEWEST.format(of=of_row, limit=1))
        yield row, example | {"reason": reasons.of(example).get(row["rule"], "")}


def _reasons(lake: Lake) -> Reasons:
    return Reasons(silver_config(lake.conf), lake.conf.devices)


def _ask(lake: Lake, sql: str) -> Rows:
    if not is_there(lake):
        return []
    rows = ask(sql, {"quarantine": open_table(lake.table_path(TABLE))}, SETTINGS).read_all()
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*map(values, rows.columns), strict=True)]
