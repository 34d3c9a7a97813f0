"""Rows of gold.aggregates from which windows that are a chain go on."""

from collections.abc import Sequence

import pyarrow as pa

from gold.schema import AGGREGATES, CARRY, WINDOW_KEY
from gold.windows.spec import IN_ORDER, Group
from orchestration.engine.lake import Lake
from orchestration.storage.delta import ask, literal, open_table
from orchestration.storage.views import of_groups
from silver.aggregation import Aggregation

NEWEST = """
  select device_group, device_id, metric, window_end, carry from (
    select device_group, device_id, metric, window_end, carry,
      row_number() over (partition by device_group, device_id, metric order by window_end desc, revision desc) as nth
    from history where carry is not null and metric in {metrics} and {groups} and {where}
  ) where nth = 1
"""
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
    words = {"metrics": literal(linked_metrics(lake, groups)), "groups": of_groups([group.name for group in groups]), "where": where}
    table = open_table(lake.gold(stream)[0].location)
    return pa.table(ask(NEWEST.format(**words), {"history": table}).read_all()).cast(CHAINED)
