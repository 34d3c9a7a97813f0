"""The preview of a replay, before it is built: rows of each table and group before and after, and windows that would vanish.

Without Spark: from the measurements of silver_after.py, the windows that they are in and that are closed.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import duckdb

from expectations.wording import counted
from gold.schema import KINDS, OF_EACH_STREAM
from gold.windows.calendar import SPAN, windows_of_spans
from gold.windows.spec import Group, Late
from gold.windows.vectors import features_of
from orchestration.audit.verify.store import fill
from orchestration.conf.model import Conf
from orchestration.location import Location
from orchestration.serving.sql.duckdb_engine import create_views
from orchestration.storage.delta import is_table, literal
from orchestration.storage.ops_tables import TICKS
from orchestration.storage.seals import damages
from orchestration.storage.tables import LakeStore
from orchestration.storage.views import views
from orchestration.supervisor.silver_after import Inputs, TableChange, silver_after
from orchestration.utc import to_iso

COLUMNS = ("device_group", "table", "rows_before", "rows_after", "windows_that_vanish")
SETTINGS = (
    "device_group varchar, stream varchar, metric varchar, step bigint, slide bigint, lateness bigint, ahead bigint, keeps_aside bool"
)
FEATURES, TICKED = "device_group varchar, device_id varchar, metric varchar", "stream varchar, event_time timestamptz"
CALENDAR = "metric varchar, span bigint, begins bigint, changes bigint, later bigint"
SPANS = "select distinct floor(epoch(event_time) / {span})::bigint from good where metric = $metric"
PLACED = """
  create table placed as
  select device_group, stream, device_id, metric, keeps_aside, kind, bronze_batch, bronze_row, part,
    coalesce(if(epoch(event_time) < changes, changes, later), (floor(floor(epoch(event_time)) / slide) + 1 + nth) * slide) as ended,
    coalesce(if(epoch(event_time) < changes, begins, changes), ended - step) as began
  from (select * exclude (groups), unnest(list_distinct(groups)) as device_group from good) join settings using (device_group, metric)
    left join calendar c on c.metric = settings.metric and span = floor(epoch(event_time) / {span})
    cross join unnest(range(step // slide)) as slides(nth)
"""
CLOSED = """
  create table closed as
  select stream, greatest(floor(max(epoch_ms(clock)) - max(lateness) * 1000), 0) / 1000 as until from (
    select stream, least(event_time, ingested_at + to_seconds(ahead)) as clock, lateness from (
      select event_time, ingested_at, metric, unnest(list_distinct(groups)) as device_group from good where kind is distinct from 'late'
    ) join settings using (device_group, metric)
    union all select stream, event_time, lateness from ticks join (select stream, max(lateness) as lateness from settings group by stream)
      using (stream)
  ) group by stream
"""
LATE_AGAIN = """
  create table late_again as
  select p.device_group, p.bronze_batch, p.bronze_row, p.part, p.ended
  from placed p join closed using (stream) semi join late_before b on b.device_group = p.device_group and b.bronze_batch = p.bronze_batch
    and b.bronze_row = p.bronze_row and b.part = p.part and b.ended = p.ended
  where p.ended <= until and p.kind is distinct from 'late'
"""
WINDOWS = """
  create table windows as
  select distinct device_group, device_id, metric, to_timestamp(began) as window_start, to_timestamp(ended) as window_end
  from placed join closed using (stream)
    anti join (select l.* from late_again l semi join settings s on s.device_group = l.device_group and s.keeps_aside) aside
      using (device_group, bronze_batch, bronze_row, part, ended)
  where ended <= until and not (keeps_aside and kind is not distinct from 'late')
"""
VECTORS = """
  select device_group, count(*) as n from (
    select distinct w.device_group, case when f.device_id is null then w.device_id end as entity, w.window_end
    from windows w join features f
      on f.device_group = w.device_group and f.metric = w.metric and coalesce(f.device_id, w.device_id) = w.device_id
  ) group by device_group
"""
OF_GOLD = {kind: f"gold.{kind}" for kind in OF_EACH_STREAM}
BEFORE = {
    "late_before": (
        "device_group varchar, bronze_batch bigint, bronze_row bigint, part int, ended double",
        "select device_group, bronze_batch, bronze_row, part, epoch(window_end) from gold.late",
    ),
    "windows_before": (
        "device_group varchar, device_id varchar, metric varchar, window_start timestamptz, window_end timestamptz",
        "select device_group, device_id, metric, window_start, window_end from gold.aggregates",
    ),
}
"""Columns and query by name, of rows that readers see now."""
VANISHING = """
  select device_group, metric, count(*) as windows, min(window_start) as first_at, max(window_end) as last_at
  from windows_before anti join windows using (device_group, device_id, metric, window_start, window_end)
  where device_group in {replayed} or not device_group in {declared}
  group by all order by all
"""


class Vanishing(NamedTuple):
    """Windows of one metric in one group that readers would see no more. `first_at`, `last_at`: start of the first, end of the last."""

    device_group: str
    metric: str
    windows: int
    first_at: datetime
    last_at: datetime

    def __str__(self) -> str:
        return (
            f"{self.device_group}, {self.metric}: {counted(self.windows, 'window')} from {to_iso(self.first_at)} to {to_iso(self.last_at)}"
        )


@dataclass(frozen=True)
class ReplayPreview:
    """The changes that the replay would make, up to the bronze batch of a snapshot; what comes later is added as it always is."""

    bronze_batch: int
    tables: Sequence[TableChange]
    vanishing: Sequence[Vanishing]
    computed_anew: Sequence[str]

    def sentences(self) -> Iterator[str]:
        """Yield what the table of numbers does not say."""
        if self.computed_anew:
            yield f"Computed anew too: {', '.join(self.computed_anew)}."
        if self.vanishing:
            yield "Windows that vanish, as the conf asks for no such window of these readings any more:"
            yield from (f"  {row}" for row in self.vanishing)


def preview(inputs: Inputs) -> ReplayPreview:
    """Compute both sides in a database of its own on the disk."""
    with TemporaryDirectory(prefix="tidemark-") as folder, closing(duckdb.connect(str(Path(folder) / "preview.duckdb"))) as store:
        store.execute("set TimeZone = 'UTC'; set enable_progress_bar = false; set memory_limit = '1GB'")
        silver = [*silver_after(store, inputs)]
        gold, vanishing = _gold(store, inputs)
    conf = inputs.lake.conf
    anew = conf.tables_of_incrementals if inputs.first is not None else []
    return ReplayPreview(inputs.snapshot.bronze_batch, [*silver, *gold], vanishing, anew)


def _gold(store: duckdb.DuckDBPyConnection, inputs: Inputs) -> tuple[list[TableChange], list[Vanishing]]:
    """`rows_before`: as readers see them; None of all where a table of gold is damaged, as a replay is the way out of that."""
    conf, groups = inputs.lake.conf, {group.name: group for group in inputs.groups}
    is_damaged = any(damages(path) for path in _paths(inputs.lake))
    shown = {} if is_damaged else views(conf, inputs.snapshot)
    create_views(store, [shown[name] for name in OF_GOLD.values() if name in shown])
    _settings(store, conf, inputs)
    for name, (columns, query) in BEFORE.items():
        store.execute(f"create table {name} ({columns})")
        if query.rpartition(" ")[2] in shown:
            store.execute(f"insert into {name} {query}")
    for statement in (PLACED.format(span=SPAN), CLOSED, LATE_AGAIN, WINDOWS):
        store.execute(statement)
    before = {kind: _by_group(store, f"from {name}") if name in shown else {} for kind, name in OF_GOLD.items()}
    after = {
        "aggregates": _by_group(store, "from windows"),
        "vectors": dict(store.sql(VECTORS).fetchall()),
        "late": _by_group(store, "from late_again"),
    }
    names = {"replayed": literal([*groups, ""]), "declared": literal([*conf.groups, ""])}
    vanishing = [Vanishing(*row) for row in store.sql(VANISHING.format(**names)).fetchall()]
    changes = []
    for name in dict.fromkeys([*groups, *(group for group in before["aggregates"] if group not in conf.groups)]):
        gone = sum(row.windows for row in vanishing if row.device_group == name)
        for kind, table in OF_GOLD.items():
            old, new = before[kind].get(name, 0), after[kind].get(name, 0)
            if old or new or kind == "aggregates":
                changes.append(TableChange(name, table, None if is_damaged else old, new, gone if kind == "aggregates" else None))
    return changes, vanishing


def _paths(lake: LakeStore) -> Iterator[Location]:
    for name in {lake.generation.gold(group.stream, kind) for group in lake.conf.groups.values() for kind in KINDS}:
        if is_table(path := lake.table_path(name)):
            yield path


def _settings(store: duckdb.DuckDBPyConnection, conf: Conf, inputs: Inputs) -> None:
    """Make `settings`, a row a group and metric, `features` of vectors, and `ticks`."""
    bounds = {stream: (max(group.lateness_seconds for group in groups), conf.ahead_of(stream)) for stream, groups in conf.streams.items()}
    rows = [
        (
            group.name,
            group.stream,
            name,
            metric.window_seconds,
            metric.every_seconds,
            *bounds[group.stream],
            group.late is Late.KEEP_ASIDE,
        )
        for group in inputs.groups
        for name, metric in ((name, conf.metrics[name]) for name in group.metrics)
    ]
    fill(store, "settings", SETTINGS, rows)
    rows_of_spans = list[tuple[str | int, ...]]()
    for name in {name for group in inputs.groups for name in group.metrics}:
        if (calendar := conf.metrics[name].calendar) is not None:
            spans = [span for (span,) in store.execute(SPANS.format(span=SPAN), {"metric": name}).fetchall()]
            rows_of_spans += [(name, *windows) for windows in windows_of_spans(calendar, spans)]
    fill(store, "calendar", CALENDAR, rows_of_spans)
    fill(store, "features", FEATURES, chain.from_iterable(map(_features, inputs.groups)))
    fill(store, "ticks", TICKED, ((tick.stream, tick.event_time) for tick in TICKS.rows(conf.lake)))


def _features(group: Group) -> Iterator[tuple[str, str | None, str]]:
    """Pairs of a device, None for any, and a metric, at whose windows the group has vectors."""
    if group.vector is not None:
        for feature, metric in features_of(group, group.vector).items():
            yield group.name, None if group.vector.entity == "device" else feature.removesuffix(f".{metric}"), metric


def _by_group(store: duckdb.DuckDBPyConnection, rows: str) -> dict[str, int]:
    return dict(store.sql(f"select device_group, count(*) {rows} group by device_group").fetchall())
