"""Events to measurements with the rules that they break, in the process: what readings.with_rule_results says, without Spark.

For the account and a retry, which ask about a few events of many: to plan that in Spark takes longer than to do it.
"""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import sqlglot

from bronze.schema import INSTANT
from expectations.translation import to_duckdb
from silver.config import SilverConfig
from silver.enrich import VALUED, VERSIONS, described
from silver.measurements import measured
from silver.rules import rules_of
from silver.schema import READING_COLUMNS

PLAIN_INSTANT = pa.timestamp("us")
"""In UTC too, and does not say so: DuckDB then compares instants as numbers."""


def evaluation(config: SilverConfig) -> str | None:
    """The SQL of `evaluated`; None where a rule of conf has no translation, so that Spark has to be asked."""
    try:
        return _sql(config)
    except ValueError:
        return None


def evaluated(
    events: pa.Table, devices: pa.Table, catalogue: tuple[pa.Table, pa.Table], config: SilverConfig, sql: str
) -> Iterator[pa.Table]:
    """Every measurement of every event, in pieces: READING_COLUMNS and `broken_rules`. `sql`: of `evaluation`."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, table in zip(("devices", "metrics", "conversions"), (devices, *catalogue), strict=True):
            connection.register(name, retyped(table, INSTANT, PLAIN_INSTANT))
        for piece in measured(events, config):
            connection.register("measured", retyped(piece, INSTANT, PLAIN_INSTANT))
            yield retyped(connection.sql(sql).to_arrow_table(), PLAIN_INSTANT, INSTANT)


def _sql(config: SilverConfig) -> str:
    valued = VALUED.format(measurements="measured", metrics="metrics", conversions="conversions")
    versions = VERSIONS.format(devices="devices")
    enriched = described(config.policy).format(measurements=f"({valued})", metrics="metrics", versions=f"({versions})")
    (enriched,) = sqlglot.transpile(enriched, read="spark", write="duckdb")
    rules = [(rule.name, to_duckdb(rule.holds)) for rule in rules_of(config.policy, config.rules)]
    named = ", ".join(f"case when coalesce({holds}, false) then null else '{name}' end" for name, holds in rules)
    broken = f"list_filter([{named}], lambda name: name is not null)"
    return f"select {broken} as broken_rules, {', '.join(READING_COLUMNS)} from ({enriched})"


def retyped(table: pa.Table, before: pa.DataType, after: pa.DataType) -> pa.Table:
    """Columns of one type as another one."""
    return table.cast(pa.schema([field.with_type(after) if field.type == before else field for field in table.schema]))
