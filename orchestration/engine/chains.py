"""Rows of gold.aggregates from which windows that are a chain go on."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import pyarrow as pa
import pyarrow.compute as pc

from gold.schema import AGGREGATES, CARRY, WINDOW_KEY
from gold.windows.revisions import latest
from gold.windows.spec import IN_ORDER, Group
from orchestration.engine.lake import Lake
from orchestration.storage.delta import OpenTable, ask, in_log, instant, literal, open_table
from orchestration.storage.live_views import NEWEST
from orchestration.storage.views import of_groups
from silver.aggregation import Aggregation

CHAINED = pa.schema([*(AGGREGATES.field(name) for name in WINDOW_KEY), CARRY])
CHAIN = CHAINED.names
KEPT = CHAINED.append(AGGREGATES.field("revision"))
KEY = WINDOW_KEY[:3]
"""Windows of one device group, device and metric are a chain."""
Key = tuple[str, str, str]
FIRST_STEP = 86_400_000_000
"""How far the first look for a device goes back, in microseconds; each further one goes four times as far."""


def linked_metrics(lake: Lake, groups: Sequence[Group]) -> list[str]:
    """List the metrics of the groups whose windows are a chain."""
    return sorted({name for group in groups for name in group.metrics if lake.conf.metrics[name].aggregation in IN_ORDER})


def holds(lake: Lake, groups: Sequence[Group]) -> bool:
    """Whether a value of the groups may be that of a window without a reading."""
    return any(lake.conf.metrics[name].aggregation is Aggregation.TIME_WEIGHTED_AVERAGE for group in groups for name in group.metrics)


def keys_of(rows: pa.Table) -> list[Key]:
    return list(zip(*(rows[name].to_pylist() for name in KEY), strict=True))


class NewestCarries:
    """Keeps the newest window of each device and metric of a stream, with what it carries, as far back as anybody asked for.

    What was read is not read again: a batch reads what was written since the one before it, however much the table holds, and goes back by
    growing steps only for a device that it does not know. Rows that a compaction writes again change nothing.
    """

    def __init__(self, lake: Lake, stream: str, groups: Sequence[Group], where: str = "true") -> None:
        self._location = lake.gold(stream)[0].location
        self._where = f"metric in {literal(linked_metrics(lake, groups))} and {of_groups([group.name for group in groups])} and {where}"
        self._rows = KEPT.empty_table()
        self._first: int | None = None
        self._files = frozenset[str]()

    def before(self, gold_batch: int, since: int, chains: AbstractSet[Key]) -> pa.Table:
        """Return the newest windows of batches before one, so that a batch that is repeated does not find its own: those that end from
        `since` on, in microseconds since 1970, and those of `chains`.
        """
        table = open_table(self._location)
        files = in_log(table, "path", "min.gold_batch", "max.gold_batch", "min.window_end")
        if not len(files):
            return CHAINED.empty_table()
        is_before = f"gold_batch < {gold_batch}"
        new = files.filter(pa.array([path not in self._files for path in files["path"].to_pylist()], pa.bool_()))
        if self._first is not None and len(new):
            self._add(table, f"{is_before} and gold_batch >= {pc.min(new['min.gold_batch'])} and window_end >= {instant(self._first)}")
        self._files = frozenset(files.filter(pc.less(files["max.gold_batch"], gold_batch))["path"].to_pylist())
        oldest, step = pc.min(files["min.window_end"].cast(pa.int64())).as_py(), FIRST_STEP
        while self._first is None or (self._first > oldest and not chains <= {*keys_of(self._rows)}):
            first, end = (since, "true") if self._first is None else (self._first - step, f"window_end < {instant(self._first)}")
            self._add(table, f"{is_before} and window_end >= {instant(first)} and {end}")
            self._first, step = first, step * 4
        is_recent = pc.greater_equal(self._rows["window_end"].cast(pa.int64()), since)
        devices = pa.array([device for _, device, _ in chains], pa.string())
        return self._rows.filter(pc.or_(is_recent, pc.is_in(self._rows["device_id"], devices))).select(CHAIN)

    def _add(self, table: OpenTable, where: str) -> None:
        rows = ask(NEWEST.format(rows=f"select * from history where {self._where} and {where}"), {"history": table}).read_all()
        self._rows = latest(pa.concat_tables([self._rows, rows.cast(KEPT)]), KEY, ("window_end", "revision"))
