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
from silver.enrich import KEYS_OF_REFERENCES, REFERENCE_VERSIONS, VALUED, VERSIONS, Catalogue, described, referred
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


def holds_all(config: SilverConfig) -> str:
    """A condition of DuckDB that is true for what breaks no rule, over what `enriched` has; ValueError where a rule has no translation."""
    return " and ".join(f"coalesce({to_duckdb(rule.holds)}, false)" for rule in rules_of(config.policy, config.rules))


def evaluated(  # noqa: PLR0917
    events: pa.Table, devices: pa.Table, catalogue: Catalogue, config: SilverConfig, sql: str, references: pa.Table | None = None
) -> Iterator[pa.Table]:
    """Every measurement of every event, in pieces: READING_COLUMNS and `broken_rules`. `sql`: of `evaluation`."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, table in zip(("devices", "metrics", "conversions"), (devices, *catalogue), strict=True):
            connection.register(name, retyped(table, INSTANT, PLAIN_INSTANT))
        if references is not None:
            connection.register("of_references", retyped(references, INSTANT, PLAIN_INSTANT))
            connection.execute(f"create table versions as {REFERENCE_VERSIONS.format(references='of_references')}")
            sql = _with_references(sql)
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


def _with_references(sql: str) -> str:
    for key_of in KEYS_OF_REFERENCES:
        more = referred(["broken_rules", *READING_COLUMNS], key_of).format(readings="evaluated", versions="versions")
        (more,) = sqlglot.transpile(more, read="spark", write="duckdb")
        sql = f"with evaluated as ({sql}) {more}"
    return sql


def retyped(table: pa.Table, before: pa.DataType, after: pa.DataType) -> pa.Table:
    """Columns of one type as another one."""
    return table.cast(pa.schema([field.with_type(after) if field.type == before else field for field in table.schema]))
