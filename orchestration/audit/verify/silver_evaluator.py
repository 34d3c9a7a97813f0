"""Silver once more: bronze events to accepted and rejected measurements, by pyarrow, Python and DuckDB alone.

`evaluate_into` runs a SilverEvaluator on chunks of events, so that memory is bounded; in several processes where there are many events.
"""

import gc
import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from orchestration.audit.verify.conditions import evaluated
from orchestration.audit.verify.confs import ConfEra
from orchestration.audit.verify.measurements import MEASUREMENTS, measurements
from orchestration.audit.verify.store import INSTANT, QUARANTINE, READINGS, column_names, fill, plain
from orchestration.conf.model import Conf
from orchestration.storage.payload_formats import payload_formats
from silver.metric import Metric
from silver.policy import UNASSIGNED_GROUP, Unknown
from silver.spec import PayloadFormat

READING_COLUMNS, QUARANTINE_COLUMNS = column_names(READINGS), column_names(QUARANTINE)
CATALOGUE = "metric VARCHAR, unit VARCHAR, aggregation VARCHAR, step_seconds INTEGER, minimum DOUBLE, maximum DOUBLE"
CONVERSIONS = "metric VARCHAR, unit VARCHAR, multiply DOUBLE, add DOUBLE"
OF_EVENT = ("source", "ingested_at", "bronze_batch", "bronze_row")
OF_REJECTED_EVENT = ("payload", "header", "position", "received_at")
CHUNK_ROWS = 50_000
WORTH_PROCESSES = 2 * CHUNK_ROWS
"""With fewer events one process is faster, as starting another takes longer than it saves."""
MOST_PROCESSES = 4
WAITING_PER_PROCESS = 2
KINDS = ("accepted", "rejected")

ReportDone = Callable[[int], None]
_evaluators: list[tuple[int, "SilverEvaluator"]] = []
"""Evaluators of this worker process; empty in the process that started it."""


class Registered(NamedTuple):
    """silver.devices and silver.references, as they are recorded."""

    devices: pa.Table
    references: pa.Table


class Evaluated(NamedTuple):
    """Every measurement of every event is in exactly one: columns of silver.readings, of silver.quarantine."""

    accepted: pa.Table
    rejected: pa.Table


@dataclass(frozen=True)
class SilverEvaluator:
    """Applies conf and registry to events; made once for many tables of them."""

    conf: Conf
    connection: duckdb.DuckDBPyConnection
    sql: str

    @classmethod
    def of(cls, conf: Conf, registry: Registered) -> "SilverEvaluator":
        """ConfError names a rule that DuckDB cannot evaluate."""
        connection = duckdb.connect(config={"threads": 1})
        metrics = conf.metrics.values()
        catalogue = ((m.name, m.unit, m.aggregation.value, m.step_seconds, *_limits(m)) for m in metrics)
        conversions = ((m.name, unit, to.multiply, to.add) for m in metrics for unit, to in m.conversions.items())
        fill(connection, "known_metrics", CATALOGUE, catalogue)
        fill(connection, "known_conversions", CONVERSIONS, conversions)
        connection.register("devices", plain(registry.devices))
        connection.register("references_", plain(registry.references))
        for name, sql in {"versions": f"({VERSIONS})", "referred": "references_"}.items():
            connection.execute(f"create table {name} as from {sql}")
        return cls(conf, connection, _sql(conf, [*pc.unique(registry.references["key_of"]).to_pylist()]))

    def evaluate(self, events: pa.Table) -> Evaluated:
        """Events of sources that the lake does not know are of neither side."""
        events = plain(events)
        shapes = payload_formats(self.conf).items()
        typed = pa.concat_tables([MEASUREMENTS.empty_table(), *(self._typed(events, source, shape) for source, shape in shapes)])
        of_event = events.select(OF_EVENT).take(typed["event_at"])
        rows = typed.set_column(typed.schema.get_field_index("event_time"), "event_time", typed["event_time"].cast(INSTANT))
        for name in OF_EVENT:
            rows = rows.append_column(name, of_event[name])
        self.connection.register("measured", rows)
        evaluated = self.connection.sql(self.sql).to_arrow_table()
        is_accepted = pc.equal(pc.list_value_length(evaluated["broken_rules"]), 0)
        rejected = evaluated.filter(pc.invert(is_accepted))
        of_rejected = events.select(OF_REJECTED_EVENT).take(rejected["event_at"])
        for name in OF_REJECTED_EVENT:
            rejected = rejected.append_column(name, of_rejected[name])
        return Evaluated(evaluated.filter(is_accepted).select(READING_COLUMNS), rejected.select(QUARANTINE_COLUMNS))

    def _typed(self, events: pa.Table, source: str, shape: PayloadFormat) -> pa.Table:
        places = pc.indices_nonzero(pc.equal(events["source"], source))
        measured = measurements(events.take(places), shape, self.conf.policy.max_payload_bytes)
        return measured.set_column(0, MEASUREMENTS.field(0), places.take(measured["event_at"]).cast(pa.int32()))


def _limits(metric: Metric) -> tuple[float | None, float | None]:
    """Return what values are refused below and above; of a counter also below 0, and above the value at which it wraps."""
    least, greatest = metric.minimum, metric.maximum
    if metric.aggregation == "counter_increase":
        least = 0 if least is None else least
        greatest = metric.counter.wraps_at if greatest is None and metric.counter is not None else greatest
    return least, greatest


VERSIONS = """
  with moves as (
    select device_id, coalesce(moved_at, timestamp '-infinity') as since from devices
    union select device_id, timestamp '-infinity' from devices
  ),
  spans as (select *, lead(since, 1, timestamp 'infinity') over (partition by device_id order by since) as until from moves),
  said as (
    select s.*, d.zone, d.groups, d.is_known, d.registered_at
    from spans s join devices d on d.device_id = s.device_id and coalesce(d.moved_at, timestamp '-infinity') <= s.since
    qualify row_number() over (partition by s.device_id, s.since, d.registered_at order by d.moved_at desc nulls last) = 1
  )
  select *, lead(registered_at) over (partition by device_id, since order by registered_at) as replaced_at from said
"""
"""Declarations of devices: of what was measured from `since` until `until`, where it was ingested from `registered_at` until
`replaced_at`. What has no time counts as of after all moves."""
MEASURED = """
  select m.*, c.unit, c.aggregation, c.step_seconds, c.minimum, c.maximum, c.metric is not null as is_metric_known,
    unit_text is null or c.unit is null or unit_text = c.unit as is_own_unit,
    is_own_unit or v.multiply is not null as is_unit_known,
    case when is_own_unit then number else number * v.multiply + v.add end as value
  from measured m
  left join known_metrics c on c.metric = m.metric
  left join known_conversions v on v.metric = m.metric and v.unit = m.unit_text
"""
ENRICHED = """
  select m.*, coalesce(d.is_known, false) as is_device_known,
    case when {is_assigned} then d.groups else ['{unassigned}'] end as groups,
    coalesce(zone_text, case when is_device_known then d.zone end) as zone
  from ({measured}) m
  left join versions d
    on d.device_id = m.device_id and d.registered_at <= m.ingested_at and (d.replaced_at is null or m.ingested_at < d.replaced_at)
    and (d.since <= m.event_time or m.event_time is null)
    and (m.event_time < d.until or d.until = timestamp 'infinity')
"""


SAID = """
  select * exclude (own, said, names)
    replace (case when said is null then attributes else map(names, [coalesce(own[name], said[name]) for name in names]) end as attributes)
  from (
    select m.*, coalesce(m.attributes, map {{}}) as own, r.attributes as said,
      map_keys(own) || [name for name in map_keys(said) if not list_contains(map_keys(own), name)] as names
    from ({evaluated}) m
    asof left join (from referred where key_of = '{key_of}') r on r.key = m.{key_of} and r.registered_at <= m.ingested_at
  )
"""


def _sql(conf: Conf, key_of: Sequence[str]) -> str:
    """`key_of`: of what references say something."""
    is_assigned = "is_device_known" + ("" if conf.policy.unknown_metric is Unknown.QUARANTINE else " and is_metric_known")
    enriched = ENRICHED.format(is_assigned=is_assigned, unassigned=UNASSIGNED_GROUP, measured=MEASURED)
    sql = f"select {', '.join(READING_COLUMNS)}, event_at, {_broken_rules(conf)} as broken_rules from ({enriched})"
    for name in sorted(key_of):
        sql = SAID.format(evaluated=sql, key_of=name)
    return sql


def _broken_rules(conf: Conf) -> str:
    conditions = _built_in(conf) | {rule.name: f"not is_measured or {evaluated(rule.holds, READINGS)}" for rule in conf.rules}
    named = (f"case when coalesce({holds}, false) then null else '{name}' end" for name, holds in conditions.items())
    return f"list_filter([{', '.join(named)}], lambda name: name is not null)"


def _built_in(conf: Conf) -> dict[str, str]:
    """Each holds for a row whose payload it cannot ask, so that a row names causes and not their consequences."""
    policy = conf.policy
    own = ", ".join(f"'{name}': {source.ahead_seconds}" for name, source in conf.sources.items() if source.ahead_seconds is not None)
    ahead = f"coalesce(map {{{own}}}[source], {policy.max_future_seconds})" if own else f"{policy.max_future_seconds}"
    of_measured = {
        "device_is_present": "device_id is not null",
        "metric_is_present": "metric is not null",
        "event_time_is_valid": "event_time is not null",
        "local_time_is_unique": "is_local_time_unique",
        "event_time_is_not_too_old": f"event_time is null or event_time + to_seconds({policy.max_age_seconds}) >= ingested_at",
        "event_time_is_not_in_the_future": f"event_time is null or event_time <= ingested_at + to_seconds({ahead})",
        "value_is_a_number": "metric is null or not is_unit_known or coalesce(isfinite(value), false)",
        "value_is_in_range": "value is null or isnan(value) or (coalesce(value >= minimum, true) and coalesce(value <= maximum, true))",
        "unit_is_known": "is_unit_known",
        "device_is_known": "device_id is null or is_device_known",
        "metric_is_known": "metric is null or is_metric_known",
    }
    unasked = {
        "device_is_known": policy.unknown_device is Unknown.UNASSIGNED,
        "metric_is_known": policy.unknown_metric is Unknown.UNASSIGNED,
    }
    return {
        "payload_is_small_enough": "is_small",
        "payload_is_utf8": "is_utf8",
        "payload_is_readable": "is_readable or not is_small",
        "something_is_measured": "is_measured or not (is_readable and is_utf8)",
        **{name: f"not is_measured or ({holds})" for name, holds in of_measured.items() if not unasked.get(name)},
    }


def _begin(eras: Sequence[ConfEra], registry: Registered) -> None:
    gc.disable()  # nothing here is cyclic, and looking for cycles among millions of rows is a fifth of the time
    _evaluators[:] = evaluators(eras, registry)


def _work(chunk: pa.Table, folder: Path, number: int) -> int:
    return write(_evaluators, chunk, folder, number)


def evaluators(eras: Sequence[ConfEra], registry: Registered) -> list[tuple[int, SilverEvaluator]]:
    """Make one for each conf, beside the first bronze batch that was read with it."""
    return [(era.since_batch, SilverEvaluator.of(era.conf, registry)) for era in eras]


def evaluate_into(  # noqa: PLR0917
    folder: Path, chunks: Iterable[pa.Table], events: int, registry: Registered, eras: Sequence[ConfEra], report: ReportDone
) -> None:
    """Write Parquet files into `folder`/accepted and `folder`/rejected; `report` is called with the number of events done so far."""
    for kind in KINDS:
        (folder / kind).mkdir(parents=True)
    processes = min(MOST_PROCESSES, os.cpu_count() or 1)
    done = 0
    if events < WORTH_PROCESSES or processes == 1:
        made = evaluators(eras, registry)
        for number, chunk in enumerate(chunks):
            done += write(made, chunk, folder, number)
            report(done)
        return
    # Not forked: threads of DuckDB and of the Delta reader would be missing in the copy.
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawned, _begin, (eras, registry)) as pool:
        waiting: deque[Future[int]] = deque()
        for number, chunk in enumerate(chunks):
            waiting.append(pool.submit(_work, chunk, folder, number))
            if len(waiting) >= WAITING_PER_PROCESS * processes:
                done += waiting.popleft().result()
                report(done)
        for future in waiting:
            done += future.result()
            report(done)


def write(evaluators: Sequence[tuple[int, SilverEvaluator]], chunk: pa.Table, folder: Path, number: int) -> int:
    """Evaluate one chunk, each event by the conf of its batch, and write its rows; return how many events it had."""
    rest = chunk
    for at, (since_batch, evaluator) in reversed([*enumerate(evaluators)]):
        is_of_era = pc.greater_equal(rest["bronze_batch"], since_batch)
        events, rest = (rest.filter(is_of_era), rest.filter(pc.invert(is_of_era))) if at else (rest, rest)
        for kind, rows in zip(KINDS, evaluator.evaluate(events), strict=True) if events.num_rows else ():
            if rows.num_rows:
                pq.write_table(rows, folder / kind / f"{number:06d}-{at}.parquet")
    return int(chunk.num_rows)
