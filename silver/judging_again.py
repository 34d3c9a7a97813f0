"""Recorded readings, judged by the rules of another conf than they came under, in the groups that they would have; pure, of Arrow.

Without payloads: their device, metric, time and value are what a payload said, as long as conf reads payloads as it did.
"""

from contextlib import closing

import duckdb
import pyarrow as pa

from bronze.schema import INSTANT
from silver.enrich import Enrichment
from silver.judging import PLAIN_INSTANT, conditions, retyped
from silver.measurements import MEASURED
from silver.policy import SilverConfig
from silver.schema import READING_COLUMNS

AS_MEASURED = {"is_utf8": True, "is_readable": True, "is_measured": True, "is_local_time_unique": True}


def still_good(readings: pa.Table, devices: pa.Table, config: SilverConfig) -> pa.Table:
    """READING_COLUMNS of the readings that break no rule of the conf, with zone and groups as `devices` (rows of silver.devices) say."""
    enriched = Enrichment(config.metrics, config.policy).enriched(_as_measured(readings), devices)
    with closing(duckdb.connect(config={"threads": 1})) as store:
        store.register("measurement", retyped(enriched, INSTANT, PLAIN_INSTANT))
        is_good = store.execute(f"select {' and '.join(conditions(config).values())} as is_good from measurement").fetchnumpy()["is_good"]
    return enriched.select(READING_COLUMNS).filter(pa.array(is_good))


def _as_measured(readings: pa.Table) -> pa.Table:
    """Rows of MEASURED that readings were made of: values are in the unit of the metric."""
    constants = AS_MEASURED | {"payload_bytes": 0}
    columns = []
    for field in MEASURED:
        name = {"number": "value", "zone_text": "zone"}.get(field.name, field.name)
        if field.name in constants:
            columns.append(pa.repeat(pa.scalar(constants[field.name], field.type), len(readings)))
        else:
            columns.append(readings[name].cast(field.type) if name in readings.column_names else pa.nulls(len(readings), field.type))
    return pa.table(columns, MEASURED)
