"""Readings as flows take them: with a column for each condition of the flow. Of DuckDB, without Spark."""

import duckdb
import pyarrow as pa

from bronze.schema import INSTANT
from expectations.condition import condition
from gold.flows.slices import READING
from gold.flows.spec import FlowSpec
from orchestration.storage.delta import literal
from silver.judging import PLAIN_INSTANT, retyped
from silver.rules import READING as COLUMNS


def with_predicates(flow: FlowSpec, readings: pa.Table) -> pa.Table:
    """READING of readings, then `fits_<n>` for each predicate, and the `key` of a join by one."""
    if not flow.predicates:
        return readings.select(READING.names)
    met = ", ".join(f"{condition(text, COLUMNS).sql} as fits_{at}" for at, text in enumerate(flow.predicates))
    if flow.join is not None and flow.join.key is not None:
        met += f", element_at(attributes, {literal(flow.join.key)})[1] as key"
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("reading", retyped(readings, INSTANT, PLAIN_INSTANT))
        rows = connection.sql(f"select {', '.join(READING.names)}, {met} from reading").to_arrow_table()
    return retyped(rows, PLAIN_INSTANT, INSTANT)
