"""Rows of gold.aggregates from which windows that are a chain go on."""

from collections.abc import Sequence

import pyarrow as pa

from gold.schema import AGGREGATES, CARRY, WINDOW_KEY
from gold.windows.spec import IN_ORDER, Group
from orchestration.engine.lake import Lake
from orchestration.storage.delta import ask, literal, open_table
from orchestration.storage.live_views import NEWEST
from orchestration.storage.views import of_groups
from silver.aggregation import Aggregation

CHAINED = pa.schema([*(AGGREGATES.field(name) for name in WINDOW_KEY), CARRY])
CHAIN = CHAINED.names


def linked_metrics(lake: Lake, groups: Sequence[Group]) -> list[str]:
    """List the metrics of the groups whose windows are a chain."""
    return sorted({name for group in groups for name in group.metrics if lake.conf.metrics[name].aggregation in IN_ORDER})


def holds(lake: Lake, groups: Sequence[Group]) -> bool:
    """Whether a value of the groups may be that of a window without a reading."""
    return any(lake.conf.metrics[name].aggregation is Aggregation.TIME_WEIGHTED_AVERAGE for group in groups for name in group.metrics)


def newest_carries(lake: Lake, stream: str, groups: Sequence[Group], where: str) -> pa.Table:
    """Return the newest window of each device and metric among those that SQL chooses, with what it carries."""
    chosen = f"metric in {literal(linked_metrics(lake, groups))} and {of_groups([group.name for group in groups])} and {where}"
    table = open_table(lake.gold(stream)[0].location)
    return pa.table(ask(NEWEST.format(rows=f"select * from history where {chosen}"), {"history": table}).read_all()).cast(CHAINED)
