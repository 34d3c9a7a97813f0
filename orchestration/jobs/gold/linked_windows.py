"""Amended windows of a chain: those with late rows, and those behind them that go on from them with another `carry` now."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gold.schema import AGGREGATES, WINDOW_KEY
from gold.windows.amendments import OF_WINDOW
from gold.windows.chains import chained
from gold.windows.links import NEVER
from gold.windows.revisions import latest
from gold.windows.spec import Group
from orchestration.engine.chains import CHAIN, FIRST_STEP, Key, NewestCarries, linked_metrics
from orchestration.engine.lake import Lake
from orchestration.engine.session import from_arrow
from orchestration.engine.windows import read
from orchestration.storage.delta import instant, literal
from orchestration.utc import from_micros

KEYS = pa.schema([AGGREGATES.field(name) for name in OF_WINDOW])
Window = tuple[Key, int]
Linked = tuple[float | None, list[float]]
"""The value of a window, and what it carries."""
Recompute = Callable[[DataFrame, int, int], DataFrame]
"""Windows (OF_WINDOW) with all that counts for them, and the first and last of their ends, in seconds since 1970."""


@dataclass(frozen=True)
class Chains:
    """Recorded windows, in their newest revision: `links` by key and end, `ends` of each key in order, in microseconds since 1970.
    `held`: those without a reading."""

    links: dict[Window, Linked]
    ends: dict[Key, list[int]]
    held: set[Window]

    def behind(self, windows: Iterable[Window], count: int) -> set[Window]:
        """List the next windows behind each of these, so many with a reading, and those without one before them."""
        return {window for key, at in windows for window in self._next(key, at, count)}

    def _next(self, key: Key, at: int, count: int) -> Iterator[Window]:
        ends = self.ends[key]
        for n in range(bisect_right(ends, at), len(ends)):
            yield key, ends[n]
            count -= (key, ends[n]) not in self.held
            if not count:
                return


def amended(lake: Lake, stream: str, groups: Sequence[Group], affected: DataFrame, recompute: Recompute, until: int) -> DataFrame | None:  # noqa: PLR0917
    """Recompute affected windows (OF_WINDOW) of metrics whose windows are a chain; None where there are none. `until`: see links.link.

    A late reading mostly changes what its own window carries, and the next one no more. So that one is computed too, and more where what
    the last one carries is not as recorded.
    """
    metrics = linked_metrics(lake, groups)
    late: set[Window] = {*_windows(affected.where(F.col("metric").isin(metrics)).toArrow())} if metrics else set()
    if not late:
        return None
    names = {column: sorted({key[number] for key, _ in late}) for number, column in enumerate(WINDOW_KEY[:3])}
    first = min(end for _, end in late)
    earlier = f"window_end < {instant(first)} and device_id in {literal(names['device_id'])}"
    before = NewestCarries(lake, stream, groups, earlier).before(NEVER, first - FIRST_STEP, {key for key, _ in late})
    history = read(
        lake.gold(stream)[0], f"window_end >= {instant(first)} and carry is not null and metric in {literal(metrics)}", None, names
    )
    assert history is not None  # without limits
    recorded = latest(history, WINDOW_KEY)
    chains = Chains(_links(recorded), defaultdict(list), _held(recorded))
    for key, end in sorted(chains.links):
        chains.ends[key].append(end)
    wanted, made, more, count = set[Window](), dict[Window, Linked](), late | chains.behind(late, 1), 1
    while more:
        wanted, count = wanted | more, count * 2
        others = pa.array([window not in wanted for window in _windows(recorded)], pa.bool_())
        onwards = from_arrow(lake.spark, pa.concat_tables([before, recorded.filter(others).select(CHAIN)]))
        ends = [end // 1_000_000 for _, end in wanted]
        rows = chained(recompute(from_arrow(lake.spark, _table(wanted)), min(ends), max(ends)), onwards, lake.conf.metrics, until).toArrow()
        made = _links(rows)
        loose = [window for window, (_, carry) in made.items() if window not in chains.links or chains.links[window][1] != carry]
        more = chains.behind(loose, count) - wanted if chains.behind(loose, 1) - wanted else set()
    is_new = [window in late or chains.links.get(window) != linked for window, linked in made.items()]
    return from_arrow(lake.spark, rows.filter(pa.array(is_new, pa.bool_())))


def _held(rows: pa.Table) -> set[Window]:
    return {window for window, count in zip(_windows(rows), rows["count"].to_pylist(), strict=True) if not count}


def _links(rows: pa.Table) -> dict[Window, Linked]:
    return dict(zip(_windows(rows), zip(rows["value"].to_pylist(), rows["carry"].to_pylist(), strict=True), strict=True))


def _windows(rows: pa.Table) -> list[Window]:
    *key, ends = (rows[name] for name in WINDOW_KEY)
    micros = ends.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    return list(zip(zip(*(column.to_pylist() for column in key), strict=True), micros, strict=True))


def _table(windows: Iterable[Window]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(OF_WINDOW, (*key, from_micros(end)), strict=True)) for key, end in windows], KEYS)
