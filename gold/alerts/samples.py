"""Samples of a slice, whatever an alert looks at."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from gold.alerts.intervals import interval_samples
from gold.alerts.signals import NOTHING_CARRIED, Carried, row_samples
from gold.alerts.spec import Alert

if TYPE_CHECKING:
    import duckdb


def samples(
    store: "duckdb.DuckDBPyConnection", alert: Alert, rows: str, walls: Sequence[int], carried: Carried = NOTHING_CARRIED
) -> tuple[pa.Table, Carried]:
    """Samples in order of step, entity and time, as SAMPLES has them; and what the next slice carries.

    `rows`: a table, or a query in brackets, of silver.readings for reading and count, of gold.aggregates or gold.vectors, or of ops.ledger,
    there with the wall clock of their batch as `ingested_at`; and beside it the `step` of each. Vectors of an alert on anomalies have the
    columns score, is_anomaly and reason of gold.anomalies too. `walls`: the wall clock of each step.
    """
    ways = interval_samples if alert.signal.kind in {"count", "account"} else row_samples
    return ways(store, alert, rows, walls, carried)
